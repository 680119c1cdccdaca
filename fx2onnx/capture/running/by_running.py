"""Capturing by running: settings, traces, one graph, and whether it holds at every size that was asked for."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext, suppress
from functools import partial
from typing import Any

from torch import nn
from torch.fx.experimental.symbolic_shapes import ShapeEnv
from torch.utils import _pytree as pytree

from ...errors import ToOnnxError
from ...patches.module_to import casts_of_parts
from ..accepted import constants_accepted
from ..attribute_mutation import only_harmless_mutations
from ..by_export import Capture, check_no_part_is_scripted, kept_apart
from ..dims import check_accepted
from ..dynamic_shapes import check_dynamic_dims, dynamic_dims, moving_numbers
from ..gradients import gradients_noted
from ..keywords import named_where_they_can_be
from .arguments import check_arguments
from .as_written import calls_as_written
from .asked_by_libraries import is_of_library
from .branches.empty import with_empty
from .branches.explore import paths_of_values
from .branches.joined import Joined
from .branches.paths import Path, check_changed_inputs
from .branches.probe import probe
from .branches.regions import Regions
from .broadcast import paths_of
from .ends import ends_kept
from .equal_blocks import EqualBlocks
from .example import with_general_sizes, with_ties
from .explain import Ambiguous
from .inner_graphs import functions_called_as_they_are
from .lines import Place
from .loops.replay import has_loops
from .refusal import (
    CannotRun,
    LeftOut,
    LoopOnValue,
    NumbersMove,
    SeenByRunsAlone,
    SizeRead,
    TooMuchWork,
    ValueRead,
)
from .replaced import longer_tables
from .runs import Runs
from .sample import Axes
from .script import Script, Settling
from .special_sizes import is_right_at
from .unify import Arguments
from .value_runs import with_values

SETTLED = "the value read from weights or buffers there is a constant of the exported model; other weights do not change it"


def capture_by_running(
    model: nn.Module,
    args: tuple[Any, ...],
    kwargs: Mapping[str, Any],
    dynamic_shapes: Any = None,
    accept_ranges: Sequence[str] = (),
) -> Capture:
    """Capture a module by running it at a few settings of its moving sizes.

    Raises:
        CannotRun: the runs do not show what a file would have to do; torch.export may know.
        FrozenDimension: an axis asked to be dynamic is not. MutationError: another call would find what this one left.
    """
    ways: list[Callable[[], AbstractContextManager[None]]] = [nullcontext, calls_as_written]  # which takes a little longer
    first, second = reversed(ways) if is_of_library(model) else ways
    try:
        with first():
            return _captured(model, args, kwargs, dynamic_shapes, accept_ranges)
    except (LeftOut, NumbersMove) as error:
        try:
            with second():
                return _captured(model, args, kwargs, dynamic_shapes, accept_ranges)
        except (SeenByRunsAlone, TooMuchWork):
            raise
        except ToOnnxError:
            raise error from None


def _captured(
    model: nn.Module, args: tuple[Any, ...], kwargs: Mapping[str, Any], dynamic_shapes: Any, accept_ranges: Sequence[str]
) -> Capture:
    check_no_part_is_scripted(model)
    args, kwargs = kept_apart(args, dict(kwargs))
    asked = dynamic_dims(model, args, kwargs, dynamic_shapes)
    check_accepted(accept_ranges, asked)
    leaves = pytree.tree_leaves((args, kwargs))
    check_arguments(leaves, moving_numbers(model, args, kwargs, dynamic_shapes), dynamic_shapes)
    with (
        only_harmless_mutations(model, args, kwargs),
        named_where_they_can_be(model, args, kwargs, dynamic_shapes),
        functions_called_as_they_are(bool(asked)),
        longer_tables(model, (args, kwargs)),
        casts_of_parts(model),
        gradients_noted(model),
    ):
        args, kwargs = with_general_sizes(model, asked, (args, kwargs))
        asked = dynamic_dims(model, args, kwargs, dynamic_shapes)
        leaves = pytree.tree_leaves((args, kwargs))
        tied = with_ties(model, asked, (args, kwargs))
        accepted = tuple({dim.name: None for dim, before in zip(tied, asked, strict=True) if before.name in accept_ranges})
        axes = Axes.of(tied, leaves)
        symbols = [(dim, axes.sizes[dim.tensor, dim.axis]) for dim in tied]
        settling = Settling()
        capture = partial(_paths, model, settling)
        notes, values = partial(_note_tests, model, settling), partial(with_values, model, settling)
        regions = Regions(capture, notes, values, partial(is_right_at, model), symbols, accepted)
        paths = paths_of(regions, capture, tied, axes, (args, kwargs))
        joined = Joined(paths, axes)
        with regions.explaining():
            program = joined.program()
        promised = ends_kept(model, axes, (args, kwargs), tied, accepted)
        if (further := with_empty(paths, program, model, axes, (args, kwargs), capture)) is not None:
            joined = Joined(further, axes)
            program = joined.program()
    check_changed_inputs(paths, leaves)
    check_dynamic_dims(program, symbols, accepted, ShapeEnv())  # type: ignore[arg-type]  # it reads graph and signature alone
    names = {symbol: dim.name for dim, symbol in reversed(symbols) if dim.named}
    names |= {symbol: name for symbol, name in axes.fresh.names.items() if name not in names.values()}
    settled = (f"{line}: {SETTLED}" for line in settling.lines)
    lost = constants_accepted(program, symbols, accepted)  # type: ignore[arg-type]  # as above
    limits = (*regions.limits, *lost, *joined.limits, *program.limits, *settled, *promised)
    return Capture(program, names, by="run", branches=tuple(joined.branches), limits=limits)  # type: ignore[arg-type]


def _note_tests(model: nn.Module, settling: Settling, axes: Axes, arguments: Arguments) -> None:
    """Run it with symbols for sizes, so that these axes note the tests on the way, as far as runs at longer sizes make the same calls."""
    runs = Runs(model, axes, arguments, EqualBlocks(model), settling)
    with suppress(CannotRun, Ambiguous):
        runs.run_spare()
        runs.note_tests()


def _paths(model: nn.Module, settling: Settling, axes: Axes, arguments: Arguments) -> list[Path]:
    """Return what runs show at these sizes, each test of a value answered both ways.

    What follows from weights alone is tested like other values, so that a file follows weights that it is given. Where that is refused
    and values of weights were asked for, these count as constants.
    """
    try:
        found = _rolled_up(Runner(model, axes, arguments, settling))
    except CannotRun as error:
        if settling.has_one_answer or not settling.was_asked or isinstance(error, (SeenByRunsAlone, TooMuchWork)):
            raise
        settling.has_one_answer = True
        try:
            found = _rolled_up(Runner(model, axes, arguments, settling))
        except CannotRun:
            raise error from None
    for path in found:
        path.check_small(axes)
    return found


def _rolled_up(runner: Runner) -> list[Path]:
    """Return all paths, with each `while` that a value ends rolled up, and the integers that are sizes read as such."""
    while True:
        try:
            return paths_of_values(runner.path, runner.probe)
        except LoopOnValue as error:
            if error.place in runner.whiles:
                raise
            runner.whiles |= {error.place}
        except SizeRead as error:
            if not runner.read_as_size(error.place):
                raise


class Runner:
    """Runs a module with given answers to its first tests of values.

    Attributes:
        whiles: the loops that are rolled up.
    """

    def __init__(self, model: nn.Module, axes: Axes, arguments: Arguments, settling: Settling) -> None:
        self._model, self._axes, self._arguments, self._settling = model, axes, arguments, settling
        self._blocks = EqualBlocks(model)
        self._reads: list[dict[str, Any]] | None = None  # of the last path
        self.whiles: frozenset[Place] = frozenset()

    def path(self, given: Sequence[bool]) -> Path:
        """Return what runs show that answer the first tests so."""
        reads: list[dict[str, Any]] | None = None
        while True:
            try:
                runs = Runs(self._model, self._axes, self._arguments, self._blocks, self._settling, given, reads, self.whiles)
                program, ended = runs.program()
                self._reads = reads
                return Path(tuple(runs.answers), program, runs.small, ended, self._axes)
            except ValueRead as error:
                if reads is not None and (error.names is None or any(error.names is names for names in reads)):
                    raise
                reads = [*(reads or []), *([] if error.names is None else [error.names])]

    def read_as_size(self, place: Place | None) -> bool:
        """Read the integer at a place as a size from now on; return False where it is read so already."""
        fresh, environment = self._axes.fresh, self._axes.environment
        if place is None or place in fresh.read:
            return False
        fresh.read.add(place)
        environment.guards.clear()  # the calls behind it are counted anew
        environment.followed.clear()
        return True

    def probe(self, given: Sequence[bool], like: Path) -> Path | None:
        """Return what one run shows that answers tests so, where it tells that."""
        if self.whiles or has_loops(like.program):
            return None
        script = Script(given, self._reads, self._settling, sizes=frozenset(self._axes.fresh.read))
        return probe(self._model, self._axes, self._arguments, script, like)
