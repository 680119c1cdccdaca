"""Capturing by running: settings, traces, one graph, and whether it holds at every size that was asked for."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, nullcontext
from functools import partial
from typing import Any

from torch import nn

from ..compat import trees as pytree
from ..compat.shape_env import ShapeEnv
from ..errors import ToOnnxError
from ..guards.accepted_ranges import constants_accepted
from ..guards.dims import check_accepted
from ..guards.dynamic_shapes import check_dynamic_dims, dynamic_dims, moving_numbers
from ..patches.module_to import allow_harmless_casts
from ..structure.capture_result import Capture, refuse_scripted_parts, separate_shared_inputs
from ..structure.equal_blocks import EqualBlocks
from ..structure.join import PathMerger
from ..structure.path_probe import probe
from ..structure.paths_of_values import Path, check_changed_inputs
from ..structure.value_paths import paths_of_values
from ..trace.arguments import check_arguments
from ..trace.canonical_indexing import canonical_calls
from ..trace.events import Arguments
from ..trace.gradients import explain_gradients
from ..trace.grown_buffers import allow_grown_buffers
from ..trace.hidden_state import only_harmless_mutations
from ..trace.keywords import name_keywords
from ..trace.refusal import (
    CallSequenceDiverged,
    ConstantDiverged,
    NeedsRealValues,
    NoFallback,
    Restart,
    TraceUnsupported,
)
from ..trace.size_domain import SizeDomain
from ..validate.range_ends import ends_kept
from ..validate.replay import has_loops
from ..validate.special_sizes import is_right_at
from .broadcast import paths_of
from .empty_sizes import add_empty_path
from .example import generalise_sizes, tie_dims
from .guard_forking import GuardForking
from .higher_order_ops import trace_higher_order_functions
from .library_sizes import is_of_library
from .session import Session
from .trace_driver import TraceDriver
from .value_runs import find_values

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
        TraceUnsupported: the runs do not show what a file would have to do; torch.export may know.
        FrozenDimension: an axis asked to be dynamic is not. MutationError: another call would find what this one left.
    """
    ways: list[Callable[[], AbstractContextManager[None]]] = [nullcontext, canonical_calls]  # which takes a little longer
    first, second = reversed(ways) if is_of_library(model) else ways
    try:
        with first():
            return _capture(model, args, kwargs, dynamic_shapes, accept_ranges)
    except (CallSequenceDiverged, ConstantDiverged) as error:
        try:
            with second():
                return _capture(model, args, kwargs, dynamic_shapes, accept_ranges)
        except (NoFallback, NeedsRealValues):
            raise
        except ToOnnxError:
            raise error from None


def _capture(
    model: nn.Module, args: tuple[Any, ...], kwargs: Mapping[str, Any], dynamic_shapes: Any, accept_ranges: Sequence[str]
) -> Capture:
    refuse_scripted_parts(model)
    args, kwargs = separate_shared_inputs(args, dict(kwargs))
    asked = dynamic_dims(model, args, kwargs, dynamic_shapes)
    check_accepted(accept_ranges, asked)
    leaves = pytree.tree_leaves((args, kwargs))
    check_arguments(leaves, moving_numbers(model, args, kwargs, dynamic_shapes), dynamic_shapes)
    with (
        only_harmless_mutations(model, args, kwargs),
        name_keywords(model, args, kwargs, dynamic_shapes) as shapes,
        trace_higher_order_functions(bool(asked)),
        allow_grown_buffers(model, (args, kwargs)),
        allow_harmless_casts(model),
        explain_gradients(model),
    ):
        args, kwargs = generalise_sizes(model, asked, (args, kwargs))
        asked = dynamic_dims(model, args, kwargs, shapes)
        leaves = pytree.tree_leaves((args, kwargs))
        tied = tie_dims(model, asked, (args, kwargs))
        accepted = tuple({dim.name: None for dim, before in zip(tied, asked, strict=True) if before.name in accept_ranges})
        axes = SizeDomain.of(tied, leaves)
        symbols = [(dim, axes.sizes[dim.tensor, dim.axis]) for dim in tied]
        session = Session(model)
        capture = partial(_paths, session)
        notes, values = partial(_note_tests, session), partial(find_values, session)
        regions = GuardForking(capture, notes, values, partial(is_right_at, model), symbols, accepted)
        paths = paths_of(regions, capture, tied, axes, (args, kwargs))
        joined = PathMerger(paths, axes)
        with regions.explaining():
            program = joined.program()
        promised = ends_kept(model, axes, (args, kwargs), tied, accepted)
        if (further := add_empty_path(paths, program, model, axes, (args, kwargs), capture)) is not None:
            joined = PathMerger(further, axes)
            program = joined.program()
    check_changed_inputs(paths, leaves)
    check_dynamic_dims(program, symbols, accepted, ShapeEnv())  # type: ignore[arg-type]  # it reads graph and signature alone
    names = {symbol: dim.name for dim, symbol in reversed(symbols) if dim.named}
    names |= {symbol: name for symbol, name in axes.fresh.names.items() if name not in names.values()}
    constness = (f"{line}: {SETTLED}" for line in session.constant_policy.lines)
    lost = constants_accepted(program, symbols, accepted)  # type: ignore[arg-type]  # as above
    limits = (*regions.limits, *lost, *joined.limits, *program.limits, *constness, *promised)
    return Capture(program, names, by="run", branches=tuple(joined.branches), limits=limits)  # type: ignore[arg-type]


def _note_tests(session: Session, axes: SizeDomain, arguments: Arguments) -> None:
    """Run it with symbols for sizes, so that these axes note the tests on the way, as far as runs at longer sizes make the same calls."""
    blocks = EqualBlocks(session.model)
    while True:
        runs = TraceDriver(session, axes, arguments, blocks)
        try:
            runs.trace_extra_sizes()
            runs.collect_guards()
            return
        except Restart as error:
            session.refine(error)
        except TraceUnsupported:
            return


def _paths(session: Session, axes: SizeDomain, arguments: Arguments) -> list[Path]:
    """Return what runs show at these sizes, each test of a value answered both ways.

    What follows from weights alone is tested like other values, so that a file follows weights that it is given. Where that is refused
    and values of weights were asked for, these count as constants.
    """
    constant_policy = session.constant_policy
    try:
        found = _explore(session, axes, arguments)
    except TraceUnsupported as error:
        if constant_policy.has_one_answer or not constant_policy.was_asked or isinstance(error, (NoFallback, NeedsRealValues)):
            raise
        constant_policy.has_one_answer = True
        try:
            found = _explore(session, axes, arguments)
        except TraceUnsupported:
            raise error from None
    for path in found:
        path.check_diverges_at_one(axes)
    return found


def _explore(session: Session, axes: SizeDomain, arguments: Arguments) -> list[Path]:
    """Return all paths, explored again from the start with each refined plan."""
    blocks = EqualBlocks(session.model)
    while True:
        size_reads = session.plan.size_reads
        try:
            return paths_of_values(partial(_run_path, session, axes, arguments, blocks), partial(_probe_path, session, axes, arguments))
        except Restart as error:
            session.refine(error)
        if session.plan.size_reads != size_reads:
            axes.environment.guards.clear()  # which number the calls of runs without this size
            axes.environment.followed.clear()


def _run_path(session: Session, axes: SizeDomain, arguments: Arguments, blocks: EqualBlocks, given: Sequence[bool]) -> Path:
    """Return the path whose first outcomes of tests are these."""
    runs = TraceDriver(session, axes, arguments, blocks, given)
    program, exception = runs.program()
    return Path(tuple(runs.answers), program, runs.diverges_at_one, exception, axes)


def _probe_path(session: Session, axes: SizeDomain, arguments: Arguments, given: Sequence[bool], like: Path) -> Path | None:
    """Return the path that one concrete run shows; None where it does not show one."""
    if session.plan.whiles or has_loops(like.program):
        return None
    return probe(session.model, axes, arguments, session.decisions(given), like)
