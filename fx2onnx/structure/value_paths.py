"""Find the paths of a module: one with the outcomes of its values, and one more per test, if paths join again after it."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import torch

from ..trace.events import alike
from ..trace.refusal import TraceUnsupported
from .path_combinations import ALL, covering
from .path_events import PathEvents, Use
from .path_insertion import Insertion
from .path_tree import Block, Call, Fork, Tree
from .paths_of_values import BRANCHES, MOST_ENDED, Path, every_path, refusal_of_paths, test_lines
from .phi import Made, Phis
from .stale_reads import first_stale

Run = Callable[[Sequence[bool]], Path]
Probe = Callable[[Sequence[bool], Path], "Path | None"]  # one run as a path, if that is sufficient
ROUNDS = 3  # of combinations, while they yield new results
MOST_WANTED = 32  # passes in which missing paths are run
REALIGNED = 3  # runs until the outcomes after a flipped test are aligned


class NotJoined(TraceUnsupported):
    """A combination of decisions leads to other calls than the single decisions predict."""


def paths_of_values(run: Run, probe: Probe) -> list[Path]:
    """Return enough paths to predict a module for all decisions of its data-dependent tests.

    Args:
        run: returns the path with these first outcomes.
        probe: returns a path with these outcomes from a single run, with the inputs of another path.

    Raises:
        TraceUnsupported: If there are too many.
        Exception: Whatever a run raises.
    """
    known: dict[tuple[bool, ...], Path] = {}

    def remembered(given: Sequence[bool]) -> Path:
        if tuple(given) not in known:
            path = run(given)
            known[tuple(given)] = known[path.answers] = path
        return known[tuple(given)]

    try:
        return Exploration(remembered, probe).paths()
    except NotJoined:
        return every_path(remembered)


class Exploration:
    """Flips each test of a module once, and compares some combinations of decisions with the resulting program."""

    def __init__(self, run: Run, probe: Probe) -> None:
        self._run, self._probe, self._tree = run, probe, Tree()
        self._paths: list[Path] = []
        self._ended: dict[tuple[bool, ...], Path] = {}
        self._constants: dict[str, torch.Tensor] = {}

    def paths(self) -> list[Path]:
        """Return the paths, including those that raise.

        Raises:
            NotJoined: If the paths do not predict others.
            TraceUnsupported: If there are too many.
        """
        first = self._alive(())
        if first is None:
            return [*self._ended.values()]
        self._insert(first)
        while True:
            self._flip_all()
            phis = self._check_combinations()
            if (stale := first_stale(self._tree, phis)) is None:
                return [*self._paths, *self._ended.values()]
            self._tree.widen(*stale)
            for number in sorted(self._tree.find_probed_paths()):
                self._insert(self._run_with_answers(self._paths[number].answers))

    def _flip_all(self) -> None:
        """Run both outcomes of each test.

        Raises:
            TraceUnsupported: If there are too many paths through the program.
        """
        while (test := next((test for test in self._last_first() if not test.is_closed), None)) is not None:
            self._flip(test)
            if self._tree.width() > BRANCHES:
                raise refusal_of_paths([*self._paths, *self._ended.values()], sum(1 for _ in self._last_first()))

    def _last_first(self) -> list[Call]:
        return [*self._tree.one_sided()][::-1]

    def _insert(self, path: Path) -> bool:
        self._paths.append(path)
        return Insertion(self._tree).insert(len(self._paths) - 1, PathEvents(path, self._constants))

    def _flip(self, test: Call) -> None:
        """Run the other outcome of a test."""
        line, number = self._tree.lines[test.chosen], test.events[test.chosen]
        before = line.answers_before(number)
        flipped = (*before, not line.events[number].answer)
        found = self._alive(flipped, line.path)
        test.is_closed = found is None
        if found is not None and not self._insert(found):
            raise NotJoined("the other outcome of a test of a value adds no branch")

    def _alive(self, given: tuple[bool, ...], like: Path | None = None) -> Path | None:
        """Return a path with these first outcomes that does not raise, aligned with another path; None if all of them raise."""
        path = self._run_with_answers(given)
        if like is not None:
            path = self._realign_answers(path, like, len(given))
        if path.exception is None:
            return path
        self._ended[path.answers] = path
        if len(self._ended) > MOST_ENDED:
            raise refusal_of_paths([*self._paths, *self._ended.values()], 1)
        others = ((*path.answers[:place], not path.answers[place]) for place in reversed(range(len(given), len(path.answers))))
        return next((found for other in others if (found := self._alive(other)) is not None), None)

    def _run_with_answers(self, given: tuple[bool, ...], least: int | None = None) -> Path:
        path = self._run(given)
        least = len(given) if least is None else least
        if path.answers[:least] != given[:least]:
            raise TraceUnsupported(
                f"two runs of the model evaluate different conditions on values: {', '.join(dict.fromkeys(test_lines(path)))}"
            )
        return path

    def _realign_answers(self, path: Path, like: Path, least: int) -> Path:
        """Return the path with the outcomes of its last tests set to those of another path that makes the same tests."""
        wanted = test_lines(like)[least:]
        for _ in range(REALIGNED):
            shared = _shared_from_the_end(test_lines(path)[least:], wanted)
            answers = (*path.answers[: len(path.answers) - shared], *like.answers[len(like.answers) - shared :])
            if answers == path.answers:
                break
            path = self._run_with_answers(answers, least)
        return path

    def _check_combinations(self) -> Phis:
        """Run some combinations of outcomes, and return the phis of all paths.

        Raises:
            NotJoined: If they make unknown calls, or yield new results in every round.
        """
        for number in range(ROUNDS):
            phis = self._resolve_phis()
            forks = dict(self._forks(self._tree.root, {}))
            places = {fork: place for place, fork in enumerate(forks)}
            needs = [{places[other]: answer for other, answer in around.items()} for around in forks.values()]
            before = len(self._paths)
            if not sum([self._adds(phis, dict(zip(forks, row, strict=True))) for row in covering(needs, number)]):
                return phis if len(self._paths) == before else self._resolve_phis()
        if len(forks) > ALL:
            raise NotJoined("each round of combinations yields new results")
        return self._resolve_phis()

    def _resolve_phis(self) -> Phis:
        """The phis of all paths, after running the paths that are missing for them.

        Raises:
            NotJoined: If that does not terminate.
        """
        for _ in range(MOST_WANTED):
            phis, before = Phis(self._tree), len(self._paths)
            for fork, path in phis.wanted:
                self._adds(phis, self._other_way(fork, path))
            if len(self._paths) == before:
                break
        if not phis.missing:
            return phis
        raise NotJoined("the outcomes of tests do not determine where a tensor comes from")

    def _other_way(self, fork: Fork, path: int) -> dict[Fork, bool]:
        """The decisions of a path with one flipped."""
        decisions: dict[Fork, bool] = {}
        for other, _ in self._forks(self._tree.root, {}):
            answers = (self._tree.answer(other, number) for number in (path, *self._tree.lines))
            decisions[other] = next(answer for answer in answers if answer is not None)
        return {**decisions, fork: not decisions[fork]}

    def _forks(self, block: Block, around: dict[Fork, bool]) -> Iterator[tuple[Fork, dict[Fork, bool]]]:
        """Yield the forks, with the decisions of the enclosing ones."""
        for item in block:
            if isinstance(item, Fork):
                yield item, around
                for answer, arm in item.arms.items():
                    yield from self._forks(arm, {**around, item: answer})

    def _adds(self, phis: Phis, decisions: dict[Fork, bool]) -> bool:
        """Run a combination of decisions, unless it was run, and return whether its result is new."""
        answers = self._answers(decisions, self._tree.root)
        if any(path.answers == answers for path in self._paths):
            return False
        path = self._probe(answers, self._paths[0])
        if (
            path is None
            or path.answers != answers
            or not Insertion(self._tree).follows(len(self._paths), PathEvents(path, self._constants))
        ):
            path = self._run_with_answers(answers)
        if path.exception is not None or path.answers != answers or self._insert(path):
            raise NotJoined("a combination of outcomes leads to other calls")
        return not self._is_as_known(phis, len(self._paths) - 1)

    def _answers(self, decisions: dict[Fork, bool], block: Block) -> tuple[bool, ...]:
        """The outcomes of a path with these decisions."""
        return tuple(self._yield_answers(decisions, block))

    def _yield_answers(self, decisions: dict[Fork, bool], block: Block) -> Iterator[bool]:
        for at, item in enumerate(block):
            if isinstance(item, Fork):
                yield decisions[item]
                yield from self._yield_answers(decisions, item.arms[decisions[item]])
            elif self._tree.is_branch(item) and not self._tree.is_forked(block, at):
                answer = self._tree.event(item).answer
                assert answer is not None
                yield answer

    def _is_as_known(self, phis: Phis, path: int) -> bool:
        """Whether the tensors that a path uses are those that the program predicts."""
        line = self._tree.lines[path]
        first = self._tree.lines[0]
        if not all(isinstance(one, Use) or alike(one, other) for one, other in zip(first.outputs, line.outputs, strict=False)):
            raise NotJoined("a combination of outcomes returns another constant")
        where = self._tree.where()
        for number, event in enumerate(line.events):
            values = phis.leaves.get(where[path, number], {})
            for at, use in event.uses:
                if at not in values or phis.on(values[at], path) != self._find_definition(where, path, use):
                    return False
        results = ((number, use) for number, use in enumerate(line.outputs) if isinstance(use, Use))
        return all(
            number in phis.results and phis.on(phis.results[number], path) == self._find_definition(where, path, use)
            for number, use in results
        )

    @staticmethod
    def _find_definition(where: dict[tuple[int, int], Call], path: int, use: Use) -> Made:
        return Made(where[path, use.source] if isinstance(use.source, int) else use.source, use.part)


def _shared_from_the_end(one: Sequence[str], other: Sequence[str]) -> int:
    """The number of last lines that two paths have in common."""
    pairs = zip(reversed(one), reversed(other), strict=False)
    return next((number for number, pair in enumerate(pairs) if pair[0] != pair[1]), min(len(one), len(other)))
