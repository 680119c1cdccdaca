"""Equal blocks in a run: one is noted call by call; the others run unseen, and get its notes with their own tensors in place of its own."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import nn
from torch._subclasses import FakeTensor
from torch.utils import _pytree as pytree
from torch.utils._python_dispatch import _disable_current_modes

from ...blocks.equality import MARKS_A_BLOCK, Reads, difference, snapshot, watched, weights
from ...blocks.sharing import modes, replaced, storage
from .as_written import COPIES
from .notes import Made, Ref, Row, equal, plain
from .recorder import Recorder
from .scopes import Scope, as_stack
from .script import TEST
from .work import Work

PLAIN = (int, float, bool, str, type(None), torch.dtype, torch.device, torch.memory_format)
Pair = tuple[str, str]


@dataclass
class Call:
    """One call of a block: where its notes begin and end, how many constants there were before, what it took, gave and read."""

    path: str
    module: nn.Module
    leaves: list[Any]
    seen: list[Any]
    spec: pytree.TreeSpec
    modes: tuple[bool, bool, bool]
    begin: int
    constants: int
    end: int = 0
    results: list[Any] = field(default_factory=list)
    out_spec: pytree.TreeSpec | None = None
    reads: Reads = field(default_factory=set)
    alone: bool = False  # whether no other call may stand on this one

    def returned_as(self, work: Work) -> Any:
        """Return what it returned, with new tensors that have no values."""
        assert self.out_spec is not None
        return pytree.tree_unflatten(map(work.like, self.results), self.out_spec)


class EqualBlocks:
    """The blocks of a model that may be equal, and which were seen to be: the first run of the model notes all of them in full.

    Args:
        model: its modules of one class, with modules of their own inside, are the blocks; the outermost of them.
    """

    def __init__(self, model: nn.Module) -> None:
        self._blocks = dict(_outermost(model))
        self._agree: dict[Pair, bool] = {}
        self._has_noted_all = False

    @property
    def known(self) -> tuple[tuple[Pair, bool], ...] | None:
        """What is known of the blocks, which decides the notes of a run; None where the next run notes all of them in full."""
        if self._blocks and not self._has_noted_all and not COPIES.get():
            return None
        return tuple(self._agree.items())

    @contextmanager
    def noted(self, recorder: Recorder) -> Iterator[None]:
        """Note, while it lasts, the blocks of one run; none where numbers that are read, or copies, are told apart by what is called."""
        if recorder.reads or COPIES.get():
            yield
            return
        run = BlocksOfRun(recorder, self._agree, in_full=not self._has_noted_all)
        with ExitStack() as stack:
            for path, module in self._blocks.items():
                stack.enter_context(replaced(module, run.noting(path, module)))
            yield
        self._has_noted_all = True


def _outermost(model: nn.Module) -> Iterator[tuple[str, nn.Module]]:
    """Yield modules with others inside, of whose class there are several, and that stand in no other such."""
    found = {path: module for path, module in model.named_modules() if path and next(module.named_children(), None)}
    classes = Counter(type(module) for module in found.values())
    begun: list[str] = []
    for path, module in found.items():
        if classes[type(module)] > 1 and not path.startswith(tuple(begun)) and not isinstance(module, (nn.ModuleList, nn.ModuleDict)):
            begun.append(f"{path}.")
            yield path, module


class BlocksOfRun:
    """The calls of blocks in one run.

    Args:
        agree: of two blocks, whether their notes agreed in the run that noted both; filled by that run.
        in_full: whether this is that run.
    """

    def __init__(self, recorder: Recorder, agree: dict[Pair, bool], in_full: bool) -> None:
        self._recorder, self._agree, self._in_full = recorder, agree, in_full
        self._calls: list[Call] = []

    def noting(self, path: str, module: nn.Module) -> Callable[..., Any]:
        """Return what takes the place of the block's forward."""
        forward = module.forward

        def block(*args: Any, **kwargs: Any) -> Any:
            leaves, spec = pytree.tree_flatten((args, kwargs))
            with unseen():
                if not all(isinstance(plain(leaf), (torch.Tensor, *PLAIN)) for leaf in leaves):
                    call = None
                else:
                    call = Call(path, module, leaves, list(map(self._seen, leaves)), spec, modes(), *self._recorder.place_now)
                first = self._equal(call) if call is not None else None
            if call is None:
                return forward(*args, **kwargs)
            if first is None:
                return self._first(call, forward, args, kwargs)
            return self._again(first, call, forward, args, kwargs)

        vars(block)[MARKS_A_BLOCK] = True
        return block

    def _seen(self, leaf: Any) -> Any:
        """What a block can see of an argument but for its values."""
        if not isinstance(leaf, torch.Tensor):
            return type(leaf), leaf.node.expr if isinstance(leaf, torch.SymInt) else leaf
        return self._recorder.sizes(leaf), leaf.stride(), leaf.dtype, leaf.device, leaf.requires_grad

    def _equal(self, call: Call) -> Call | None:
        """The call that this one repeats, if there is one."""
        return next((first for first in self._calls if self._repeats(first, call)), None)

    def _repeats(self, first: Call, call: Call) -> bool:
        alike = type(first.module) is type(call.module) and not first.alone
        if not alike or not (self._in_full or self._agree.get((first.path, call.path), False)):
            return False
        same = (first.spec, first.modes, first.seen) == (call.spec, call.modes, call.seen)
        return same and difference(first.module, call.module, first.reads) is None

    def _first(self, call: Call, forward: Callable[..., Any], args: Any, kwargs: Any) -> Any:
        """Make a call that others may repeat, and note what it reads."""
        with unseen():
            before = snapshot(call.module), _versions(call.leaves)
        with watched(call.module) as call.reads:
            returned = forward(*args, **kwargs)
        with unseen():
            self._end(call, returned)
            call.alone = before != (snapshot(call.module), _versions(call.leaves)) or self._stands_alone(call)
        self._calls.append(call)
        return returned

    def _end(self, call: Call, returned: Any) -> None:
        call.end = len(self._recorder.rows)
        call.results, call.out_spec = pytree.tree_flatten(returned)

    def _stands_alone(self, call: Call) -> bool:
        """Whether a call tests or reads values, calls what has graphs of its own, or returns what no operator in it made."""
        rows = self._recorder.rows[call.begin : call.end]
        if any(row.op is TEST or row.by_values or not isinstance(row.op, torch._ops.OpOverload) for row in rows):
            return True
        if any(place >= call.begin for place, _ in self._recorder.settled.answers):
            return True
        return not all(self._is_own(call, leaf) for leaf in call.results)

    def _is_own(self, call: Call, result: Any) -> bool:
        return _inside(self._recorder.ref(result), call) if isinstance(result, torch.Tensor) else isinstance(result, PLAIN)

    def _gives_its_own(self, call: Call) -> bool:
        """Whether all tensors that a call returned are without values, each in memory that no other shows, nor what it took."""
        made = [leaf for leaf in call.results if isinstance(leaf, torch.Tensor)]
        with unseen():
            taken = {storage(leaf) for leaf in (*call.leaves, *weights(call.module).values()) if isinstance(leaf, torch.Tensor)}
            memory = {storage(tensor) for tensor in made}
        return all(isinstance(leaf, FakeTensor) for leaf in made) and len(memory) == len(made) and memory.isdisjoint(taken)

    def _places(self, call: Call) -> list[Ref]:
        """Where the tensors come from that a block takes: its arguments, and its weights."""
        taken = (leaf for leaf in call.leaves if isinstance(leaf, torch.Tensor))
        return [self._recorder.ref(tensor) for tensor in (*taken, *weights(call.module).values())]

    def _again(self, first: Call, call: Call, forward: Callable[..., Any], args: Any, kwargs: Any) -> Any:
        if not self._in_full:
            without_values = any(isinstance(leaf, FakeTensor) for leaf in (*first.results, *call.leaves))
            if without_values and not self._gives_its_own(first):
                return self._first(call, forward, args, kwargs)
            return self._unseen(first, call, forward, args, kwargs, self._recorder.work if without_values else None)
        returned = forward(*args, **kwargs)
        with unseen():
            self._end(call, returned)
            agree = first.out_spec == call.out_spec and Notes(self._recorder, first, call, self._places(first), self._places(call)).agree()
            self._agree[first.path, call.path] = agree and self._agree.get((first.path, call.path), True)
        return returned

    def _unseen(self, first: Call, call: Call, forward: Callable[..., Any], args: Any, kwargs: Any, work: Work | None) -> Any:
        """Make a call that is not noted; where it gives no values (`work`), nothing needs to be computed."""
        args, kwargs = pytree.tree_map(plain, (args, kwargs))
        with unseen():
            returned = forward(*args, **kwargs) if work is None else first.returned_as(work)
        with unseen():
            call.results, call.out_spec = pytree.tree_flatten(returned)
            if call.out_spec != first.out_spec or list(map(_kind, call.results)) != list(map(_kind, first.results)):
                raise self._recorder.refusal(f"the blocks {first.path} and {call.path} are equal but return different types,")
            Notes(self._recorder, first, call, self._places(first), self._places(call)).write()
        return returned


@contextmanager
def unseen() -> Iterator[None]:
    """Keep, while it lasts, calls of torch from the notes."""
    with torch._C.DisableTorchFunction(), torch._C._DisablePythonDispatcher(), _disable_current_modes():
        yield


def _versions(leaves: Sequence[Any]) -> list[int]:
    return [leaf._version for leaf in leaves if isinstance(leaf, torch.Tensor)]


def _inside(ref: Ref, call: Call) -> bool:
    return ref.kind == "row" and call.begin <= int(ref.key) < call.end


def _kind(leaf: Any) -> Any:
    return (tuple(leaf.shape), leaf.stride(), leaf.dtype) if isinstance(leaf, torch.Tensor) else (type(leaf), leaf)


class Notes:
    """The notes of one call of a block as those of another.

    Args:
        own, others: where the tensors come from that the first call takes, and the other.
    """

    def __init__(self, recorder: Recorder, first: Call, call: Call, own: Sequence[Ref], others: Sequence[Ref]) -> None:
        self._recorder, self._first, self._call = recorder, first, call
        self._refs = dict(zip(own, others, strict=True))
        self._memory = dict(_memory(first, call))
        self._constants = {storage(constant) for constant in recorder.constants}
        self._scopes: dict[int, Scope] = {}
        self._same_constants: dict[Ref, Ref] = {}

    def _ref(self, ref: Ref) -> Ref:
        if _inside(ref, self._first):
            return Ref("row", int(ref.key) - self._first.begin + self._call.begin, ref.part)
        return self._refs.get(ref, ref)

    def _made(self, made: Any) -> Any:
        """The memory of what is not seen is none that any tensor has."""
        if not isinstance(made, Made) or made.storage in self._constants:
            return made
        if made.storage not in self._memory:
            self._memory[made.storage] = self._recorder.unseen_memory()
        return made._replace(storage=self._memory[made.storage])

    def _row(self, row: Row) -> Row:
        leaves = [self._ref(leaf) if isinstance(leaf, Ref) else leaf for leaf in row.leaves]
        return Row(row.op, leaves, row.spec, list(map(self._made, row.made)), row.many, row.line, self._scope(row.scope), row.sizes)

    def _scope(self, scope: Scope) -> Scope:
        """The modules around a call, those of the first block as those of the other."""
        if id(scope) not in self._scopes:
            around = [(_moved(path, self._first.path, self._call.path), kind) for path, kind in scope.values()]
            self._scopes[id(scope)] = as_stack(around)
        return self._scopes[id(scope)]

    def agree(self) -> bool:
        """Return whether both calls, noted in full, did the same: every call of an operator, and what was returned."""
        rows = self._recorder.rows
        mine, yours = rows[self._first.begin : self._first.end], rows[self._call.begin : self._call.end]
        if len(mine) != len(yours) or not all(self._agree(a, b) for a, b in zip(mine, yours, strict=True)):
            return False
        if not all(self._same(a, b) for a, b in zip(self._first.results, self._call.results, strict=True)):
            return False
        return self._without_constants(yours)

    def _without_constants(self, rows: Sequence[Row]) -> bool:
        """Take the constants that the other call made for those of the first; False where one is none of these."""
        made = [Ref("constant", number) for number in range(self._call.constants, len(self._recorder.constants))]
        if not set(made) <= set(self._same_constants):
            return False
        for ref in made:
            self._recorder.gave(self._recorder.constants[int(ref.key)], self._same_constants[ref])
            self._recorder.formulas.pop(int(ref.key), None)
        del self._recorder.constants[self._call.constants :]
        for row in rows:
            row.leaves = [self._same_constants.get(leaf, leaf) if leaf in made else leaf for leaf in row.leaves]
        return True

    def _agree(self, row: Row, other: Row) -> bool:
        return row.kind == other.kind and all(map(self._leaves_agree, row.leaves, other.leaves))

    def _leaves_agree(self, leaf: Any, other: Any) -> bool:
        if not isinstance(leaf, Ref) or not isinstance(other, Ref):
            return type(leaf) is type(other) and (leaf is other or bool(leaf == other))
        if leaf.kind == other.kind == "constant" and leaf not in self._refs:
            self._same_constants[other] = leaf
            return leaf == other or equal(self._recorder.constants[int(leaf.key)], self._recorder.constants[int(other.key)])
        return self._ref(leaf) == other

    def _same(self, result: Any, other: Any) -> bool:
        if not isinstance(result, torch.Tensor) or not isinstance(other, torch.Tensor):
            return _kind(result) == _kind(other)
        return self._leaves_agree(self._recorder.ref(result), self._recorder.ref(other))

    def write(self) -> None:
        """Note of the call what the first did."""
        recorder, begin = self._recorder, self._first.begin
        for number in range(begin, self._first.end):
            recorder.again(self._row(recorder.rows[number]), number)
        for mine, yours in zip(self._first.results, self._call.results, strict=True):
            if isinstance(mine, torch.Tensor):
                recorder.gave(yours, self._ref(recorder.ref(mine)))


def _memory(first: Call, call: Call) -> Iterator[tuple[int, int]]:
    """What memory of the first call is what memory of the other: of arguments, weights and results."""
    taken = ([*a.leaves, *a.results, *weights(a.module).values()] for a in (first, call))
    for mine, yours in zip(*taken, strict=True):
        if isinstance(mine, torch.Tensor):
            yield storage(mine), storage(yours)


def _moved(path: str, old: str, new: str) -> str:
    return new + path[len(old) :] if path == old or path.startswith(f"{old}.") else path
