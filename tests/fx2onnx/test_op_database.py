"""A slice of torch's database of operators is exported right, and the stored list has nothing that is exported wrong."""

from __future__ import annotations

import pytest
from op_database import SERIOUS, Task, database, outcome_of, stored, tasks

from exportlab.outcomes import Outcome

STEP = 12
SILENT = [outcome for outcome in Outcome if outcome.silent]
WERE_WRONG = ("addmm", "full_like", "log_softmax.with_dtype", "nonzero", "nn.functional.avg_pool2d", "var.unbiased", "count_nonzero")
SLICE = tuple(dict.fromkeys([*WERE_WRONG, *list(database())[::STEP]]))
KNOWN = {result.task: result for result in stored()}


@pytest.mark.parametrize("task", tasks(SLICE, ["float32"], ["dynamic"]), ids=str)
def test_an_operator_is_as_the_stored_list_says_or_better(task: Task) -> None:
    result = outcome_of(task, 1)
    assert result.outcome not in SILENT, result.detail
    before = KNOWN[task].outcome if task in KNOWN else Outcome.OK
    assert SERIOUS.index(result.outcome) >= SERIOUS.index(before), result.detail


def test_nothing_in_the_stored_list_is_wrong_or_frozen() -> None:
    assert not [str(result.task) for result in KNOWN.values() if result.outcome in SILENT]


def test_nothing_in_the_stored_list_is_an_error_of_the_converter_itself() -> None:
    assert not [
        f"{result.task}: {result.detail}"
        for result in KNOWN.values()
        if result.detail.startswith("bug:") or result.outcome == Outcome.CRASH
    ]
