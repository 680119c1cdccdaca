"""A plugin of pytest that tells which files passed, each as soon as the last of its tests has."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable

import pytest


class Passing:
    """Calls `passed` with a file, as pytest names it, once all of its tests have ended and none has failed. Works with pytest-xdist too."""

    def __init__(self, passed: Callable[[str], None]) -> None:
        self.passed = passed
        self.left: Counter[str] = Counter()
        self.failed: set[str] = set()

    def expect(self, tests: Iterable[str]) -> None:
        """Note how many tests each file has."""
        self.left = Counter(file_of(test) for test in tests)

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        """Without workers the session knows all tests."""
        if session.items:
            self.expect(item.nodeid for item in session.items)

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_node_collection_finished(self, ids: list[str]) -> None:
        """Each worker collects the same tests."""
        if not self.left:
            self.expect(ids)

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        """A file that cannot be collected fails, whatever else it holds."""
        if report.failed:
            self.failed.add(file_of(report.nodeid))

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Count a test when it is torn down, and a failure at any time."""
        file = file_of(report.nodeid)
        if report.failed:
            self.failed.add(file)
        if report.when == "teardown":
            self.left[file] -= 1
            if not self.left[file] and file not in self.failed:
                self.passed(file)


def file_of(nodeid: str) -> str:
    """Return the file that a test is in."""
    return nodeid.partition("::")[0]
