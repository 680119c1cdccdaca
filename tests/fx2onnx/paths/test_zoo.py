"""Cases of the zoo that torch.export refuses at moving sizes come out by running, right at sizes and values that were never run."""

from __future__ import annotations

import pytest

from content import zoo
from exportlab import to_onnx, verify
from exportlab.outcomes import Outcome
from fx2onnx import ToOnnxError
from fx2onnx.strategies.torch_export import capture_by_export

BRANCHES = (
    "all_or_nothing_by_a_flag",
    "assert_on_value",
    "branch_on_any",
    "branch_on_batch",
    "branch_on_item",
    "branch_on_value",
    "early_exit",
    "fallback_on_nan",
    "mask_dropped_if_all_true",
    "padded_to_even",
    "single_row_as_it_is",
    "switch_as_input",
    "try_to_test_a_value",
)
TAKEN_BY_RUNNING_ALONE = (
    *BRANCHES,
    "changed_through_data",
    "dtype_argument",
    "gru_time_first",
    "lstm_unbatched",
    "spatial_transformer",
    "unregistered_dataclass",
)


@pytest.mark.parametrize("name", TAKEN_BY_RUNNING_ALONE)
def test_what_torch_export_refuses_is_right(name: str) -> None:
    case = zoo.get(name).build()
    sample = case.samples[0]
    with pytest.raises(ToOnnxError):
        capture_by_export(case.module, sample.args, sample.kwargs, case.dynamic_shapes)
    program = to_onnx(case.module, sample.args, kwargs=sample.kwargs, dynamic_shapes=case.dynamic_shapes, capture="auto")
    assert program.report.capture == "run"
    assert verify(program, case.module, case.samples).outcome is Outcome.OK


TAKEN_BY_RUNNING_TOO = (
    "antialiased",
    "branches_with_names_of_outside",
    "cond_with_an_identity",
    "custom_op_composed",
    "deberta2",
    "greedy_tokens",
    "index_update",
    "scan_reads_its_start",
    "scan_with_layers",
    "sizes_as_a_tensor",
    "three_values_carried",
)


@pytest.mark.parametrize("name", TAKEN_BY_RUNNING_TOO)
def test_what_running_once_refused_is_right(name: str) -> None:
    case = zoo.get(name).build()
    sample = case.samples[0]
    program = to_onnx(case.module, sample.args, kwargs=sample.kwargs, dynamic_shapes=case.dynamic_shapes, capture="run")
    assert verify(program, case.module, case.samples).outcome is Outcome.OK
