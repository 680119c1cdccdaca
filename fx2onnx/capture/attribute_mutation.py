"""Python attributes that a forward changes: harmless, or found by the next call, which a file cannot do. Not here: buffers, inputs."""

from __future__ import annotations

import copy
import sys
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from typing import Any

import torch
from torch import nn
from torch.utils import _pytree as pytree

from ..blocks.equality import SIMPLE, attributes
from ..errors import MutationError, first_sentence, shown_path

NUMBERS = (int, float, bool, complex, str, bytes, type(None))
WHOLE = (torch.Tensor, torch.SymInt, torch.SymFloat, torch.SymBool)
DEEP = 3  # how far an attribute of an attribute is followed
State = dict[tuple[str, str], Any]
Places = dict[tuple[str, str], str]


class Same:
    """Something that is equal to itself alone, and is kept alive so that nothing else can be taken for it."""

    def __init__(self, value: Any) -> None:
        self.value = value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Same) and self.value is other.value

    __hash__ = None


@contextmanager
def no_memory(module: nn.Module, args: tuple[Any, ...], kwargs: Mapping[str, Any], strict: bool = False) -> Iterator[None]:
    """While it lasts, the module is captured; what a call changes of its attributes must make no difference to the next call.

    Args:
        strict: whether TorchDynamo captures, which would trace the looking as well; then a call in eager is looked at instead.

    Raises:
        MutationError: it does.
    """
    if strict:
        yield
        changed = _changed_in_eager(module, (args, dict(kwargs)))
    else:
        kept = _values(module)
        try:
            with _changes(module) as changed:
                yield
        finally:
            _put_back(module, kept)
    if changed:
        _check_harmless(module, (args, dict(kwargs)), list(changed))


@contextmanager
def _changes(module: nn.Module) -> Iterator[dict[tuple[str, str], None]]:
    """While it lasts, the attributes that calls of the module change are noted."""
    before: list[State] = []
    changed: dict[tuple[str, str], None] = {}
    handles = (
        module.register_forward_pre_hook(lambda module, args: before.append(state(module))),
        module.register_forward_hook(lambda module, args, output: changed.update(dict.fromkeys(_changed(before[-1], state(module))))),
    )
    try:
        yield changed
    finally:
        for handle in handles:
            handle.remove()


def _changed_in_eager(module: nn.Module, call: Any) -> dict[tuple[str, str], None]:
    """What one call changes of a copy; nothing is known where that cannot be called."""
    with suppress(Exception):
        copied = _copied(module)
        with _changes(copied) as changed:
            _called(copied, call, [], {})
        return changed
    return {}


def state(module: nn.Module) -> State:
    """What can be told apart later of all attributes: numbers, and what lists, dictionaries and objects hold; tensors by identity."""
    known: dict[int, Any] = {}
    children = module.named_modules()
    return {(path, name): _told(value, known, DEEP) for path, child in children for name, value in attributes(child).items()}


def _told(value: Any, known: dict[int, Any], deep: int) -> Any:
    if isinstance(value, SIMPLE):
        return type(value), value
    if isinstance(value, WHOLE) or callable(value) or not deep:
        return Same(value)
    if id(value) not in known:
        known[id(value)] = Same(value)  # it may hold itself
        known[id(value)] = _inside(value, known, deep - 1)
    return known[id(value)]


def _inside(value: Any, known: dict[int, Any], deep: int) -> Any:
    if isinstance(value, (list, tuple)):
        return tuple(_told(item, known, deep) for item in value)
    held = value if isinstance(value, Mapping) else getattr(value, "__dict__", None)
    return Same(value) if held is None else tuple((str(key), _told(item, known, deep)) for key, item in held.items())


def _changed(before: State, after: State) -> list[tuple[str, str]]:
    return [key for key, value in after.items() if before.get(key, ()) != value]


def _values(module: nn.Module) -> dict[str, dict[str, Any]]:
    return {path: {name: (value, _content(value)) for name, value in attributes(child).items()} for path, child in module.named_modules()}


def _content(value: Any) -> Any:
    return copy.copy(value) if type(value) in (list, dict) else None


def _put_back(module: nn.Module, kept: dict[str, dict[str, Any]]) -> None:
    """torch.export leaves what is new, and puts back a copy for a list: what holds values of the trace goes, what was there comes back."""
    for path, child in module.named_modules():
        for name in attributes(child).keys() - kept.get(path, {}).keys():
            vars(child).pop(name)
        for name, (value, content) in kept.get(path, {}).items():
            if content is not None:
                value.clear()
                value.extend(content) if isinstance(value, list) else value.update(content)
                vars(child)[name] = value


def _check_harmless(module: nn.Module, call: Any, changed: list[tuple[str, str]]) -> None:
    """Calls copies in eager: what the attributes are after one call must make no difference to the next.

    Raises:
        MutationError: it does, or the copies cannot be called.
    """
    places: Places = {}
    try:
        why = _difference(module, call, changed, places)
    except Exception as error:  # noqa: BLE001 - whatever eager raises, nothing was shown then
        why = f"whether the next call finds it could not be tried: {first_sentence(error)}"
    if why:
        listed = ", ".join(".".join(filter(None, key)) + (f" at {places[key]}" if key in places else "") for key in changed)
        raise MutationError(
            f"the model changes {listed}, and a file keeps no state between calls: {why}. "
            'Make it an argument and a result, or a buffer and pass mutations="outputs".'
        )


def _difference(module: nn.Module, call: Any, changed: list[tuple[str, str]], places: Places) -> str | None:
    """What another call does differently because of the first; None when nothing."""
    used = _copied(module)
    first = _called(used, call, changed, places)
    left = _extent(used, changed)
    if not _equal(first, _called(used, call, changed, places)):
        return "the second call returns something else"
    if _extent(used, changed) != left:
        return "each call changes it further"
    other = pytree.tree_map_only(torch.Tensor, _other, call)
    try:
        fresh = _called(_copied(module), other, changed, places)
    except Exception:  # noqa: BLE001 - these values are made up, the model may refuse them
        return None
    return None if _equal(fresh, _called(used, other, changed, places)) else "it is made of the values of the first call"


def _copied(module: nn.Module) -> nn.Module:
    return copy.deepcopy(module, {id(p): p for p in module.parameters()})


def _called(module: nn.Module, call: Any, changed: list[tuple[str, str]], places: Places) -> Any:
    """What a call returns; buffers are put back, since those are looked at elsewhere."""
    held = {child: dict(child._buffers) for child in module.modules()}
    args, kwargs = pytree.tree_map(lambda leaf: leaf.detach().clone() if isinstance(leaf, torch.Tensor) else copy.deepcopy(leaf), call)
    with torch.no_grad(), torch.random.fork_rng(), _places_noted(module, changed, places):
        torch.manual_seed(0)
        for child, buffers in held.items():
            child._buffers.update({name: copy.deepcopy(buffer) for name, buffer in buffers.items()})
        try:
            return module(*args, **kwargs)
        finally:
            for child, buffers in held.items():
                child._buffers.update(buffers)


def _extent(module: nn.Module, changed: list[tuple[str, str]]) -> Any:
    """How much the changed attributes hold, and the numbers among it: a list that grows, a count. Tensors count by their shape."""
    leaves = {key: pytree.tree_flatten(getattr(module.get_submodule(key[0]), key[1], None)) for key in changed}
    return {key: ([_kind(leaf) for leaf in found], spec) for key, (found, spec) in leaves.items()}


def _kind(leaf: Any) -> Any:
    if isinstance(leaf, torch.Tensor):
        return leaf.shape, leaf.dtype
    return leaf if isinstance(leaf, NUMBERS) else _told_by_content(leaf)


def _told_by_content(leaf: Any) -> Any:
    held = getattr(leaf, "__dict__", {})
    return type(leaf), tuple((key, value) for key, value in held.items() if isinstance(value, NUMBERS))


def _other(tensor: torch.Tensor) -> torch.Tensor:
    """Other values that such a tensor may well have: its own, backwards, and smaller where they are no integers."""
    turned = tensor.flatten().flip(0).reshape(tensor.shape)
    return turned / 2 if tensor.is_floating_point() else turned


def _equal(one: Any, other: Any) -> bool:
    mine, yours = pytree.tree_flatten(one), pytree.tree_flatten(other)
    return mine[1] == yours[1] and all(map(_alike, mine[0], yours[0]))


def _alike(a: Any, b: Any) -> bool:
    if not isinstance(a, torch.Tensor) or not isinstance(b, torch.Tensor):
        return isinstance(a, NUMBERS) is False or bool(a == b)
    if not a.dtype.is_floating_point or a.dtype != b.dtype or a.shape != b.shape:
        return torch.equal(a, b) and a.dtype == b.dtype
    return torch.allclose(a, b, rtol=1e-3, atol=1e-5, equal_nan=True)


@contextmanager
def _places_noted(module: nn.Module, changed: list[tuple[str, str]], places: Places) -> Iterator[None]:
    """While it lasts, the line that sets one of these attributes, or reads it to change what it holds, is noted."""
    with ExitStack() as stack:
        for path, child in module.named_modules():
            if names := {name for at, name in changed if at == path}:
                stack.enter_context(_watched(child, path, names, places))
        yield


@contextmanager
def _watched(module: nn.Module, path: str, names: set[str], places: Places) -> Iterator[None]:
    kind = type(module)

    def __setattr__(self: Any, name: str, value: Any) -> None:
        if self is module and name in names:
            places[path, name] = _line(sys._getframe(1))
        kind.__setattr__(self, name, value)

    def __getattribute__(self: Any, name: str) -> Any:
        if self is module and name in names:
            places.setdefault((path, name), _line(sys._getframe(1)))
        return kind.__getattribute__(self, name)

    module.__class__ = type(kind.__name__, (kind,), {"__setattr__": __setattr__, "__getattribute__": __getattribute__})
    try:
        yield
    finally:
        module.__class__ = kind


def _line(frame: Any) -> str:
    return f"{shown_path(frame.f_code.co_filename)}:{frame.f_lineno} in {frame.f_code.co_name}"
