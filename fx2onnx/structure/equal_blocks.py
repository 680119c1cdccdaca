"""Equal blocks in a run: one is recorded call by call, and the others copy its trace with their own tensors."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any

import torch
from torch import nn

from ..compat import trees as pytree
from ..compat.dispatch import DisablePythonDispatcher, DisableTorchFunction, disable_current_modes
from ..compat.fake_tensors import FakeTensor
from ..compat.operators import OpOverload
from ..ir.expressions import storage
from ..trace.compute_budget import ComputeBudget
from ..trace.events import Ref, plain
from ..trace.module_equality import Reads, Watch, have_same_structure, read_of, same_values, snapshot
from ..trace.path_decisions import BRANCH
from ..trace.tracer import Tracer
from .repeated_blocks import BlockCopy, Call, is_inside, kind_of

PLAIN = (int, float, bool, str, type(None), torch.dtype, torch.device, torch.memory_format)
Pair = tuple[str, str]


class EqualBlocks:
    """The blocks of a model that may be equal, and those that are; the first run of the model records all of them in full.

    Args:
        model: its blocks are the outermost modules that have submodules and share their class with others.
    """

    def __init__(self, model: nn.Module) -> None:
        self._blocks = dict(_outermost(model))
        self._agree: dict[Pair, bool] = {}
        self._code = SameCode()
        self._has_noted_all = False

    @property
    def known(self) -> tuple[tuple[Pair, bool], ...] | None:
        """What decides which blocks a run records; None if the next run records all of them in full."""
        if self._blocks and not self._has_noted_all:
            return None
        return tuple(self._agree.items())

    @contextmanager
    def noted(self, tracer: Tracer) -> Iterator[None]:
        """Record the blocks of one run; all calls are recorded normally if reads of numbers are tracked."""
        if tracer.reads:
            yield
            return
        run = BlocksOfRun(tracer, self._agree, self._code, in_full=not self._has_noted_all)
        with ExitStack() as stack:
            for path, module in self._blocks.items():
                stack.enter_context(override_forward(module, run.noting(path, module)))
            yield
        self._has_noted_all = True


def _outermost(model: nn.Module) -> Iterator[tuple[str, nn.Module]]:
    """Yield the outermost modules that have submodules and share their class with others."""
    found = {path: module for path, module in model.named_modules() if path and next(module.named_children(), None)}
    classes = Counter(type(module) for module in found.values())
    begun: list[str] = []
    for path, module in found.items():
        if classes[type(module)] > 1 and not path.startswith(tuple(begun)) and not isinstance(module, (nn.ModuleList, nn.ModuleDict)):
            begun.append(f"{path}.")
            yield path, module


@contextmanager
def override_forward(module: nn.Module, forward: Callable[..., Any]) -> Iterator[None]:
    """Give a module another forward, while it lasts; one that has a forward of its own keeps that."""
    if "forward" in vars(module):
        yield
        return
    module.forward = forward
    try:
        yield
    finally:
        del module.forward


def modes() -> tuple[bool, bool, bool]:
    """Return the modes of torch that a trace depends on: gradients, autocast, inference."""
    return torch.is_grad_enabled(), torch.is_autocast_enabled("cpu"), torch.is_inference_mode_enabled()


class SameCode:
    """Whether modules provably run the same code, with cached results for all runs of a model."""

    def __init__(self) -> None:
        self.watch = Watch()
        self._alike: dict[Pair, bool] = {}
        self._read: dict[Pair, tuple[Reads, list[tuple[nn.Module, nn.Module, str]]]] = {}

    def has(self, first: Call, call: Call) -> bool:
        """Return whether the module of another call can replace that of the first."""
        pair = first.path, call.path
        if pair not in self._alike:
            self._alike[pair] = have_same_structure(first.module, call.module)
        if not self._alike[pair]:
            return False
        if pair not in self._read or self._read[pair][0] != first.reads:
            self._read[pair] = first.reads, read_of(first.module, call.module, first.reads)
        return same_values(self._read[pair][1])


class BlocksOfRun:
    """The calls of blocks in one run.

    Args:
        code: decides whether two blocks run the same code.
        agree: whether the traces of two blocks agreed in the run that recorded both; that run fills it.
        in_full: whether this is that run.
    """

    def __init__(self, tracer: Tracer, agree: dict[Pair, bool], code: SameCode, in_full: bool) -> None:
        self._tracer, self._agree, self._code, self._in_full = tracer, agree, code, in_full
        self._calls: list[Call] = []

    def noting(self, path: str, module: nn.Module) -> Callable[..., Any]:
        """Return the replacement of the block's forward."""
        forward, parts = module.forward, list(module.modules())

        def block(*args: Any, **kwargs: Any) -> Any:
            leaves, spec = pytree.tree_flatten((args, kwargs), is_leaf=_is_opaque)
            with unseen():
                if all(isinstance(plain(leaf), (torch.Tensor, *PLAIN)) for leaf in leaves):
                    scope = self._tracer.scopes.now() if self._tracer.scopes is not None else {}
                    seen = list(map(self._describe_argument, leaves))
                    call = Call(path, module, parts, leaves, seen, spec, modes(), scope, *self._tracer.place_now)
                    first = self._equal(call)
                else:
                    call = None
            if call is None:
                return forward(*args, **kwargs)
            if first is None:
                return self._first(call, forward, args, kwargs)
            return self._again(first, call, forward, args, kwargs)

        return block

    def _describe_argument(self, leaf: Any) -> Any:
        """What a block can observe of an argument, except its values."""
        if not isinstance(leaf, torch.Tensor):
            return type(leaf), leaf.node.expr if isinstance(leaf, torch.SymInt) else leaf
        return self._tracer.sizes(leaf), leaf.stride(), leaf.dtype, leaf.device, leaf.requires_grad

    def _equal(self, call: Call) -> Call | None:
        """The earlier call that this one repeats, if any."""
        return next((first for first in self._calls if self._repeats(first, call)), None)

    def _repeats(self, first: Call, call: Call) -> bool:
        alike = type(first.module) is type(call.module) and not first.alone
        if not alike or not (self._in_full or self._agree.get((first.path, call.path), False)):
            return False
        same = (first.spec, first.modes, first.inputs) == (call.spec, call.modes, call.inputs)
        return same and self._code.has(first, call)

    def _first(self, call: Call, forward: Callable[..., Any], args: Any, kwargs: Any) -> Any:
        """Make a call that others may repeat, and record what it reads."""
        with unseen():
            before = snapshot(call.module), _versions(call.leaves)
        with self._code.watch.of(call.module) as call.reads:
            returned = forward(*args, **kwargs)
        with unseen():
            self._end(call, returned)
            leaves, spec = pytree.tree_flatten((args, kwargs), is_leaf=_is_opaque)
            is_changed = spec != call.spec or any(one is not other for one, other in zip(leaves, call.leaves, strict=True))
            call.alone = is_changed or before != (snapshot(call.module), _versions(call.leaves)) or self._is_unshareable(call)
        self._calls.append(call)
        return returned

    def _end(self, call: Call, returned: Any) -> None:
        call.end = len(self._tracer.rows)
        call.results, call.out_spec = pytree.tree_flatten(returned)

    def _is_unshareable(self, call: Call) -> bool:
        """Whether a call tests or reads values, calls a higher-order operator, or returns a copy or a tensor from outside."""
        rows = self._tracer.rows[call.begin : call.end]
        if any(row.op is BRANCH or row.by_values or not isinstance(row.op, OpOverload) for row in rows):
            return True
        if any(place >= call.begin for place, _ in self._tracer.constness.answers):
            return True
        return not all(self._is_own(call, leaf) for leaf in call.results)

    def _is_own(self, call: Call, result: Any) -> bool:
        if not isinstance(result, torch.Tensor):
            return isinstance(result, PLAIN)
        return is_inside(self._tracer.ref(result), call) and storage(result) not in self._tracer.twins

    def _returns_fresh_memory(self, call: Call) -> bool:
        """Whether all returned tensors have no values, and share no memory with each other or with the inputs."""
        tensors = [leaf for leaf in call.results if isinstance(leaf, torch.Tensor)]
        with unseen():
            taken = {storage(leaf) for leaf in (*call.leaves, *call.weights()) if isinstance(leaf, torch.Tensor)}
            memory = {storage(tensor) for tensor in tensors}
        return all(isinstance(leaf, FakeTensor) for leaf in tensors) and len(memory) == len(tensors) and memory.isdisjoint(taken)

    def _places(self, call: Call) -> list[Ref]:
        """Where the arguments and the weights of a block come from."""
        taken = (leaf for leaf in call.leaves if isinstance(leaf, torch.Tensor))
        return [self._tracer.ref(tensor) for tensor in (*taken, *call.weights())]

    def _again(self, first: Call, call: Call, forward: Callable[..., Any], args: Any, kwargs: Any) -> Any:
        if not self._in_full:
            without_values = any(isinstance(leaf, FakeTensor) for leaf in (*first.results, *call.leaves))
            if without_values and not self._returns_fresh_memory(first):
                return self._first(call, forward, args, kwargs)
            return self._unseen(first, call, forward, args, kwargs, self._tracer.work if without_values else None)
        returned = forward(*args, **kwargs)
        with unseen():
            self._end(call, returned)
            notes = BlockCopy(self._tracer, first, call, self._places(first), self._places(call))
            agree = first.out_spec == call.out_spec and notes.agree()
            self._agree[first.path, call.path] = agree and self._agree.get((first.path, call.path), True)
            if agree and self._tracer.follower is None:
                self._tracer.rows[call.begin :] = notes.rows()
        return returned

    def _unseen(self, first: Call, call: Call, forward: Callable[..., Any], args: Any, kwargs: Any, work: ComputeBudget | None) -> Any:
        """Make a call that is not recorded; with `work`, without computing values."""
        args, kwargs = pytree.tree_map(plain, (args, kwargs))
        with unseen():
            returned = forward(*args, **kwargs) if work is None else first.returned_as(work)
        with unseen():
            call.results, call.out_spec = pytree.tree_flatten(returned)
            if call.out_spec != first.out_spec or list(map(kind_of, call.results)) != list(map(kind_of, first.results)):
                raise self._tracer.refusal(f"the blocks {first.path} and {call.path} are equal but return different types,")
            BlockCopy(self._tracer, first, call, self._places(first), self._places(call)).write()
        return returned


@contextmanager
def unseen() -> Iterator[None]:
    """Do not record calls of torch."""
    with DisableTorchFunction(), DisablePythonDispatcher(), disable_current_modes():
        yield


def _is_opaque(value: Any) -> bool:
    """Whether a value is not a builtin list, tuple or dictionary; a block may mutate other containers, such as caches."""
    return type(value) not in (list, tuple, dict)


def _versions(leaves: Sequence[Any]) -> list[int]:
    return [leaf._version for leaf in leaves if isinstance(leaf, torch.Tensor)]
