"""The order of tasks: one alone of a case that is not known yet, and none of one that eager cannot run."""

from __future__ import annotations

from dataclasses import replace

import pytest

from exportlab.outcomes import Outcome
from exportlab.sweep.process_worker import CaseError, EagerError
from exportlab.sweep.records import Record
from exportlab.sweep.scheduler import Scheduler, select_pending_tasks
from exportlab.sweep.task import Task

A1, A2, A3 = (Task("a", exporter, "static") for exporter in ("x", "y", "z"))
B1, B2 = (Task("b", exporter, "static") for exporter in ("x", "y"))
LATER = replace(A1, round=2)
RIGHT = Record("a", "x", "static", Outcome.OK)
HUNG = replace(RIGHT, outcome=Outcome.TIMEOUT, error="eager itself: TimeLimit: not done after 60 s")
KILLED = replace(RIGHT, outcome=Outcome.CRASH, error="eager itself: ProcessDied: killed by SIGKILL")


def ready(queue: Scheduler) -> list[Task]:
    found = []
    while (task := queue.next()) is not None:
        found.append(task)
    return found


def test_of_a_new_case_one_task_goes_alone_and_the_others_follow() -> None:
    queue = Scheduler([A1, A2, A3, B1, B2])
    assert ready(queue) == [A1, B1]
    assert queue.done(A1, RIGHT) == []
    assert ready(queue) == [A2, A3]
    assert queue.done(B1, replace(RIGHT, case="b", outcome=Outcome.CAPTURE)) == []
    assert ready(queue) == [B2]


@pytest.mark.parametrize("known", [True, False])
def test_what_hangs_in_eager_ends_the_other_tasks_of_its_case(known: bool) -> None:
    queue = Scheduler([A2, A3, B1, LATER] if known else [A1, A2, A3, B1, LATER], [HUNG] if known else [])
    if not known:
        assert queue.next() == A1
    ended = queue.decided() if known else queue.done(A1, HUNG)
    assert ended == [replace(HUNG, exporter="y"), replace(HUNG, exporter="z"), replace(HUNG, round=2)]
    assert ready(queue) == [B1]


def test_what_raises_in_eager_ends_them_by_the_same_error() -> None:
    queue, error = Scheduler([A1, A2, B1]), EagerError("a: no")
    queue.next()
    assert queue.done(A1, error) == [error]
    assert ready(queue) == [B1]


def test_an_error_after_eager_is_that_of_its_task_alone() -> None:
    queue = Scheduler([A1, A2])
    queue.next()
    assert queue.done(A1, CaseError("a: the report")) == []
    assert ready(queue) == [A2]


def test_what_was_killed_from_outside_says_nothing_of_eager() -> None:
    queue = Scheduler([A1, A2, A3])
    queue.next()
    assert queue.done(A1, KILLED) == []
    assert ready(queue) == [A2]


def test_a_case_that_ran_is_not_given_up_for_one_that_hangs_later() -> None:
    queue = Scheduler([A2, A3], [RIGHT])
    assert ready(queue) == [A2, A3]
    queue = Scheduler([A1, A2, A3], [RIGHT])
    queue.next()
    assert queue.done(A1, HUNG) == []


def test_a_round_waits_for_the_one_before() -> None:
    queue = Scheduler([A1, A2, LATER])
    assert ready(queue) == [A1]
    queue.done(A1, RIGHT)
    assert ready(queue) == [A2, LATER]


@pytest.mark.parametrize(
    ("error", "again"),
    [
        ("ProcessDied: killed by SIGKILL", True),
        ("ProcessDied: the worker: killed by SIGTERM", True),
        ("eager itself: ProcessDied: killed by SIGKILL", True),
        ("ProcessDied: killed by SIGSEGV", False),
        ("ProcessDied: exit code 9", False),
        ("MemoryLimit: the process took more than 8 GiB and was ended", False),
    ],
)
def test_what_was_killed_from_outside_is_tried_once_more(error: str, again: bool) -> None:
    crash = replace(RIGHT, outcome=Outcome.CRASH, error=error)
    assert select_pending_tasks([A1, A2], [crash]) == ([A1, A2] if again else [A2])
    assert select_pending_tasks([A1, A2], [crash, crash]) == [A2]
    assert select_pending_tasks([A1, A2], [crash, RIGHT]) == [A2]


def test_what_hit_the_time_limit_is_not_tried_again() -> None:
    assert select_pending_tasks([A1], [replace(RIGHT, outcome=Outcome.TIMEOUT, error="TimeLimit: not done after 60 s")]) == []
