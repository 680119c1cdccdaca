"""The recorded trace of a run: its calls, where their tensors come from, and the results of the module."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NamedTuple, TypeAlias

import torch
from torch import nn

from ..compat import trees as pytree
from ..compat.operators import OpOverload
from ..ir.expressions import storage
from ..lower.module_calls import Scope
from ..match import Event, Value, common_prefix, same_constant

Arguments: TypeAlias = tuple[tuple[Any, ...], dict[str, Any]]  # positional arguments, and keywords
Spec: TypeAlias = int | pytree.TreeSpec  # how arguments are nested: the number of positional ones, or a TreeSpec


class Ref(NamedTuple):
    """Where a tensor comes from: ("row", number, result), ("state", name), ("input", number) or ("constant", number)."""

    kind: str
    key: int | str
    part: int = 0
    turns: tuple[tuple[Any, int], ...] = ()  # the iterations of loops that created it, where they are distinguished


class TensorMeta(NamedTuple):
    """The metadata of one tensor that a call returned."""

    shape: tuple[int, ...]
    dtype: torch.dtype
    storage: int
    stride: tuple[int, ...]


@dataclass
class OpEvent:
    """One call of an operator: the leaves of its arguments, with tensors as `Ref`, and its results."""

    op: OpOverload
    leaves: list[Any]
    spec: Spec
    made: list[TensorMeta | Any]
    many: bool
    line: str = ""
    scope: Scope = field(default_factory=dict)
    sizes: list[Any] | None = None  # of the results, where they are already known
    turns: Mapping[int, int] = field(default_factory=dict)  # the iteration number of each enclosing loop
    later: list[tuple[Mapping[int, int], list[Any]]] = field(default_factory=list)  # the further iterations, with their leaves
    by_values: bool = False  # whether values decide the size or the number that it returned

    @property
    def kind(self) -> Any:
        """What is the same at all sizes: the operator, the nesting of its arguments, and the number of results."""
        return self.op, self.spec, len(self.made), self.many


@dataclass
class Trace:
    """All calls of one run, and the leaves of its result (tensors as `Ref`), or the exception that the model raised deliberately."""

    rows: list[OpEvent]
    returned: list[Any]
    spec: pytree.TreeSpec | None
    constants: list[torch.Tensor]
    exception: Exception | None = None
    name: str = ""  # of its graph, if an operator takes it as a function
    changed: frozenset[int] = frozenset()  # the inputs that it writes into
    loops: Sequence[Any] = ()
    values: int = 0  # the number of the values that it ran with
    answers: Sequence[tuple[int, str]] = ()  # the constant values that it read


def flatten_arguments(args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[list[Any], Spec]:
    """Return the leaves of the arguments of an operator, and their nesting."""
    if kwargs or any(isinstance(leaf, (list, tuple)) for leaf in args):
        return pytree.tree_flatten((args, kwargs))
    return list(args), len(args)


def unflatten_arguments(leaves: list[Any], spec: Spec) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Return the arguments that have these leaves."""
    return (tuple(leaves), {}) if isinstance(spec, int) else pytree.tree_unflatten(leaves, spec)


def plain(leaf: Any) -> Any:
    """Return the concrete value of a symbolic number in this run."""
    return leaf.node.hint if isinstance(leaf, (torch.SymInt, torch.SymFloat, torch.SymBool)) else leaf


def layout_of(tensor: torch.Tensor) -> tuple[Any, ...]:
    """Return what distinguishes two views: memory, offset, shape, strides and dtype."""
    return storage(tensor), tensor.storage_offset(), tuple(tensor.shape), tensor.stride(), tensor.dtype


def equal(a: torch.Tensor, b: torch.Tensor) -> bool:
    """Return whether two tensors are equal, where NaN equals NaN."""
    return a.shape == b.shape and a.dtype == b.dtype and torch.allclose(a, b, rtol=0, atol=0, equal_nan=True)


def alike(a: Any, b: Any) -> bool:
    """Return whether two arguments are the same constant: 1 differs from 1.0, and NaN equals NaN."""
    return same_constant(a, b)


def state_of(model: nn.Module) -> dict[str, torch.Tensor]:
    """Return parameters and buffers by name, each tensor once, without sparse ones."""
    found: dict[int, tuple[str, torch.Tensor]] = {}
    for name, tensor in (*model.named_parameters(), *model.named_buffers()):
        if tensor.layout == torch.strided:
            found.setdefault(id(tensor), (name, tensor))
    return dict(found.values())


def first_difference(one: Trace, other: Trace) -> int | None:
    """Return the number of the first call in which two runs differ, or None."""
    shared = common_prefix([row.kind for row in one.rows], [row.kind for row in other.rows])
    return None if shared == len(one.rows) == len(other.rows) else shared


def events_of(trace: Trace, path: tuple[str, ...] = ()) -> list[Event]:
    """Return the calls of a run and its results as events. Functions passed to a call precede it, under its number."""
    found = [Event("inputs", (), tuple((*path, ref) for ref in _operands(trace)))] if path else []
    for number, row in enumerate(trace.rows):
        for place, leaf in enumerate(row.leaves):
            found += events_of(leaf, (*path, f"{number}.{place}")) if isinstance(leaf, Trace) else []
        leaves = tuple(_event_leaf(leaf, path) for leaf in row.leaves)
        found.append(Event(row.kind, leaves, tuple((*path, Ref("row", number, part)) for part in range(len(row.made)))))
    return [*found, Event(("outputs", trace.spec), tuple(_event_leaf(leaf, path) for leaf in trace.returned))]


def _operands(trace: Trace) -> list[Ref]:
    leaves = (leaf for leaves in (*(row.leaves for row in trace.rows), trace.returned) for leaf in leaves)
    return sorted({leaf._replace(turns=()) for leaf in leaves if isinstance(leaf, Ref) and leaf.kind == "input"})


def _event_leaf(leaf: Any, path: tuple[str, ...]) -> Any:
    if isinstance(leaf, Trace):
        return None
    return Value((*path, leaf._replace(turns=()))) if isinstance(leaf, Ref) else leaf
