"""What a task that hangs or dies costs: itself."""

from __future__ import annotations

import os
import time

from crew import Lost, done

from exportlab.outcomes import Outcome

FATES = {"dies": lambda: os._exit(3), "hangs": lambda: time.sleep(60), "works": lambda: "well"}


def fate(name: str) -> object:
    return FATES[name]()


def test_a_task_that_takes_too_long_or_dies_costs_only_itself() -> None:
    came = list(done(["works", "dies", "works", "hangs", "works"], fate, workers=1, limit=1))
    assert [result.outcome if isinstance(result, Lost) else result for _, result in came] == [
        "well",
        Outcome.CRASH,
        "well",
        Outcome.TIMEOUT,
        "well",
    ]
    assert [task for task, _ in came] == ["works", "dies", "works", "hangs", "works"]
