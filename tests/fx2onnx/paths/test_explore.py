"""A module that is captured by running it is right at sizes that were never run, or refused with the line."""

from __future__ import annotations

import copy
import math
import re
from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import numpy
import pytest
import torch
from modules import Of
from torch import Tensor, nn
from torch.export import Dim
from torch.nn import functional as F
from torch.nn.modules import module as hooks

from exportlab import to_onnx
from fx2onnx import ToOnnxError
from fx2onnx.errors import CaptureError, FrozenDimension, UnsupportedArgument
from fx2onnx.paths.explore import capture_by_running
from fx2onnx.strategies.torch_export import capture_by_export
from fx2onnx.trace.refusal import TraceUnsupported

ROWS = ({0: "rows"},)
NEVER_RUN = (1, 2, 7, 129)
HERE = r"\S*test_explore\.py:\d+ in "


def caught(x: Tensor) -> Tensor:
    """A value that is read, where the model itself catches the error."""
    try:
        return x * float(x.sum())
    except Exception:  # noqa: BLE001 - what such models do
        return x * 3


def cut_at_a_hundred(x: Tensor) -> Tensor:
    """A size that is another one in all runs."""
    y = x[:100] * 2
    return y.sum(0) / y.shape[0] + x.sum(0) / (x * 2).shape[0]


def without_sixty(x: Tensor) -> Tensor:
    """A size that is nothing in all runs."""
    y = x[:-60] * 2
    return y.sum(0) + torch.ones(y.shape[0]).sum()


TAKEN: dict[str, Callable[[Tensor], Any]] = {
    "layers": nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 2)).forward,
    "a size as a factor": lambda x: x * x.shape[0],
    "a root of a size": lambda x: x / x.shape[0] ** 0.5,
    "a root of a size by math": lambda x: x / math.sqrt(x.shape[0]) + math.sqrt(2.0),
    "products of sizes": lambda x: x.reshape(x.shape[0] * 2, -1).sum(1),
    "cut where no run is cut": cut_at_a_hundred,
    "rows that no run has": without_sixty,
    "thirds": lambda x: torch.cat([part * 2 for part in torch.tensor_split(x, 3)]),
    "a size in steps": lambda x: x[: x.shape[0] // 3 + 1],
    "every third row": lambda x: x[1::3],
    "padded to a multiple": lambda x: F.pad(x, (0, 0, 0, -x.shape[0] % 8)),
    "pooled in wide steps": lambda x: F.max_pool1d(F.pad(x.T[None], (0, 16)), 16).squeeze(0),
    "positions": lambda x: x + torch.arange(x.shape[0])[:, None],
    "a tensor of a size": lambda x: x + torch.tensor(x.shape[0]),
    "a tensor of sizes": lambda x: x * torch.tensor([[x.shape[0], 2, x.shape[0] // 2, x.numel()]]) + torch.as_tensor(x.shape[0] / 2),
    "made of sizes": lambda x: x + torch.ones(x.shape),
    "another tensor of the same memory": lambda x: torch.as_tensor(x) + x.data + x.detach(),
    "written into a copy": lambda x: x.clone().add_(1),
    "a view of a copy written": lambda x: _column_set(x.clone()),
    "a constant": lambda x: x + torch.tensor([1.0, 2.0, 3.0, 4.0]),
    "the number of elements": lambda x: x / x.numel(),
    "what is set has a further axis": lambda x: _all_set(x.clone(), x[:1]),
    "a slice that is the whole at times": lambda x: x[: (x.shape[0] + 1) // 2 * 2] + x[: x.shape[0]],
    "a contiguous copy written": lambda x: _column_set((x * 2).T.contiguous().T.contiguous()),
    "an operator that is taken apart": lambda x: torch.add(x, x.shape[0], out=torch.ones(x.shape[0], 4)[:, :]),
    "an operator that is taken apart on one side": lambda x: torch.add(x, 1, out=torch.ones(x.shape)) if x.sum() > 2 else x,
    "a size returned": lambda x: (x + 1, x.shape[0]),
}
DECIDED: dict[str, Callable[[Tensor], Any]] = {  # whose sizes values decide
    "nonzero": lambda x: x.nonzero(),
    "as many as counts say": lambda x: torch.repeat_interleave(x, (x[:, 0] * 0 + 2).long(), dim=0),
    "where": lambda x: torch.where(x > -1)[0],
    "a mask": lambda x: x[x > 0],
}
REFUSED: dict[str, tuple[Callable[[Tensor], Any], str]] = {
    "numpy": (lambda x: torch.from_numpy(numpy.sin(x.numpy())), "numpy.. reads tensor values at " + HERE),
    "asarray": (lambda x: torch.from_numpy(numpy.asarray(x) * 2), "__array__.. reads tensor values at " + HERE),
    "tolist": (lambda x: torch.tensor(x.tolist()), "tensor.. is called with a number that was read from a tensor, at " + HERE),
    "elements into a tensor": (lambda x: torch.tensor([x[0, 0], x[0, 1]]), "reads tensor values|differs between runs"),
    "elements into a tensor, by its type": (lambda x: x + torch.FloatTensor([x[0, 0], 1, 2, 3]), "differs between runs|value is read"),
    "deepcopy": (lambda x: copy.deepcopy(x) + 1, "set_.source_Storage changes the shape or the memory of a tensor"),
    "a number": (lambda x: x * float(x.sum()), "a tensor value is read at " + HERE),
    "an error that is caught": (caught, "a tensor value is read at " + HERE),
    "as many rows as a value says": (lambda x: x[: int(x.sum())], "a tensor value is read"),
    "a kernel that looks at no sizes": (lambda x: torch.lu_unpack(*torch.linalg.lu_factor(x)), "may crash the process .*" + HERE),
    "vmap": (torch.vmap(lambda row: row * 2), "it fails|BatchedTensor"),
}
REFUSED_MOVING: dict[str, tuple[Callable[[Tensor], Any], str]] = {
    "a test of a size that decides another": (
        lambda x: x if x.shape[0] > 100 else x.sum(0),
        "only rows <= 100 is exported: the test at .*" + HERE,
    ),
    "len, asked of the tensor": (lambda x: x if x.__len__() > 100 else -x, "len.. converts a dynamic size"),
    "a size as an index": (lambda x: x * [*range(200)][x.shape[0]], "is the constant 2 after .*" + HERE),
    "the length in bits": (lambda x: x if x.shape[0].bit_length() > 8 else -x, "is the constant 2 after .*" + HERE),
    "the numbers of a shape": (lambda x: x if x.shape.numel() > 1000 else -x, "is the constant 2 after .*" + HERE),
    "a key": (lambda x: {300: x}.get(x.shape[0], -x), "unhashable"),
    "a text": (lambda x: (x + 1, x * 2)[len(str(x.shape[0])) > 1], "^the model returns another tensor, depending on the sizes$"),
    "strides": (lambda x: x if x.T.contiguous().stride(0) > 100 else -x, "stride.. of a tensor with dynamic sizes"),
}


def _all_set(x: Tensor, row: Tensor) -> Tensor:
    x[:, torch.tensor([0, 2])] = row[None, :, :2] * 3
    return x


def _column_set(x: Tensor) -> Tensor:
    x[:, 1] = x[:, 0] * 2
    return x


@pytest.fixture
def x() -> Tensor:
    torch.manual_seed(0)
    return torch.rand(2, 4) + 0.1


def outputs(returned: Any) -> list[Tensor]:
    """What a call returns, as a file does."""
    return [torch.as_tensor(part) for part in (returned if isinstance(returned, tuple) else (returned,))]


@pytest.mark.parametrize("name", TAKEN)
@pytest.mark.parametrize("shapes", [None, ROWS], ids=["static", "moving"])
def test_what_is_taken_is_right_at_sizes_never_run(name: str, shapes: Any, x: Tensor) -> None:
    model = Of(TAKEN[name]).eval()
    program = to_onnx(model, (x,), dynamic_shapes=shapes, capture="run")
    assert program.report.capture == "run"
    for rows in NEVER_RUN if shapes else (2,):
        given = torch.rand(rows, 4)
        with torch.no_grad():
            wanted = outputs(model(given.clone()))
        for found, own in zip(program(given), wanted, strict=False):
            torch.testing.assert_close(found, own)


@pytest.mark.parametrize("name", DECIDED)
@pytest.mark.parametrize("shapes", [None, ROWS], ids=["static", "moving"])
def test_sizes_that_values_decide_are_right_at_other_values(name: str, shapes: Any, x: Tensor) -> None:
    program = to_onnx(Of(DECIDED[name]).eval(), (x,), dynamic_shapes=shapes, capture="run")
    for rows in (len(x),) if shapes is None else (len(x), 7, 1):
        for offset in (-9, 0, 9):
            given = torch.randn(rows, *x.shape[1:]) + offset
            assert torch.equal(program(given)[0], DECIDED[name](given))


@pytest.mark.parametrize("name", REFUSED)
@pytest.mark.parametrize("shapes", [None, ROWS], ids=["static", "moving"])
def test_what_runs_do_not_show_is_refused_and_nothing_is_changed(name: str, shapes: Any, x: Tensor) -> None:
    function, why = REFUSED[name]
    before = x.clone()
    with pytest.raises(TraceUnsupported, match=why):
        to_onnx(Of(function).eval(), (x,), dynamic_shapes=shapes, capture="run")
    assert torch.equal(x, before)


@pytest.mark.parametrize("name", REFUSED_MOVING)
def test_what_asks_for_a_size_is_taken_where_it_stays_and_refused_where_it_moves(name: str, x: Tensor) -> None:
    function, why = REFUSED_MOVING[name]
    assert to_onnx(Of(function).eval(), (x,), capture="run").report.capture == "run"
    with pytest.raises((TraceUnsupported, FrozenDimension), match=why):
        to_onnx(Of(function).eval(), (x,), dynamic_shapes=ROWS, capture="run")


@pytest.mark.parametrize(
    ("function", "why"),
    [
        (lambda x: torch.as_strided(x.T, (2, 2), (1, 2)), "as_strided"),
        (lambda x: (z := x * 1, z.contiguous().add_(1), z)[2], "the model writes into a contiguous copy"),
        (lambda x: (z := x * 1, y := z.contiguous(), z.add_(1), y * 2)[3], "."),
    ],
    ids=["strides", "a contiguous copy that is the tensor itself", "a tensor that is its contiguous copy"],
)
def test_what_follows_from_the_layout_of_memory_is_refused_or_right(function: Callable[[Tensor], Any], why: str, x: Tensor) -> None:
    model = Of(function).eval()
    try:
        program = to_onnx(model, (x,), dynamic_shapes=ROWS, capture="run")
    except ToOnnxError as error:
        assert re.search(why, str(error))  # noqa: PT017 - one of the two
        return
    given = torch.rand(7, 4)
    torch.testing.assert_close(program(given)[0], model(given.clone()))


@pytest.mark.parametrize(
    "function",
    [
        lambda x: x.add_(1) * 2,
        lambda x: (x[0].add_(1), x.sum(1))[1],
        lambda x: (x.T.mul_(x.shape[0]), x + 1)[1],
        lambda x: (F.relu(x, inplace=True), _column_set(x))[1],
        lambda x: x[:, 1:].zero_(),
    ],
    ids=["whole", "a row", "transposed", "twice", "a view returned"],
)
def test_an_input_that_is_written_stays_and_the_results_are_right(function: Callable[[Tensor], Any], x: Tensor) -> None:
    model, before = Of(function).eval(), x.clone()
    with pytest.warns(UserWarning, match=r"writes into its inputs \(x\): the exported model does not modify them"):
        program = to_onnx(model, (x,), dynamic_shapes=ROWS, capture="run")
    assert program.report.unchanged_inputs == ("x",)
    given = torch.rand(7, 4) - 0.5
    torch.testing.assert_close(program(given)[0], model(given.clone()))
    assert torch.equal(x, before)


def test_the_new_value_of_an_input_comes_out_where_it_is_asked_for(x: Tensor) -> None:
    model = Of(lambda x: x.mul_(2).sum(1)).eval()
    program = to_onnx(model, (x,), dynamic_shapes=ROWS, capture="run", mutations="outputs")
    assert program.report.unchanged_inputs == ()
    given = torch.rand(3, 4)
    torch.testing.assert_close(program(given)[1], given * 2)


@pytest.mark.parametrize("given", [SimpleNamespace(x=torch.ones(4, 3)), numpy.ones((4, 3))], ids=["an object", "an array"])
def test_an_argument_that_torch_cannot_take_apart_is_refused(given: Any) -> None:
    with pytest.raises(TraceUnsupported, match="is not registered as a pytree"):
        capture_by_running(Of(lambda given: torch.as_tensor(getattr(given, "x", given)) * 2), (given,), {})


def test_an_input_that_is_written_and_another_that_shows_it_are_refused() -> None:
    class Both(nn.Module):
        def forward(self, x: Tensor, y: Tensor) -> Tensor:
            x.add_(1)
            return y * 2

    x = torch.rand(3, 4)
    with pytest.raises(TraceUnsupported, match="whose memory another input shares"):
        to_onnx(Both(), (x, x[1:]), capture="run")


class Counts(nn.Module):
    """Writes into a buffer, through a view."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("seen", torch.zeros(2))
        self.calls = 0

    def forward(self, x: Tensor) -> Tensor:
        self.seen[:1].add_(1)
        return x + self.seen.sum()


class Twice(nn.Module):
    """Blocks inside, and random numbers."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(4, 4)

    def forward(self, x: Tensor) -> Tensor:
        return self.layer(self.layer(x)) + 0 * torch.rand_like(x)


class Silenced(nn.Module):
    """Switches gradients off, and never on again."""

    def forward(self, x: Tensor) -> Tensor:
        torch.set_grad_enabled(False)
        return x * 2


@pytest.mark.parametrize("model", [Counts(), Twice(), Silenced()], ids=["refused", "taken", "silenced"])
def test_the_model_and_its_surroundings_are_as_before(model: nn.Module, x: Tensor) -> None:
    model.eval()
    held = copy.deepcopy(model.state_dict())
    attributes = {name: dict(vars(module)) for name, module in model.named_modules()}
    random, given = torch.get_rng_state(), x.clone()
    global_hooks = dict(hooks._global_forward_hooks), dict(hooks._global_forward_pre_hooks)
    try:
        to_onnx(model, (x,), dynamic_shapes=ROWS, capture="run")
    except ToOnnxError as error:
        assert "the model writes into seen" in str(error)  # noqa: PT017 - one of the two is taken
    assert all(torch.equal(value, held[name]) for name, value in model.state_dict().items())
    assert {name: dict(vars(module)) for name, module in model.named_modules()} == attributes
    assert torch.equal(torch.get_rng_state(), random)
    assert torch.equal(x, given)
    assert (hooks._global_forward_hooks, hooks._global_forward_pre_hooks) == global_hooks
    assert torch.is_grad_enabled()
    assert not torch.compiler.is_exporting()


def test_auto_says_why_it_took_torch_export(x: Tensor) -> None:
    taken = to_onnx(Of(TAKEN["layers"]).eval(), (x,), dynamic_shapes=ROWS, capture="auto").report
    assert (taken.capture, taken.trace_failure) == ("run", "")
    fallen = to_onnx(Of(REFUSED["vmap"][0]).eval(), (x,), capture="auto").report
    assert fallen.capture == "torch.export"
    assert "BatchedTensor" in fallen.trace_failure


def test_auto_raises_what_torch_export_says_and_notes_what_the_runs_said(x: Tensor) -> None:
    with pytest.raises(CaptureError, match="GuardOnDataDependentSymNode") as refused:
        to_onnx(Of(lambda x: x * 2 if float(x.sum()) > 1 else x).eval(), (x,), capture="auto")
    assert refused.value.__notes__[0].startswith("capture by running the model also fails: ")


def test_what_torch_fails_at_is_not_logged(x: Tensor, caplog: pytest.LogCaptureFixture) -> None:
    with pytest.raises(ToOnnxError):
        to_onnx(Of(lambda x: torch.fft.hfft2(x + 0j)).eval(), (x,), dynamic_shapes=ROWS, capture="run")
    assert "torch._subclasses.fake_tensor" not in {record.name for record in caplog.records}


def test_which_axes_of_auto_move_is_left_to_torch_export(x: Tensor) -> None:
    program = to_onnx(Of(TAKEN["layers"]).eval(), (x,), dynamic_shapes=({0: Dim.AUTO, 1: Dim.AUTO},), capture="auto")
    assert "Dim.AUTO" in program.report.trace_failure
    assert program.model.graph.inputs[0].shape.is_dynamic(0)


def test_ends_of_a_dynamic_axis_are_kept(x: Tensor) -> None:
    model = Of(REFUSED_MOVING["a test of a size that decides another"][0]).eval()
    assert to_onnx(model, (x,), dynamic_shapes=({0: Dim.DYNAMIC(max=90)},), capture="run").model.graph.inputs[0].shape.is_dynamic(0)


def test_another_capture_is_refused(x: Tensor) -> None:
    with pytest.raises(UnsupportedArgument, match="capture='fast'"):
        to_onnx(Of(TAKEN["layers"]), (x,), capture="fast")


@pytest.mark.parametrize("options", [{"strict": True}, {"dump_exported_program": True}], ids=lambda options: next(iter(options)))
def test_what_torch_export_alone_does_is_left_to_it(options: dict[str, Any], x: Tensor) -> None:
    with pytest.raises(TraceUnsupported, match=r'is supported only with capture="torch\.export"'):
        to_onnx(Of(TAKEN["layers"]).eval(), (x,), capture="run", **options)


class Convnet(nn.Module):
    """Convolutions and pools of moving sides, statistics, and a head."""

    def __init__(self) -> None:
        super().__init__()
        self.body = nn.Sequential(nn.Conv2d(3, 4, 3, stride=2), nn.BatchNorm2d(4), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(4, 8, 3))
        self.head = nn.Linear(8, 5)

    def forward(self, image: Tensor) -> Tensor:
        return self.head(self.body(image).mean((2, 3)))


@pytest.mark.parametrize(
    ("model", "given", "shapes"),
    [
        (nn.Sequential(nn.Linear(4, 8), nn.ReLU()), torch.rand(2, 4), ROWS),
        (Convnet(), torch.rand(2, 3, 32, 32), ({0: "batch", 2: "height", 3: "width"},)),
        (nn.TransformerEncoderLayer(16, 4, 32, batch_first=True), torch.rand(2, 5, 16), ({0: "batch", 1: "seq"},)),
        (nn.GRU(4, 8, batch_first=True), torch.rand(2, 5, 4), ({0: "batch"},)),
    ],
    ids=["layers", "convnet", "transformer", "gru"],
)
def test_both_captures_call_the_same_operators(model: nn.Module, given: Tensor, shapes: Any) -> None:
    by_run = capture_by_running(model.eval(), (given,), {}, shapes)
    by_export = capture_by_export(model.eval(), (given,), {}, shapes)
    assert operators(by_run.program) == operators(by_export.program)
    assert sorted(by_run.dim_names.values()) == sorted(by_export.dim_names.values())
    last = [found.program.graph_signature.input_specs[-1].arg.name for found in (by_run, by_export)]
    assert last[0] == last[1]


def operators(program: Any) -> list[str]:
    """The operators of a graph, but for those that say nothing in a file."""
    silent = ("sym_size", "contiguous", "_assert", "alias", "detach", "lift_fresh", "<built-in")
    called = [str(node.target) for node in program.graph.nodes if node.op == "call_function"]
    return [name for name in called if not any(part in name for part in silent)]


def test_an_axis_named_as_a_sum_is_the_sum_of_the_others() -> None:
    class Longer(nn.Module):
        def forward(self, past: Tensor, new: Tensor, mask: Tensor) -> Tensor:
            return torch.cat([past, new]) * mask

    shapes = ({0: "past"}, {0: "seq"}, {0: "past+seq"})
    program = to_onnx(Longer(), (torch.rand(3), torch.rand(2), torch.rand(5)), dynamic_shapes=shapes, capture="run")
    past, new = torch.rand(9), torch.rand(4)
    torch.testing.assert_close(program(past, new, torch.ones(13))[0], torch.cat([past, new]))


@pytest.fixture
def one_thread() -> Iterator[None]:
    """Torch on one thread, as in a container, for the length of a test."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@pytest.mark.usefixtures("one_thread")
def test_a_kernel_that_torch_chooses_by_size_is_no_reason_to_refuse() -> None:
    model = nn.Conv2d(3, 4, 3).eval()  # one thread takes another kernel from 16 rows on
    program = to_onnx(model, (torch.rand(2, 3, 8, 8),), dynamic_shapes=ROWS, capture="run")
    image = torch.rand(20, 3, 8, 8)
    torch.testing.assert_close(program(image)[0], model(image))


def test_a_sparse_buffer_that_no_call_reads_is_left_out() -> None:
    class Aligned(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("heads", torch.eye(3).to_sparse(), persistent=False)

        def forward(self, x: Tensor) -> Tensor:
            return x * 2

    program = to_onnx(Aligned(), (torch.randn(2, 3),), dynamic_shapes=({0: "rows"},), capture="run")
    x = torch.randn(5, 3)
    torch.testing.assert_close(program(x)[0], x * 2)
