"""A test of a size that all samples pass alike: a file that has lost its other side is found beyond it, where that can be afforded."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from test_verify import Pretender
from torch import Tensor, nn

from exportlab import Sample, export, to_onnx, verify
from exportlab.exporters import artifact_of
from exportlab.outcomes import Outcome
from exportlab.verification.size_tests import cost_of, sizes_tested
from exportlab.verification.thresholds import NAME, resize_axes

MOVES = torch.export.Dim.DYNAMIC
SAMPLES = [(torch.rand(4, 3),), (torch.rand(8, 3),)]


class Deciding(nn.Module):
    """Doubles its argument where a test of its sizes holds, and triples it elsewhere."""

    def __init__(self, test: Callable[[Tensor], bool]) -> None:
        super().__init__()
        self.test = test

    def forward(self, x: Tensor) -> Tensor:
        return x * 2 if self.test(x) else x * 3


KINDS: dict[str, Callable[[Tensor], bool]] = {
    "above": lambda x: x.shape[0] > 5000,
    "at least": lambda x: len(x) >= 300,
    "one number": lambda x: x.shape[0] == 77,
    "after arithmetic": lambda x: 3 * x.shape[0] + 1 > 15_000,
    "elements": lambda x: x.numel() > 1000,
    "a square": lambda x: x.shape[0] ** 2 > 10_000,
    "a quotient": lambda x: x.shape[0] // 16 > 12,
    "odd": lambda x: x.shape[0] % 2 == 1,
    "a multiple": lambda x: x.shape[0] % 7 == 0,
    "after it was read": lambda x: int(x.shape[0]) > 0 and x.shape[0] + torch.ones(x.shape[0]).shape[0] > 600,
}


def frozen(module: Deciding) -> Pretender:
    """What a file does that kept the side of the export."""
    kept = 2 if module.test(SAMPLES[0][0]) else 3
    return Pretender(lambda x: x * kept)


@pytest.mark.parametrize("kind", KINDS)
def test_a_frozen_side_is_found_beside_the_test(kind: str) -> None:
    module = Deciding(KINDS[kind])
    report = verify(frozen(module), module, SAMPLES)
    assert report.outcome is Outcome.FROZEN
    assert f", next to the test at {__file__.rpartition('/')[2]}:" in report.failed[0].detail
    assert verify(Pretender(lambda x: module(x)), module, SAMPLES).outcome is Outcome.OK


def test_a_file_with_one_multiplication_is_frozen_by_any_exporter_and_by_one_sample() -> None:
    module = Deciding(KINDS["above"])
    file = export("to_onnx", Deciding(lambda x: False), SAMPLES[0], dynamic_shapes=({0: "n"},))
    assert file.ops().total() == 1
    for samples in (SAMPLES, SAMPLES[:1]):
        report = verify(file, module, samples)
        assert report.outcome is Outcome.FROZEN
        assert [check.inputs for check in report.failed] == ["f32[5001, 3]"]


def test_a_program_that_refuses_what_lies_beyond_is_right_and_says_so() -> None:
    module = Deciding(KINDS["above"])
    program = torch.export.export(module, SAMPLES[0], dynamic_shapes=({0: MOVES},))
    report = verify(program, module, SAMPLES)
    assert report.outcome is Outcome.OK
    assert "it rejects this size, which no sample has" in str(report)


def test_samples_on_both_sides_leave_nothing_to_try() -> None:
    module = Deciding(lambda x: x.shape[0] > 6)
    assert not [check for check in verify(Pretender(lambda x: module(x)), module, SAMPLES).checks if check.name == NAME]


def test_a_file_of_one_size_is_not_asked_for_others() -> None:
    module = Deciding(KINDS["above"])
    report = verify(export("to_onnx", module, SAMPLES[0]), module, SAMPLES[0])
    assert report.outcome is Outcome.OK
    assert not [check for check in report.checks if check.name == NAME]


def test_a_size_that_costs_too_much_is_left_out_with_its_reason() -> None:
    large = Deciding(lambda x: x.shape[0] > 2**30)
    (left,) = [check for check in verify(frozen(large), large, SAMPLES).checks if check.name == NAME]
    assert left.outcome is Outcome.SKIPPED
    assert "not run: its arguments would need 12,288 MiB (the test at " in left.detail

    class Pairs(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            return (x[:, None] - x).sum(1) * (2 if x.shape[0] > 100_000 else 3)

    (left,) = [check for check in verify(Pretender(lambda x: Pairs()(x)), Pairs(), SAMPLES).checks if check.name == NAME]
    assert "a result would need 114,441 MiB" in left.detail


def test_a_number_that_the_file_compares_a_size_with_is_tried_as_well() -> None:
    """The file has a threshold that the model has not, and only that number tells."""
    file = to_onnx(Deciding(lambda x: x.shape[0] > 40), (torch.rand(50, 3),), dynamic_shapes=({0: "n"},))
    module = Deciding(lambda x: False)
    assert artifact_of(file).compared_sizes() >= {40}
    assert verify(file, module, [(torch.rand(4, 3),), (torch.rand(8, 3),)]).outcome is Outcome.FROZEN


def test_a_model_whose_tests_cannot_all_be_read_is_told() -> None:
    class Reads(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            y = x * 2 if x.shape[0] > 500 else x * 3
            return y if float(x.sum()) > 0 else -y

    report = verify(Pretender(lambda x: x * 3 if float(x.sum()) > 0 else x * -3), Reads(), SAMPLES)
    assert report.outcome is Outcome.FROZEN
    assert any(check.detail == "the model's tests of sizes are known up to its first test of a value" for check in report.checks)


def test_tests_of_torch_and_of_what_is_no_test_are_none() -> None:
    class Plain(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            return torch.cat([x.reshape(-1, 3)[: max(x.shape[0], 1)], torch.zeros(int(x.shape[0]), 3)]).transpose(0, 1).contiguous()

    read = sizes_tested(Plain(), Sample(SAMPLES[0]), {(0, 0): "n"})
    assert not read.problem
    assert all("max(" in test.line for test in read.tests)


def test_a_resized_sample_repeats_its_values_in_the_axes_of_one_name() -> None:
    words, mask = torch.arange(6).reshape(2, 3), torch.tensor([[True, True, False]] * 2)
    made = resize_axes(Sample((words, mask), {"again": words}), {(0, 1): "s", (1, 1): "s"}, "s", 5)
    assert made.args[0].tolist() == [[0, 1, 2, 0, 1], [3, 4, 5, 3, 4]]
    assert made.args[1].tolist() == [[True, True, False, True, True]] * 2
    assert made.kwargs["again"] is made.args[0]


def test_what_a_call_would_compute_is_counted_without_computing_it() -> None:
    cost = cost_of(nn.Linear(3, 1000), Sample((torch.rand(50, 3),)))
    assert cost.largest == 50 * 1000 * 4
    assert cost.together >= cost.largest


def test_a_side_that_the_export_lists_as_a_limit_is_not_run() -> None:
    module = Deciding(lambda x: x.shape[0] > 2)
    accepted = to_onnx(module, SAMPLES[0], dynamic_shapes=({0: "n"},), capture="torch.export", accept_ranges=("n",))
    report = verify(accepted, module, SAMPLES)
    assert report.outcome is Outcome.OK
    (check,) = (check for check in report.checks if check.name == NAME)
    assert check.detail.startswith("not run: the export lists this as a limit (the test at test_thresholds.py:")
