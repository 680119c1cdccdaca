"""Translates operators by decomposing them with torch."""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from functools import cache, partial
from typing import Any

import torch

from ..compat import trees as pytree
from ..compat.dispatch import make_fx
from ..compat.fake_tensors import FakeTensorMode
from ..compat.operators import OpOverload, aten, find_decompositions
from ..compat.shape_env import ShapeEnv
from ..errors import Untranslated, op_title
from ..guards.decisions import MOST, is_implied
from ..ir.expressions import sizes_of
from ..ir.graph import Graph, Tensor
from ..ir.source_node import overload_of
from ..ir.translation import Translation, TranslationOf
from ..lower.aliasing import writes, written_arguments
from ..lower.interpreter import IGNORED_KWARGS, Interpreter
from ..shapes.propagation import fakes_of
from ..strategies.torch_export import size_one_stays_dynamic
from .dispatch import Source, first_applicable
from .logs import logged_from

DEPTH = 6
READ_MEMORY = {aten.as_strided.default, aten.as_strided_.default, aten.as_strided_copy.default, aten.as_strided_scatter.default}
"""Operators that count from the start of the storage. A decomposition would use the argument as the whole storage."""
NOTHING = logging.CRITICAL + 1
DECIDES = "its decomposition is valid only for some sizes"


def decomposition_source(inner_dispatch: Callable[[tuple[Any, ...]], TranslationOf], within: tuple[Any, ...] = ()) -> Source:
    """Return a source that traces the decomposition of an operator and translates that.

    Args:
        inner_dispatch: makes the dispatch for the operators of the decomposition, given the operators that contain them.
        within: the operators whose decomposition is being translated.
    """

    def source(node: torch.fx.Node) -> Translation | None:
        if node.target in within or len(within) == DEPTH:
            return None
        ways = [partial(_translate_decomposed, node, way, inner_dispatch((*within, node.target))) for way in decompositions(node.target)]
        return first_applicable(ways) if ways else None

    return source


def decompositions(target: Any) -> list[Callable[..., Any]]:
    """Return torch's decompositions of an operator: its composite kernel, the decomposition tables, or a prim's implementation."""
    if not isinstance(target, OpOverload) or target in READ_MEMORY:
        return []
    ways = [target.decompose] if target._can_decompose() else []
    if target in _table():
        ways.append(_table()[target])
    if target.namespace == "prims":
        ways.append(getattr(torch.ops.prims, target._opname).impl_aten)
    return ways


@cache
def _table() -> dict[Any, Callable[..., Any]]:
    return find_decompositions()


def _translate_decomposed(
    node: torch.fx.Node, way: Callable[..., Any], dispatch: TranslationOf, g: Graph, *args: Any, **kwargs: Any
) -> Any:
    """Translate the decomposition of a node; return the results and the new values of the arguments that it changes."""
    module = trace_decomposition(node, way)
    interpreter = Interpreter(g, module, dispatch, writes(module))
    placeholders = _bound(interpreter, node, args, kwargs)
    interpreter.run(_named_after(node, module))
    if interpreter.failures:
        inner, reason = interpreter.failures[0]
        raise Untranslated(f"it decomposes into {op_title(inner.target)}: {reason}")
    made = interpreter.value_of(module.graph.output_node().args[0])
    return _results(node, made, [interpreter.memory.read(placeholders[argument]) for argument in written_arguments(node)])


def _bound(
    interpreter: Interpreter, node: torch.fx.Node, args: Sequence[Any], kwargs: Mapping[str, Any]
) -> dict[torch.fx.Node, torch.fx.Node]:
    """Bind each placeholder of the decomposition to the value of its argument; return the placeholder of each node."""
    leaves = pytree.tree_leaves((node.args, {key: value for key, value in node.kwargs.items() if key not in IGNORED_KWARGS}))
    values = zip(leaves, pytree.tree_leaves((list(args), dict(kwargs))), strict=True)
    value_of = {leaf: value for leaf, value in values if isinstance(leaf, torch.fx.Node)}
    placeholders = dict(zip(node.all_input_nodes, interpreter.module.graph.find_nodes(op="placeholder"), strict=True))
    for leaf, placeholder in placeholders.items():
        interpreter.memory.bind(placeholder, value_of[leaf])
    return placeholders


def _named_after(node: torch.fx.Node, module: torch.fx.GraphModule) -> Sequence[torch.fx.Node]:
    """Return the nodes of the decomposition, with the origin metadata of this node."""
    for inner in module.graph.nodes:
        inner.name = f"{node.name}/{inner.name}"
        inner.meta.update({key: node.meta[key] for key in ("nn_module_stack", "stack_trace") if key in node.meta})
    return list(module.graph.nodes)


def _results(node: torch.fx.Node, made: Any, new: list[Any]) -> Any:
    """Return the results and then the new values of changed arguments, as the interpreter expects them."""
    for value, fake in zip(pytree.tree_leaves(made), pytree.tree_leaves(node.meta["val"]), strict=False):
        if isinstance(value, Tensor) and isinstance(fake, torch.Tensor) and not _may_equal(value.known_sizes, sizes_of(fake)):
            raise Untranslated(f"its decomposition has the sizes {value.known_sizes}, but the operator has {sizes_of(fake)}")
        if isinstance(value, Tensor) and value.producer() is not None and value.name.startswith(f"{node.name}/"):
            value.shape = None
    if not new:
        return made
    results = made if isinstance(made, (tuple, list)) else [made]
    overload = overload_of(node)
    returns = overload._schema.returns if overload is not None else ()
    own = [result for result, declared in zip(results, returns, strict=False) if declared.alias_info is None]
    return [*own, *new]


def _may_equal(made: Sequence[Any] | None, captured: Sequence[Any]) -> bool:
    """Return whether two lists of sizes may be equal: they have the same length, and no two integers differ."""
    if made is None:
        return True
    return len(made) == len(captured) and all(
        a == b for a, b in zip(made, captured, strict=True) if isinstance(a, int) and isinstance(b, int)
    )


def trace_decomposition(node: torch.fx.Node, way: Callable[..., Any]) -> torch.fx.GraphModule:
    """Return the graph of `way` for the fake arguments of a node; its inputs are the nodes among them.

    Raises:
        Untranslated: it cannot be traced, or is valid only for some sizes.
    """
    given = node.all_input_nodes
    fakes, given_args, given_kwargs = fakes_of(node)

    def call(*values: Any) -> Any:
        known = dict(zip(given, values, strict=True))
        args, kwargs = pytree.tree_map_only(torch.fx.Node, known.__getitem__, (given_args, given_kwargs))
        made = way(*args, **kwargs)
        return list(made) if isinstance(made, tuple) else made

    mode: Any = next((value.fake_mode for value in pytree.tree_leaves((fakes, node.meta["val"])) if hasattr(value, "fake_mode")), None)
    with _apart(mode) as decisions, logged_from(NOTHING, FakeTensorMode.__module__):  # its errors are raised, not logged
        try:
            module = make_fx(call, _allow_non_fake_inputs=True)(*fakes)
        except Exception as error:
            raise Untranslated(f"its decomposition fails: {type(error).__name__}: {str(error).partition(chr(10))[0]}") from error
    for decision in decisions:
        if not _always(decision, mode.shape_env):
            raise Untranslated(f"{DECIDES}: {decision}")
    module.graph.eliminate_dead_code()
    return module


@contextmanager
def _apart(mode: Any) -> Iterator[list[Any]]:
    """Isolate the sizes of the program from what is traced in this fake mode; yield the decisions made about them.

    Raises:
        Untranslated: tracing changed the sizes, which are restored.
    """
    decisions: list[Any] = []
    with ExitStack() as stack:
        stack.enter_context(torch.no_grad())
        stack.enter_context(size_one_stays_dynamic())
        if mode is not None:
            stack.enter_context(mode)
            stack.enter_context(_disable_cache(mode))
            if mode.shape_env is not None:
                stack.enter_context(_preserve_shape_env(mode.shape_env, decisions))
        yield decisions


@contextmanager
def _disable_cache(mode: Any) -> Iterator[None]:
    before, mode.cache_enabled = mode.cache_enabled, False
    try:
        yield
    finally:
        mode.cache_enabled = before


@contextmanager
def _preserve_shape_env(sizes: ShapeEnv, decisions: list[Any]) -> Iterator[None]:
    def note(prefix: str, decision: Any, forcing_spec: bool) -> None:
        if prefix.startswith("eval"):
            decisions.append(decision)

    ShapeEnv._inner_evaluate_expr.cache_clear()  # cached decisions would not be recorded again
    replaced, ranges, pending = dict(sizes.replacements), dict(sizes.var_to_range), list(sizes.pending_fresh_unbacked_symbols)
    patched: Any = sizes
    patched._log_guard = note
    try:
        with sizes.suppress_guards():
            yield
    finally:
        del patched._log_guard
        sizes.pending_fresh_unbacked_symbols[:] = pending
        ShapeEnv._inner_evaluate_expr.cache_clear()
    if replaced != dict(sizes.replacements) or any(sizes.var_to_range[symbol] != known for symbol, known in ranges.items()):
        sizes.replacements.clear()
        sizes.replacements.update(replaced)
        sizes.var_to_range.update(ranges)
        sizes._replacements_version_counter += 1
        sizes._version_counter += 1
        raise Untranslated("its decomposition adds constraints on sizes")


def _always(decision: Any, sizes: ShapeEnv) -> bool:
    """Return whether a decision for the example holds at every size that the program accepts."""
    known = {symbol: sizes.var_to_range.get(symbol) for symbol in decision.free_symbols}
    ends = {symbol: (0, MOST) if found is None else (max(0, found.lower), min(MOST, found.upper)) for symbol, found in known.items()}
    return is_implied(decision, {symbol: (int(least), int(most)) for symbol, (least, most) in ends.items()})
