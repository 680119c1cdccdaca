"""Rows of a repeated block: the rows of the first block with other tensors, computed lazily."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import nn
from torch.utils import _pytree as pytree

from ..ir.expressions import storage
from ..lower.module_calls import Scope
from ..trace.compute_budget import ComputeBudget
from ..trace.events import OpEvent, Ref, TensorMeta, equal
from ..trace.module_equality import Reads
from ..trace.tracer import Tracer


@dataclass
class Call:
    """One call of a block: where its notes begin and end, how many constants there were before, what it took, gave and read."""

    path: str
    module: nn.Module
    parts: list[nn.Module]
    leaves: list[Any]
    seen: list[Any]
    spec: pytree.TreeSpec
    modes: tuple[bool, bool, bool]
    scope: Scope
    begin: int
    constants: int
    end: int = 0
    results: list[Any] = field(default_factory=list)
    out_spec: pytree.TreeSpec | None = None
    reads: Reads = field(default_factory=set)
    alone: bool = False  # whether no other call may stand on this one

    def weights(self) -> list[torch.Tensor]:
        """Return the parameters and buffers of the block, in the same order for equal blocks."""
        tables = (table for part in self.parts for table in (part._parameters, part._buffers))
        return [tensor for table in tables for tensor in table.values() if tensor is not None]

    def returned_as(self, work: ComputeBudget) -> Any:
        """Return what it returned, with new tensors that have no values."""
        assert self.out_spec is not None
        return pytree.tree_unflatten(map(work.like, self.results), self.out_spec)


class BlockCopy:
    """The notes of one call of a block as those of another.

    Args:
        own, others: where the tensors come from that the first call takes, and the other.
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

    def _remap_memory(self, made: Any) -> Any:
        """Tensors that are not recorded get memory ids that are not shared with any tensor."""
        if not isinstance(made, TensorMeta) or made.storage in self._constants:
            return made
        if made.storage not in self._memory:
            self._memory[made.storage] = self._tracer.unseen_memory()
        return made._replace(storage=self._memory[made.storage])

    def rows(self) -> list[OpEvent]:
        """Return the rows of the repeated block."""
        return [Repeated(row, number, self) for number, row in enumerate(self._tracer.rows[self._first.begin : self._first.end])]

    def repeats_as(self, other: BlockCopy) -> bool:
        """Return whether notes of another run repeat the same calls with the same tensors."""
        return (self._first.begin, self._first.end, self._refs) == (other._first.begin, other._first.end, other._refs)

    def leaves_of(self, row: OpEvent) -> list[Any]:
        """Return the arguments of a row of the repeated block."""
        return [self._ref(leaf) if isinstance(leaf, Ref) else leaf for leaf in row.leaves]

    def made_of(self, row: OpEvent) -> list[Any]:
        """Return the results of a row of the repeated block."""
        return list(map(self._remap_memory, row.made))

    def scope(self, scope: Scope) -> Scope:
        """Return the calls of modules around a call, those inside the first block as those inside the other."""
        if id(scope) not in self._scopes:
            inside = list(scope.items())[len(self._first.scope) :]
            paths = {key: _rebase_path(path, self._first.path, self._call.path) for key, (path, _) in inside}
            self._scopes[id(scope)] = self._call.scope | {f"{key}@{self._call.begin}": (paths[key], kind) for key, (_, kind) in inside}
        return self._scopes[id(scope)]

    def agree(self) -> bool:
        """Return whether both calls, noted in full, did the same: every call of an operator, and what was returned."""
        rows = self._tracer.rows
        mine, yours = rows[self._first.begin : self._first.end], rows[self._call.begin : self._call.end]
        if len(mine) != len(yours) or not all(self._agree(a, b) for a, b in zip(mine, yours, strict=True)):
            return False
        if not all(self._same(a, b) for a, b in zip(self._first.results, self._call.results, strict=True)):
            return False
        return self._replace_constants(yours)

    def _replace_constants(self, rows: Sequence[OpEvent]) -> bool:
        """Replace the constants of the repeated block by those of the first; False if one differs."""
        made = [Ref("constant", number) for number in range(self._call.constants, len(self._tracer.constants))]
        if not set(made) <= set(self._same_constants):
            return False
        for ref in made:
            self._tracer.gave(self._tracer.constants[int(ref.key)], self._same_constants[ref])
            self._tracer.formulas.pop(int(ref.key), None)
        del self._tracer.constants[self._call.constants :]
        for row in rows:
            row.leaves = [self._same_constants.get(leaf, leaf) if leaf in made else leaf for leaf in row.leaves]
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
        """Note of the call what the first did."""
        tracer = self._tracer
        tracer.again(self.rows(), self._first.begin)
        for mine, yours in zip(self._first.results, self._call.results, strict=True):
            if isinstance(mine, torch.Tensor):
                tracer.gave(yours, self._ref(tracer.ref(mine)))


class Repeated(OpEvent):
    """One row of a repeated block, computed lazily.

    Attributes:
        number: of the call in the first block.
    """

    def __init__(self, first: OpEvent, number: int, notes: BlockCopy) -> None:
        self.first, self.number, self.notes = first, number, notes
        self.op, self.spec, self.many, self.line, self.sizes = first.op, first.spec, first.many, first.line, first.sizes
        self.turns, self.later = {}, []

    @property
    def kind(self) -> Any:
        """What is the same at all sizes, as of the first."""
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
    """What memory of the first call is what memory of the other: of arguments, weights and results."""
    taken = ([*a.leaves, *a.results, *a.weights()] for a in (first, call))
    for mine, yours in zip(*taken, strict=True):
        if isinstance(mine, torch.Tensor):
            yield storage(mine), storage(yours)


def _rebase_path(path: str, old: str, new: str) -> str:
    return new + path[len(old) :] if path == old or path.startswith(f"{old}.") else path


def is_inside(ref: Ref, call: Call) -> bool:
    """Return whether a call of a block made a tensor."""
    return ref.kind == "row" and call.begin <= int(ref.key) < call.end


def kind_of(leaf: Any) -> Any:
    """Return what two results of equal blocks have in common."""
    return (tuple(leaf.shape), leaf.stride(), leaf.dtype) if isinstance(leaf, torch.Tensor) else (type(leaf), leaf)
