"""Python attributes that `forward` changes, which an exported model cannot do. lower/conversion.py handles buffers and inputs."""

from __future__ import annotations

import copy
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from types import ModuleType
from typing import Any

import torch
from torch import nn

from ..compat import trees as pytree
from ..copies import copied_whole, copy_sharing_parameters
from ..errors import MutationError, first_sentence, line_at
from .module_equality import SIMPLE, attributes

NUMBERS = (int, float, bool, complex, str, bytes, type(None))
WHOLE = (torch.Tensor, torch.SymInt, torch.SymFloat, torch.SymBool)
PLAIN = frozenset(vars(nn.Module()))  # what every module has
HOOKS = ("_forward_hooks", "_forward_pre_hooks")
DEEP = 3  # how deep attributes of attributes are followed
Arguments = tuple[tuple[Any, ...], dict[str, Any]]
Key = tuple[str, str]  # the path of a module, and an attribute of it
Values = dict[Key, Any]
Lines = dict[Key, str]


class Same:
    """Compares a value by identity, and keeps it alive so that its id is not reused."""

    def __init__(self, value: Any) -> None:
        self.value = value

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Same) and self.value is other.value

    def __hash__(self) -> int:
        return id(self.value)


@contextmanager
def only_harmless_mutations(module: nn.Module, args: tuple[Any, ...], kwargs: Mapping[str, Any], strict: bool = False) -> Iterator[None]:
    """Check that the attributes which the module changes while it is captured do not affect the next call.

    Args:
        strict: whether TorchDynamo captures. It would trace the checks as well, so a call in eager is checked instead.

    Raises:
        MutationError: If a change affects the next call.
    """
    if strict:
        yield
        changed = _changed_in_eager(module, (args, dict(kwargs)))
    else:
        with restore_module_state(module), _changes(module) as changed:
            yield
    if changed:
        _check_harmless(module, (args, dict(kwargs)), list(changed))


@contextmanager
def restore_module_state(module: nn.Module) -> Iterator[None]:
    """Restore on exit what a call of a module changes: attributes and their contents, buffers, parameters and hooks."""
    saved, children = _collect_attributes(module), list(module.modules())
    contents = list(_contents([value for values in saved.values() for value in values.values()], DEEP - 1, set()))
    tables: list[dict[Any, Any]] = [table for child in children for table in (child._buffers, child._parameters) if type(table) is dict]
    tables += [getattr(child, name) for child in children for name in HOOKS]
    registered = [(table, dict(table)) for table in tables]
    own_hooks = [(child, _snapshot_hooks(child)) for child in children]
    try:
        yield
    finally:
        for child, values in own_hooks:
            for name in _snapshot_hooks(child).keys() - values.keys():
                vars(child).pop(name)
            vars(child).update(values)
        _put_back(module, saved, contents)
        for table, values in registered:
            table.clear()
            table.update(values)


def _snapshot_hooks(module: nn.Module) -> dict[str, Any]:
    """The attributes in which a model stores its own hooks, such as models of transformers that return all hidden states."""
    return {name: value for name, value in vars(module).items() if "_hooks" in name and name not in PLAIN}


@contextmanager
def _changes(module: nn.Module) -> Iterator[dict[Key, None]]:
    """Record the attributes that calls of the module change."""
    before: list[Values] = []
    changed: dict[Key, None] = {}
    handles = (
        module.register_forward_pre_hook(lambda module, args: before.append(attribute_values(module))),
        module.register_forward_hook(lambda module, args, output: changed.update(_find_changes(before[-1], attribute_values(module)))),
    )
    try:
        yield changed
    finally:
        for handle in handles:
            handle.remove()


def _changed_in_eager(module: nn.Module, call: Arguments) -> dict[Key, None]:
    """Return what one call of a copy changes in eager; nothing if the call fails."""
    with suppress(Exception):
        copied = _copy_module(module)
        with _changes(copied) as changed:
            _call_module(copied, call, [], {})
        return changed
    return {}


def attribute_values(module: nn.Module) -> Values:
    """Return a comparable snapshot of the attributes: numbers and the contents of containers and objects; tensors by identity.

    Of buffers it contains only the names, because their values are checked elsewhere, and of parameters the identity.
    """
    known: dict[int, Any] = {}
    values: Values = {}
    for path, child in module.named_modules():
        values.update({(path, name): None for name, buffer in child._buffers.items() if buffer is not None})
        values.update({(path, name): Same(parameter) for name, parameter in child._parameters.items() if parameter is not None})
        values.update({(path, name): _snapshot(value, known, DEEP) for name, value in attributes(child).items()})
        values.update({(path, name): tuple(getattr(child, name)) for name in HOOKS})
    return values


def _snapshot(value: Any, known: dict[int, Any], deep: int) -> Any:
    if isinstance(value, SIMPLE):
        return type(value), value
    if isinstance(value, WHOLE) or callable(value) or not deep:
        return Same(value)
    if id(value) not in known:
        known[id(value)] = Same(value)  # it may contain itself
        known[id(value)] = _inside(value, known, deep - 1)
    return known[id(value)]


def _inside(value: Any, known: dict[int, Any], deep: int) -> Any:
    if isinstance(value, (list, tuple)):
        return tuple(_snapshot(item, known, deep) for item in value)
    contents = value if isinstance(value, Mapping) else getattr(value, "__dict__", None)
    return Same(value) if contents is None else tuple((str(key), _snapshot(item, known, deep)) for key, item in contents.items())


def _find_changes(before: Values, after: Values) -> dict[Key, None]:
    return {key: None for key, value in after.items() if before.get(key, ()) != value}


def _collect_attributes(module: nn.Module) -> dict[str, dict[str, Any]]:
    return {path: dict(attributes(child)) for path, child in module.named_modules()}


def _contents(values: Iterable[Any], deep: int, visited: set[int]) -> Iterator[tuple[Any, Any]]:
    """Yield each list, dictionary and object's `__dict__` among these values, with a copy."""
    for value in values:
        contents = value if type(value) in (list, dict) else vars(value) if _is_plain(value) else None
        if contents is None or id(value) in visited:
            continue
        visited.add(id(value))
        yield contents, copy.copy(contents)
        if deep:
            inside = contents.values() if isinstance(contents, dict) else contents
            yield from _contents([item for item in inside if not isinstance(item, SIMPLE)], deep - 1, visited)


def _is_plain(value: Any) -> bool:
    """Whether a value is an object of the model that holds other values, and is not torch's."""
    return hasattr(value, "__dict__") and not callable(value) and not isinstance(value, (*WHOLE, nn.Module, ModuleType))


def _put_back(module: nn.Module, saved: dict[str, dict[str, Any]], contents: Iterable[tuple[Any, Any]]) -> None:
    """Remove what a call or torch.export added, including values of the trace, and restore the previous attributes."""
    for path, child in module.named_modules():
        for name in attributes(child).keys() - saved.get(path, {}).keys():
            vars(child).pop(name)
        for name, value in saved.get(path, {}).items():
            if vars(child).get(name) is not value:
                vars(child)[name] = value
    for value, content in contents:
        if not _has_same_contents(value, content):
            value.clear()
            value.extend(content) if isinstance(value, list) else value.update(content)


def _has_same_contents(value: Any, content: Any) -> bool:
    mine, yours = ([*held, *held.values()] if isinstance(held, dict) else held for held in (value, content))
    return len(mine) == len(yours) and all(a is b for a, b in zip(mine, yours, strict=True))


def _check_harmless(module: nn.Module, call: Arguments, changed: list[Key]) -> None:
    """Compare calls of copies in eager: the attributes after one call must not affect the next.

    Raises:
        MutationError: If they do, or if the copies cannot be called.
    """
    lines: Lines = {}
    try:
        why = _next_call_differs(module, call, changed, lines)
    except Exception as error:  # noqa: BLE001 - without a result in eager, nothing is proven
        why = f"its effect on the next call could not be checked: {first_sentence(error)}"
    if why:
        listed = ", ".join(".".join(filter(None, key)) + (f" at {lines[key]}" if key in lines else "") for key in changed)
        raise MutationError(
            f"the model changes {listed}, and an ONNX model keeps no state between calls: {why}. "
            'Pass it as an input and return it as an output, or make it a buffer and pass mutations="outputs".'
        )


def _next_call_differs(module: nn.Module, call: Arguments, changed: list[Key], lines: Lines) -> str | None:
    """Return how another call differs because of the first; None if it does not."""
    used = _copy_module(module)
    first = _call_module(used, call, changed, lines)
    left = _extent(used, changed)
    if not equal_results(first, _call_module(used, call, changed, lines)):
        return "a second call with the same inputs returns a different result"
    if _extent(used, changed) != left:
        return "each call changes it again"
    other = pytree.tree_map_only(torch.Tensor, _other_values, call)
    try:
        fresh = _call_module(_copy_module(module), other, changed, lines)
    except Exception:  # noqa: BLE001 - these values are arbitrary, so the model may reject them
        return None
    return (
        None
        if equal_results(fresh, _call_module(used, other, changed, lines))
        else "later calls return results that depend on the values of the first call"
    )


def called_apart(module: nn.Module, call: Arguments) -> Any:
    """Return the result of a call of a copy, with a fixed seed. Raises what the module raises."""
    return _call_module(_copy_module(module), call, [], {})


def answers_alike(module: nn.Module, call: Arguments, buffers: Mapping[str, torch.Tensor]) -> bool:
    """Return whether a call in eager has the same result with these buffers; False if it fails."""
    other = _copy_module(module)
    for name, tensor in buffers.items():
        path, _, buffer = name.rpartition(".")
        other.get_submodule(path)._buffers[buffer] = tensor
    with suppress(Exception):
        return equal_results(called_apart(module, call), _call_module(other, call, [], {}))
    return False


def _copy_module(module: nn.Module) -> nn.Module:
    return copy_sharing_parameters(module)


def _call_module(module: nn.Module, call: Arguments, changed: list[Key], lines: Lines) -> Any:
    """Return the result of a call, and restore the buffers, which are checked elsewhere."""
    saved = {child: dict(child._buffers) for child in module.modules()}
    args, kwargs = pytree.tree_map(lambda leaf: leaf.detach().clone() if isinstance(leaf, torch.Tensor) else copy.deepcopy(leaf), call)
    with torch.no_grad(), torch.random.fork_rng(devices=()), _record_lines(module, changed, lines):
        torch.default_generator.manual_seed(0)
        for child, buffers in saved.items():
            child._buffers.update({name: copied_whole(buffer) for name, buffer in buffers.items()})
        try:
            return module(*args, **kwargs)
        finally:
            for child, buffers in saved.items():
                child._buffers.update(buffers)


def _extent(module: nn.Module, changed: list[Key]) -> Any:
    """Return the structure and the numbers of the changed attributes, such as the length of a list or a count; tensors by shape."""
    leaves = {key: pytree.tree_flatten(getattr(module.get_submodule(key[0]), key[1], None)) for key in changed}
    return {key: ([_kind(leaf) for leaf in found], spec) for key, (found, spec) in leaves.items()}


def _kind(leaf: Any) -> Any:
    if isinstance(leaf, torch.Tensor):
        return leaf.shape, leaf.dtype
    return leaf if isinstance(leaf, NUMBERS) else _describe_members(leaf)


def _describe_members(leaf: Any) -> Any:
    members = getattr(leaf, "__dict__", {})
    return type(leaf), tuple((key, value) for key, value in members.items() if isinstance(value, NUMBERS))


def _other_values(tensor: torch.Tensor) -> torch.Tensor:
    """Return other plausible values for a tensor: its own in reverse order, halved if they are floats."""
    turned = tensor.flatten().flip(0).reshape(tensor.shape)
    return turned / 2 if tensor.is_floating_point() else turned


def equal_results(one: Any, other: Any) -> bool:
    """Return whether two calls return the same results, up to rounding."""
    mine, yours = pytree.tree_flatten(one), pytree.tree_flatten(other)
    return mine[1] == yours[1] and all(map(_alike, mine[0], yours[0]))


def _alike(a: Any, b: Any) -> bool:
    if not isinstance(a, torch.Tensor) or not isinstance(b, torch.Tensor):
        return isinstance(a, NUMBERS) is False or bool(a == b)
    if not a.dtype.is_floating_point or a.dtype != b.dtype or a.shape != b.shape:
        return torch.equal(a, b) and a.dtype == b.dtype
    return torch.allclose(a, b, rtol=1e-3, atol=1e-5, equal_nan=True)


@contextmanager
def _record_lines(module: nn.Module, changed: list[Key], lines: Lines) -> Iterator[None]:
    """Record the line that sets one of these attributes, or reads it to change its contents."""
    with ExitStack() as stack:
        for path, child in module.named_modules():
            if names := {name for at, name in changed if at == path and name not in HOOKS}:
                stack.enter_context(_record_lines_of(child, path, names, lines))
        yield


@contextmanager
def _record_lines_of(module: nn.Module, path: str, names: set[str], lines: Lines) -> Iterator[None]:
    kind = type(module)

    def __setattr__(self: Any, name: str, value: Any) -> None:
        if self is module and name in names:
            lines[path, name] = line_at(sys._getframe(1))
        kind.__setattr__(self, name, value)

    def __getattribute__(self: Any, name: str) -> Any:
        if self is module and name in names:
            lines.setdefault((path, name), line_at(sys._getframe(1)))
        return kind.__getattribute__(self, name)

    module.__class__ = type(kind.__name__, (kind,), {"__setattr__": __setattr__, "__getattribute__": __getattribute__})
    try:
        yield
    finally:
        module.__class__ = kind
