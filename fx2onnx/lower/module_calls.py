"""The calls of modules in a captured graph, found by the `nn_module_stack` of its nodes."""

from __future__ import annotations

import operator
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby, takewhile
from operator import attrgetter
from typing import Any, TypeAlias

import torch

from ..compat.exporting import check_condition
from ..compat.operators import OpOverload
from ..ir.expressions import SYMBOLIC

Node: TypeAlias = torch.fx.Node
Scope: TypeAlias = dict[str, tuple[str, str]]  # of each call of a module, from the outermost: its key, and the path and class of the module
aten = torch.ops.aten
NO_OUTPUT = {
    aten._assert_tensor_metadata.default,
    aten._assert_scalar.default,
    aten._assert_async.msg,
    aten._assert_async.default,
    aten._linalg_check_errors.default,
    aten.sym_constrain_range.default,
    aten.sym_constrain_range_for_size.default,
    check_condition,
}
OF_THE_LAYOUT = {aten.sym_size.int, aten.sym_stride.int, aten.sym_numel.default, aten.sym_storage_offset.default}


@dataclass(frozen=True)
class ModuleCall:
    """One call of a module: the nodes that it makes, and calls of modules inside it, in order.

    Attributes:
        scope: the calls around it, and last its own.
    """

    scope: Scope
    items: Sequence[Node | ModuleCall]

    @property
    def path(self) -> str:
        """The path of the module."""
        return list(self.scope.values())[-1][0]

    @property
    def name(self) -> str:
        """The name of its class."""
        return list(self.scope.values())[-1][1].rpartition(".")[2]

    def nodes(self) -> Iterator[Node]:
        """Yield all nodes, those of calls inside among them."""
        for item in self.items:
            yield from item.nodes() if isinstance(item, ModuleCall) else (item,)


@dataclass(frozen=True)
class _Placed:
    """A node, the calls of modules around it, and the keys of those among them that are grouped."""

    node: Node
    scope: Scope
    keys: tuple[str, ...]


def group_module_calls(
    nodes: Iterable[Node], is_grouped: Callable[[str, str], bool], around: Collection[str]
) -> tuple[list[Node | ModuleCall], set[str]]:
    """Return the nodes of a graph with those of each module call together, and the paths of modules whose calls are mixed with others.

    Args:
        is_grouped: whether the calls of a module are grouped, by its path and class.
        around: the keys of calls that the whole graph is a part of.
    """
    every = list(nodes)
    at_once = [node for node in every if not is_call(node)]
    scopes = _scopes_of([node for node in every if is_call(node)])
    found = [
        _Placed(node, scope, tuple(key for key, module in scope.items() if key not in around and is_grouped(*module)))
        for node, scope in scopes.items()
    ]
    mixed = _find_mixed(found)
    kept = [_Placed(one.node, one.scope, tuple(key for key in one.keys if key not in mixed)) for one in found]
    return [*at_once, *_nest(kept, 0)], set(mixed.values())


def is_call(node: Node) -> bool:
    """Return whether a node is a call that is made where it stands."""
    return node.op == "call_function" and not is_number(node)


def is_number(node: Node) -> bool:
    """Return whether a node is an expression of sizes, which is the same wherever it stands."""
    is_computed = isinstance(node.target, OpOverload) and node.target not in OF_THE_LAYOUT
    return isinstance(node.meta.get("val"), SYMBOLIC) and not is_computed


def is_read_outside(node: Node, inside: Collection[Node]) -> bool:
    """Return whether a node that is not among these reads the value of this one; checks and expressions of sizes do not."""
    return any(user not in inside and user.target not in NO_OUTPUT and not is_number(user) for user in node.users)


def scope_of(node: Node) -> Scope:
    """Return the calls of modules around a node; TorchDynamo has one key for a module under all its paths."""
    stack: dict[str, tuple[str, Any]] = node.meta.get("nn_module_stack") or {}
    return {
        f"{key} {path}": (path, kind if isinstance(kind, str) else f"{kind.__module__}.{kind.__qualname__}")
        for key, (path, kind) in stack.items()
    }


def _scopes_of(nodes: Sequence[Node]) -> dict[Node, Scope]:
    """The calls of modules around each node, parts of a result right after it; a node without any is where both its neighbours are."""
    wholes: dict[Node, Node] = {}
    for node in nodes:
        source = node.args[0] if node.target is operator.getitem else None
        wholes[node] = wholes.get(source, node) if isinstance(source, Node) else node
    parts: dict[Node, list[Node]] = {}
    for node, whole in wholes.items():
        parts.setdefault(whole, []).append(node)
    stacks = list(map(scope_of, parts))
    following: list[Scope | None] = [None] * (len(stacks) + 1)
    for place in reversed(range(len(stacks))):
        following[place] = stacks[place] or following[place + 1]
    before: Scope = {}
    found: dict[Node, Scope] = {}
    for whole, stack, after in zip(parts, stacks, following, strict=False):
        before = stack or common_scope(before, after or {})
        found |= dict.fromkeys(parts[whole], before)
    return found


def common_scope(one: Scope, *others: Scope) -> Scope:
    """Return the calls of modules that are around several nodes."""
    return dict(takewhile(lambda entry: all(entry[0] in other for other in others), one.items()))


def find_divided_calls(module: torch.fx.GraphModule, divided: Scope) -> Scope:
    """Return the calls of modules that nodes of a graph, or of graphs inside it, are in, and note those that are divided between graphs.

    A branch may contain what follows a test, with the rest of the call that made the test.
    """
    scopes = _scopes_of([node for node in module.graph.nodes if is_call(node)])
    found: Scope = {key: entry for scope in scopes.values() for key, entry in scope.items()}
    for node, scope in scopes.items():
        inside: Scope = {}
        for graph in (attrgetter(str(source.target))(module) for source in node.all_input_nodes if source.op == "get_attr"):
            inside |= find_divided_calls(graph, divided) if isinstance(graph, torch.fx.GraphModule) else {}
        inside = {key: entry for key, entry in inside.items() if key not in scope}
        divided |= {key: entry for key, entry in inside.items() if key in found}
        found |= inside
    return found


def _find_mixed(placed: Sequence[_Placed]) -> dict[str, str]:
    """Return the keys of calls whose nodes do not follow each other, and the paths of their modules."""
    last: dict[str, int] = {}
    mixed: dict[str, str] = {}
    for place, one in enumerate(placed):
        mixed |= {key: one.scope[key][0] for key in one.keys if last.get(key, place - 1) != place - 1}
        last |= dict.fromkeys(one.keys, place)
    return mixed


def _nest(placed: Iterable[_Placed], depth: int) -> Iterator[Node | ModuleCall]:
    for key, run in groupby(placed, lambda one: one.keys[depth] if len(one.keys) > depth else None):
        same = list(run)
        if key is None:
            yield from (one.node for one in same)
            continue
        scope = same[0].scope
        keys = list(scope)[: list(scope).index(key) + 1]
        yield ModuleCall({key: scope[key] for key in keys}, list(_nest(same, depth + 1)))
