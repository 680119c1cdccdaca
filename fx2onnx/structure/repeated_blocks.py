"""Events of a repeated block: those of the first block with other tensors, computed lazily."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import nn

from ..compat import trees as pytree
from ..ir.expressions import storage
from ..lower.module_calls import Scope
from ..trace.compute_budget import ComputeBudget
from ..trace.events import OpEvent, Ref, TensorMeta, equal
from ..trace.module_equality import Reads
from ..trace.tracer import Tracer


@dataclass
class Call:
    """One call of a block: its range of events, the number of constants before, its arguments, results and attribute reads."""

    path: str
    module: nn.Module
    parts: list[nn.Module]
    leaves: list[Any]
    inputs: list[Any]
    spec: pytree.TreeSpec
    modes: tuple[bool, bool, bool]
    scope: Scope
    begin: int
    constants: int
    end: int = 0
    results: list[Any] = field(default_factory=list)
    out_spec: pytree.TreeSpec | None = None
    reads: Reads = field(default_factory=set)
    alone: bool = False  # whether other calls may not copy this one

    def weights(self) -> list[torch.Tensor]:
        """Return the parameters and buffers of the block, in the same order for equal blocks."""
        tables = (table for part in self.parts for table in (part._parameters, part._buffers))
        return [tensor for table in tables for tensor in table.values() if tensor is not None]

    def returned_as(self, work: ComputeBudget) -> Any:
        """Return its results, as new tensors without values."""
        assert self.out_spec is not None
        return pytree.tree_unflatten(map(work.like, self.results), self.out_spec)


class BlockCopy:
    """The events of one call of a block, copied for another.

    Args:
        own: where the tensors that the first call uses come from.
        others: the same for the other call.
    """

    def __init__(self, tracer: Tracer, first: Call, call: Call, own: Sequence[Ref], others: Sequence[Ref]) -> None:
        self._tracer, self._first, self._call = tracer, first, call
        self._refs = dict(zip(own, others, strict=True))
        self._memory = dict(_memory(first, call))
        self._constants = {storage(constant) for constant in tracer.constants}
        self._scopes: dict[int, Scope] = {}
        self._same_constants: dict[Ref, Ref] = {}

    def _ref(self, ref: Ref) -> Ref:
        if is_inside(ref, self._first):
            return Ref("row", int(ref.key) - self._first.begin + self._call.begin, ref.part)
        return self._refs.get(ref, ref)

    def _remap_memory(self, result: Any) -> Any:
        """Assign ids of unshared memory to tensors that are not recorded."""
        if not isinstance(result, TensorMeta) or result.storage in self._constants:
            return result
        if result.storage not in self._memory:
            self._memory[result.storage] = self._tracer.unseen_memory()
        return result._replace(storage=self._memory[result.storage])

    def rows(self) -> list[OpEvent]:
        """Return the events of the repeated block."""
        return [Repeated(row, number, self) for number, row in enumerate(self._tracer.rows[self._first.begin : self._first.end])]

    def repeats_as(self, other: BlockCopy) -> bool:
        """Return whether a copy in another run repeats the same calls with the same tensors."""
        return (self._first.begin, self._first.end, self._refs) == (other._first.begin, other._first.end, other._refs)

    def leaves_of(self, row: OpEvent) -> list[Any]:
        """Return the arguments of an event of the repeated block."""
        return [self._ref(leaf) if isinstance(leaf, Ref) else leaf for leaf in row.leaves]

    def made_of(self, row: OpEvent) -> list[Any]:
        """Return the results of an event of the repeated block."""
        return list(map(self._remap_memory, row.made))

    def scope(self, scope: Scope) -> Scope:
        """The module stack of a call, with the path of the repeated block."""
        if id(scope) not in self._scopes:
            inside = list(scope.items())[len(self._first.scope) :]
            paths = {key: _rebase_path(path, self._first.path, self._call.path) for key, (path, _) in inside}
            self._scopes[id(scope)] = self._call.scope | {f"{key}@{self._call.begin}": (paths[key], kind) for key, (_, kind) in inside}
        return self._scopes[id(scope)]

    def agree(self) -> bool:
        """Return whether both calls, recorded in full, made the same operator calls and returned the same."""
        rows = self._tracer.rows
        mine, yours = rows[self._first.begin : self._first.end], rows[self._call.begin : self._call.end]
        if len(mine) != len(yours) or not all(self._agree(a, b) for a, b in zip(mine, yours, strict=True)):
            return False
        if not all(self._same(a, b) for a, b in zip(self._first.results, self._call.results, strict=True)):
            return False
        return self._replace_constants(yours)

    def _replace_constants(self, rows: Sequence[OpEvent]) -> bool:
        """Replace the constants of the repeated block by those of the first; False if one differs."""
        refs = [Ref("constant", number) for number in range(self._call.constants, len(self._tracer.constants))]
        if not set(refs) <= set(self._same_constants):
            return False
        for ref in refs:
            self._tracer.gave(self._tracer.constants[int(ref.key)], self._same_constants[ref])
            self._tracer.formulas.pop(int(ref.key), None)
        del self._tracer.constants[self._call.constants :]
        for row in rows:
            row.leaves = [self._same_constants.get(leaf, leaf) if leaf in refs else leaf for leaf in row.leaves]
        return True

    def _agree(self, row: OpEvent, other: OpEvent) -> bool:
        return row.kind == other.kind and all(map(self._leaves_agree, row.leaves, other.leaves))

    def _leaves_agree(self, leaf: Any, other: Any) -> bool:
        if not isinstance(leaf, Ref) or not isinstance(other, Ref):
            return type(leaf) is type(other) and (leaf is other or bool(leaf == other))
        if leaf.kind == other.kind == "constant" and leaf not in self._refs:
            self._same_constants[other] = leaf
            return leaf == other or equal(self._tracer.constants[int(leaf.key)], self._tracer.constants[int(other.key)])
        return self._ref(leaf) == other

    def _same(self, result: Any, other: Any) -> bool:
        if not isinstance(result, torch.Tensor) or not isinstance(other, torch.Tensor):
            return kind_of(result) == kind_of(other)
        return self._leaves_agree(self._tracer.ref(result), self._tracer.ref(other))

    def write(self) -> None:
        """Record for the call the events of the first."""
        tracer = self._tracer
        tracer.again(self.rows(), self._first.begin)
        for mine, yours in zip(self._first.results, self._call.results, strict=True):
            if isinstance(mine, torch.Tensor):
                tracer.gave(yours, self._ref(tracer.ref(mine)))


class Repeated(OpEvent):
    """One event of a repeated block, computed lazily.

    Attributes:
        number: the number of the call in the first block.
    """

    def __init__(self, first: OpEvent, number: int, notes: BlockCopy) -> None:
        self.first, self.number, self.notes = first, number, notes
        self.op, self.spec, self.many, self.line, self.sizes = first.op, first.spec, first.many, first.line, first.sizes
        self.turns, self.later = {}, []

    @property
    def kind(self) -> Any:
        """What is the same at all sizes, from the first block."""
        return self.first.kind

    def __getattr__(self, name: str) -> Any:
        if name == "leaves":
            self.leaves = self.notes.leaves_of(self.first)
        elif name == "made":
            self.made = self.notes.made_of(self.first)
        elif name == "scope":
            self.scope = self.notes.scope(self.first.scope)
        else:
            raise AttributeError(f"a call has no {name}")
        return vars(self)[name]

    def repeats_as(self, other: OpEvent) -> bool:
        """Return whether a call of another run repeats the same one with the same tensors."""
        return isinstance(other, Repeated) and self.number == other.number and self.notes.repeats_as(other.notes)


def _memory(first: Call, call: Call) -> Iterator[tuple[int, int]]:
    """Pairs of corresponding memory of both calls: of arguments, weights and results."""
    taken = ([*a.leaves, *a.results, *a.weights()] for a in (first, call))
    for mine, yours in zip(*taken, strict=True):
        if isinstance(mine, torch.Tensor):
            yield storage(mine), storage(yours)


def _rebase_path(path: str, old: str, new: str) -> str:
    return new + path[len(old) :] if path == old or path.startswith(f"{old}.") else path


def is_inside(ref: Ref, call: Call) -> bool:
    """Return whether a call of a block created a tensor."""
    return ref.kind == "row" and call.begin <= int(ref.key) < call.end


def kind_of(leaf: Any) -> Any:
    """Return what two results of equal blocks have in common."""
    return (tuple(leaf.shape), leaf.stride(), leaf.dtype) if isinstance(leaf, torch.Tensor) else (type(leaf), leaf)
