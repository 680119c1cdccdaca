"""Define one task of a sweep, and build the grid of tasks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ..cases import Case
from ..checks import must_be, must_be_all, must_be_names, must_be_whole
from ..defaults import MODES
from .records import Key


@dataclass(frozen=True)
class Task:
    """A run that will produce one record.

    Attributes:
        file: the user's file that contains the case; None for cases of the test suite.
        by: the function that runs the task, `module:function`. Its arguments are the task and a callback after the eager run.
        asked: further options for this function, as a string.
    """

    case: str
    exporter: str
    mode: str
    round: int = 1
    file: str | None = None
    by: str = "exportlab.sweep.observe:observe"
    asked: str = ""

    @property
    def key(self) -> Key:
        """The key of the task's record."""
        return Key(self.case, self.exporter, self.mode, self.round)


def grid(
    cases: Sequence[Case], exporters: Sequence[str], modes: Sequence[str] = MODES, rounds: int = 1, file: str | None = None
) -> list[Task]:
    """Return a task for each combination of case, exporter, mode and round. A case without dynamic dimensions is static only.

    Exporters are interleaved for a fair comparison: all exporters run a case before the next case starts, each case starts with a
    different exporter, and each round finishes before the next starts.

    Raises:
        TypeError: an argument has the wrong type. ValueError: `exporters` is empty, or `rounds` is 0.
    """
    must_be_all(Case, cases=cases)
    must_be_names(exporters=exporters, modes=modes)
    must_be_whole(1, rounds=rounds)
    must_be(str, type(None), file=file)
    if not exporters:
        raise ValueError("exporters is empty: name at least one")
    return list(_grid(cases, exporters, modes, rounds, file))


def _grid(cases: Sequence[Case], exporters: Sequence[str], modes: Sequence[str], rounds: int, file: str | None) -> Iterator[Task]:
    for turn in range(1, rounds + 1):
        for place, case in enumerate(cases, turn):
            begin = place % len(exporters)
            for mode in (mode for mode in modes if mode == "static" or case.moves):
                for exporter in (*exporters[begin:], *exporters[:begin]):
                    yield Task(case.name, exporter, mode, turn, file)
