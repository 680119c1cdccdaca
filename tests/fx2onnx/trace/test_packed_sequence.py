"""Packed sequences: the file has the lengths of the call, at batches, steps and lengths that the export never saw."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest
import torch
from inputs import OWN
from torch import Tensor, nn
from torch.nn.utils import rnn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from exportlab.cases import Sample
from exportlab.verification.verify import verify
from fx2onnx import ToOnnxError, to_onnx

FIRST = ({0: "batch", 1: "time"}, {0: "batch"})
SORTED = ((6, 4, 2), 7), ((5, 3), 5), ((8,), 9), ((4, 4, 2, 1, 1), 4), ((1,), 1)
ANY_ORDER = ((4, 6, 2), 7), ((2, 7, 1, 5), 9), ((1, 2), 2), ((3,), 8)
pytestmark = pytest.mark.filterwarnings("ignore:The tensor attributes")
CAPTURES = pytest.mark.parametrize("capture", ["auto", "torch.export"])
LAYERS = {
    "lstm": nn.LSTM(4, 5, batch_first=True),
    "gru, deep, both ways": nn.GRU(4, 5, 2, bidirectional=True),
    "rnn, both ways": nn.RNN(4, 5, bidirectional=True),
    "rnn of relu, deep, without biases": nn.RNN(4, 5, 2, nonlinearity="relu", bias=False),
    "lstm, deep, both ways": nn.LSTM(4, 5, 2, bidirectional=True),
    "lstm, projected": nn.LSTM(4, 5, proj_size=3, bidirectional=True),
}


class Packed(nn.Module):
    """A recurrent layer over what is packed by keyword, and padded again by keyword."""

    def __init__(self, layer: nn.Module, total: str = "", sorted: bool = False, **padding: Any) -> None:
        super().__init__()
        self.layer, self.total, self.sorted, self.padding = layer, total, sorted, padding

    def forward(self, x: Tensor, lengths: Tensor) -> Any:
        packed = pack_padded_sequence(x, lengths, batch_first=True, enforce_sorted=self.sorted)
        y, last = self.layer(packed)
        total = {"": None, "steps": x.shape[1], "nine": 9}[self.total]
        return pad_packed_sequence(y, batch_first=True, total_length=total, **self.padding), last


class Free(nn.Module):
    """What a function makes of a layer, a tensor and lengths."""

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.lstm, self.gru, self.head = nn.LSTM(4, 5, batch_first=True), nn.GRU(5, 3, bidirectional=True), nn.Linear(5, 2)
        self.function = function

    def forward(self, x: Tensor, lengths: Tensor) -> Any:
        return self.function(self, x, lengths)


def sample(lengths: tuple[int, ...], steps: int) -> Sample:
    """The padding is large, and eager never reads it."""
    x = torch.randn(len(lengths), steps, 4, generator=torch.Generator().manual_seed(steps))
    for row, length in enumerate(lengths):
        x[row, length:] = 50.0
    return Sample((x, torch.tensor(lengths)))


def check(module: nn.Module, given: Any = ANY_ORDER, capture: str = "auto", shapes: Any = FIRST) -> Any:
    """Export at the first of these lengths, and verify at all."""
    samples = [sample(*one) for one in given]
    program = to_onnx(module.eval(), samples[0].args, dynamic_shapes=shapes, capture=capture, **OWN)
    verify(program, module, samples).check()
    return program


def refused(function: Callable[..., Any], capture: str = "auto") -> str:
    with pytest.raises(ToOnnxError) as caught:
        to_onnx(Free(function).eval(), sample(*ANY_ORDER[0]).args, dynamic_shapes=FIRST, capture=capture)
    return str(caught.value)


@pytest.mark.parametrize("layer", LAYERS)
@pytest.mark.parametrize("total", ["", "steps", "nine"])
def test_layers_stop_at_the_lengths_of_the_call(layer: str, total: str) -> None:
    check(Packed(LAYERS[layer], total))


@CAPTURES
@pytest.mark.parametrize("total", ["", "steps", "nine"])
def test_padding_has_its_value_and_sorted_sequences_are_taken(capture: str, total: str) -> None:
    check(Packed(nn.LSTM(4, 5), total, sorted=True, padding_value=-2.0), SORTED, capture)


@CAPTURES
def test_steps_come_first_where_batch_first_is_not_asked_for(capture: str) -> None:
    class TimeFirst(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.gru = nn.GRU(4, 5, bidirectional=True)

        def forward(self, x: Tensor, lengths: Tensor) -> Any:
            y, last = self.gru(pack_padded_sequence(x, lengths, enforce_sorted=False))
            return *pad_packed_sequence(y), last

    samples = [Sample((s.args[0].transpose(0, 1).contiguous(), s.args[1])) for s in (sample(*one) for one in ANY_ORDER)]
    module = TimeFirst().eval()
    program = to_onnx(module, samples[0].args, dynamic_shapes=({0: "time", 1: "batch"}, {0: "batch"}), capture=capture, **OWN)
    verify(program, module, samples).check()


def test_a_classifier_of_the_last_state_is_one_recurrence_with_lengths() -> None:
    def classified(self: Free, x: Tensor, lengths: Tensor) -> Tensor:
        _, (h, _) = self.lstm(pack_padded_sequence(x, lengths.cpu(), True, False))
        return self.head(h[-1]).softmax(-1)

    program = check(Free(classified))
    assert program.report.capture == "run"
    assert [node.op_type for node in program.model.graph].count("LSTM") == 1


def test_a_state_is_taken_to_begin_with() -> None:
    class Continued(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.lstm = nn.LSTM(4, 5)

        def forward(self, x: Tensor, lengths: Tensor, h: Tensor, c: Tensor) -> Any:
            y, last = self.lstm(pack_padded_sequence(x, lengths, True, False), (h, c))
            return pad_packed_sequence(y, True)[0], last

    states = [torch.randn(2, 1, len(lengths), 5) for lengths, _ in ANY_ORDER]
    samples = [Sample((*sample(*one).args, *state)) for one, state in zip(ANY_ORDER, states, strict=True)]
    module = Continued()
    program = to_onnx(module, samples[0].args, dynamic_shapes=(*FIRST, {1: "batch"}, {1: "batch"}), **OWN)
    verify(program, module, samples).check()
    wrong = (*samples[0].args[:2], torch.zeros(1, 3, 4), torch.zeros(1, 3, 5))
    with pytest.raises(ToOnnxError, match="Expected hidden size"):
        to_onnx(module, wrong)


def test_two_layers_one_after_the_other_and_padding_that_a_mask_of_the_lengths_leaves_out() -> None:
    def pooled(self: Free, x: Tensor, lengths: Tensor) -> Any:
        y, (h, c) = self.lstm(pack_padded_sequence(x, lengths, True, False).to(torch.float32))
        z, told = pad_packed_sequence(self.gru(y)[0], True, padding_value=7.0)
        alive = torch.arange(z.shape[1]) < told[:, None]
        return (z * alive[..., None]).sum(1) / told[:, None], h, c

    check(Free(pooled))


class OfPacked(nn.Module):
    """A layer that takes a packed sequence and returns one."""

    def __init__(self) -> None:
        super().__init__()
        self.gru = nn.GRU(4, 4)

    def forward(self, packed: rnn.PackedSequence) -> rnn.PackedSequence:
        return self.gru(packed)[0]


@pytest.mark.parametrize("options", [{"capture": "run"}, {"capture": "torch.export"}, {"functions": True}])
def test_packed_sequences_go_from_module_to_module(options: Any) -> None:
    class Stacked(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.blocks = nn.ModuleList(OfPacked() for _ in range(2))

        def forward(self, x: Tensor, lengths: Tensor) -> Any:
            packed = pack_padded_sequence(x, lengths, True, False)
            for block in self.blocks:
                packed = block(packed)
            return pad_packed_sequence(packed, True, total_length=x.shape[1])

    samples, module = [sample(*one) for one in ANY_ORDER], Stacked()
    program = to_onnx(module, samples[0].args, dynamic_shapes=FIRST, **options)
    verify(program, module, samples).check()


def test_what_no_layer_has_seen_is_padded_too_and_lengths_may_be_constants() -> None:
    check(Free(lambda self, x, lengths: pad_packed_sequence(pack_padded_sequence(x, lengths, True, False), True, -1.0)))
    constant = Free(lambda self, x, lengths: pad_packed_sequence(self.lstm(pack_padded_sequence(x, [4, 6, 2], True, False))[0]))
    check(constant, [((4, 6, 2), 7), ((4, 6, 2), 9)], shapes=({1: "time"}, None))
    some = Free(lambda self, x, lengths: self.lstm(rnn.pack_sequence([x[0, :3], x[1, :4]], enforce_sorted=False))[1])
    check(some, [((6, 6), 7)], shapes=None)


@CAPTURES
@pytest.mark.parametrize(
    ("function", "said"),
    [
        (
            lambda self, x, lengths: pack_padded_sequence(x, lengths, True, False).data * 2,
            "a PackedSequence is accessed by its attribute data at",
        ),
        (lambda self, x, lengths: pack_padded_sequence(x, lengths, True, False).batch_sizes, "is accessed by its attribute batch_sizes at"),
        (lambda self, x, lengths: [*pack_padded_sequence(x, lengths, True, False)], "is unpacked by Python at"),
        (lambda self, x, lengths: self.lstm(pack_padded_sequence(x, lengths.tolist(), True, False))[1], "pass the lengths as a tensor"),
        (lambda self, x, lengths: self.lstm(pack_padded_sequence(x, [x.shape[1]] * 3, True))[1], "pass the lengths as a tensor"),
    ],
)
def test_what_no_file_describes_is_refused_with_the_line(function: Callable[..., Any], said: str, capture: str) -> None:
    told = refused(function, capture)
    assert said in told
    assert re.search(r"test_packed_sequence\.py:\d+ in <lambda>", told)


def test_a_packed_result_a_wrong_number_of_features_and_autocast_are_refused() -> None:
    assert "the model returns a PackedSequence" in refused(lambda self, x, lengths: self.lstm(pack_padded_sequence(x, lengths, True))[0])
    assert "must be equal to input_size" in refused(lambda self, x, lengths: self.gru(pack_padded_sequence(x, lengths, True, False))[1])

    def in_half(self: Free, x: Tensor, lengths: Tensor) -> Any:
        with torch.autocast("cpu", torch.bfloat16):
            return self.lstm(pack_padded_sequence(x, lengths, True, False))[1]

    assert "autocast" in refused(in_half)


def test_the_report_says_what_eager_asks_of_lengths_and_torch_is_as_before() -> None:
    program = check(Packed(nn.LSTM(4, 5), "nine", sorted=True), SORTED)
    assert [line.partition(": ")[2] for line in program.report.limits] == [
        "torch checks that lengths are 1 or more, and in descending order; the exported model does not",
        "torch checks that no length exceeds total_length; the exported model does not",
    ]
    assert all("test_packed_sequence.py" in line for line in program.report.limits)
    with pytest.raises(RuntimeError, match="greater than 0"):
        pack_padded_sequence(torch.zeros(3, 2, 4), torch.tensor([1, 0]))


@CAPTURES
def test_a_layer_that_has_no_translation_is_refused_with_the_line(capture: str) -> None:
    def of_doubles(self: Free, x: Tensor, lengths: Tensor) -> Any:
        return self.lstm(pack_padded_sequence(x.double(), lengths, True, False))[1]

    module = Free(of_doubles).double()
    with pytest.raises(ToOnnxError, match=r"LSTM does not compute in float64[\s\S]*test_packed_sequence\.py:\d+") as caught:
        to_onnx(module, sample(*ANY_ORDER[0]).args, capture=capture)
    assert "capture/packed.py" not in str(caught.value)


@pytest.mark.parametrize("kind", [nn.LSTM, nn.GRU, nn.RNN])
def test_a_file_gives_zeros_for_a_length_of_none_and_refuses_one_beyond_the_steps(kind: Any) -> None:
    program = check(Packed(kind(4, 5, bidirectional=True), "steps"), SORTED)
    outputs = program(torch.ones(2, 6, 4), torch.tensor([0, 3]))
    assert outputs[0][0].eq(0).all()
    assert outputs[2][:, 0].eq(0).all()
    with pytest.raises(Exception, match="Invalid value/s in sequence_lens"):
        program(torch.ones(2, 6, 4), torch.tensor([7, 3]))


def test_a_packed_argument_is_left_to_torch() -> None:
    packed = pack_padded_sequence(torch.zeros(3, 2, 4), torch.tensor([2, 1]))

    class Taken(nn.Module):
        def forward(self, x: Tensor) -> Any:
            return x + pad_packed_sequence(packed)[0].sum()

    with pytest.raises(ToOnnxError, match="_pad_packed_sequence"):
        to_onnx(Taken(), (torch.zeros(2),))
