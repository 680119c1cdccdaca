"""One task of a sweep, and the grid of them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ..cases import Case
from ..checks import must_be, must_be_all, must_be_names, must_be_whole
from ..defaults import MODES
from .records import Key


@dataclass(frozen=True)
class Task:
    """One record to be made.

    Attributes:
        file: that of the user's own cases; None for the zoo's.
        by: the function that makes it, `module:function`; it takes the task, and what is to be called once the case ran in eager.
        asked: what else that function is told, in its own words.
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
        """The key of the record that it leaves."""
        return Key(self.case, self.exporter, self.mode, self.round)


def grid(
    cases: Sequence[Case], exporters: Sequence[str], modes: Sequence[str] = MODES, rounds: int = 1, file: str | None = None
) -> list[Task]:
    """Return every case by every exporter in every mode, as often as there are rounds; a case whose sizes never move is static only.

    Exporters are interleaved: all take a case before the next case comes, each case begins with another exporter, and a round
    is done before the next begins. So no exporter has the machine at its best.

    Raises:
        TypeError: an argument is of another kind. ValueError: there is no exporter, or no round.
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
