"""Whether two modules are provably the same code over weights of the same shapes."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from typing import Any

import torch
from torch import nn

from ..match import number_by_first_use

PLUMBING = {"_parameters", "_buffers", "_modules", "_non_persistent_buffers_set", "_is_full_backward_hook", "_version"}
HOOKS = (
    "_forward_hooks", "_forward_pre_hooks", "_backward_hooks", "_backward_pre_hooks",
)  # fmt: skip
SIMPLE = (int, float, bool, complex, str, bytes, type(None), torch.dtype, torch.device, torch.layout, torch.memory_format)
MARKS_A_BLOCK = "marks_a_block"  # what the forward of a marked module is told by
Reads = set[tuple[int, str]]  # the id of a module, and an attribute of it


def weights(module: nn.Module) -> dict[str, torch.Tensor]:
    """Return all parameters and buffers by name, tied ones under each of their names."""
    return {**dict(module.named_parameters(remove_duplicate=False)), **dict(module.named_buffers(remove_duplicate=False))}


def difference(first: nn.Module, other: nn.Module, reads: Reads) -> str | None:
    """Return why `other` cannot stand in for `first`; None when it is proven that it can.

    Args:
        reads: the attributes that the forward of `first` was seen to read; the others may differ.
    """
    return _structure(first, other) or _weights_differ(first, other) or _attributes_differ(first, other, reads)


def _structure(first: nn.Module, other: nn.Module) -> str | None:
    mine, yours = dict(first.named_modules(remove_duplicate=False)), dict(other.named_modules(remove_duplicate=False))
    if list(mine) != list(yours):
        return "it has different submodules"
    for path, module in mine.items():
        if class_of(module) is not class_of(yours[path]):
            return f"{path or 'it'} has a different class"
        if module.training != yours[path].training:
            return f"{path or 'it'} is not in the same mode (training or evaluation)"
    return peculiarity(first) or peculiarity(other)


def peculiarity(module: nn.Module) -> str | None:
    """Return the hook or the `forward` of its own, which no other module shares."""
    for path, child in module.named_modules():
        if any(getattr(child, hooks, None) for hooks in HOOKS):
            return f"{path or 'it'} has a hook"
        if "forward" in vars(child) and not getattr(vars(child)["forward"], MARKS_A_BLOCK, False):
            return f"{path or 'it'} has its own forward, set on the instance"
    return None


def class_of(module: nn.Module) -> type:
    """Return the class, seen through a watching one."""
    return getattr(type(module), "watched_class", type(module))


def _weights_differ(first: nn.Module, other: nn.Module) -> str | None:
    mine, yours = weights(first), weights(other)
    if list(mine) != list(yours):
        return "it has different parameters or buffers"
    for name, weight in mine.items():
        if _described(weight) != _described(yours[name]):
            return f"{name} has a different shape, dtype or layout"
    if number_by_first_use(map(id, mine.values())) != number_by_first_use(map(id, yours.values())):
        return "its weights are tied differently"
    return None


def _described(weight: torch.Tensor) -> tuple[Any, ...]:
    return type(weight), tuple(weight.shape), weight.stride(), weight.dtype, weight.device, weight.requires_grad


def _attributes_differ(first: nn.Module, other: nn.Module, reads: Reads) -> str | None:
    yours = dict(other.named_modules(remove_duplicate=False))
    for path, module in first.named_modules(remove_duplicate=False):
        for name in sorted(attributes(module).keys() | attributes(yours[path]).keys()):
            if (id(module), name) in reads and not _same(getattr(module, name, None), getattr(yours[path], name, None)):
                return f"{path + '.' if path else ''}{name} differs, and forward reads it"
    return None


def attributes(module: nn.Module) -> dict[str, Any]:
    """Return the Python attributes of a module, without what nn.Module itself keeps."""
    return {k: v for k, v in vars(module).items() if k not in PLUMBING and k != "forward" and "_hooks" not in k}


def all_attributes(module: nn.Module) -> Reads:
    """Return every Python attribute of a module and its submodules, as if all had been read."""
    return {(id(child), name) for child in module.modules() for name in attributes(child)}


def _same(a: Any, b: Any) -> bool:
    """Return an equality that is never guessed: of simple values and of plain containers of them; for anything else, identity."""
    if a is b:
        return True
    if type(a) is not type(b):
        return False
    if isinstance(a, SIMPLE):
        return a == b
    if isinstance(a, (list, tuple)):
        return len(a) == len(b) and all(map(_same, a, b))
    if isinstance(a, Mapping):
        return list(a) == list(b) and all(_same(a[key], b[key]) for key in a)
    return False


def snapshot(module: nn.Module) -> dict[tuple[int, str], Any]:
    """Return what can be seen to change while a forward runs: attributes, and the versions of the weights."""
    found: dict[tuple[int, str], Any] = {(0, name): weight._version for name, weight in weights(module).items()}
    for child in module.modules():
        found |= {(id(child), name): _remembered(value) for name, value in attributes(child).items()}
    return found


def _remembered(value: Any) -> Any:
    if isinstance(value, SIMPLE):
        return value
    if isinstance(value, (list, tuple)):
        return tuple(map(_remembered, value))
    if isinstance(value, dict):
        return tuple((str(key), _remembered(item)) for key, item in value.items())
    return id(value)


@contextmanager
def watched(module: nn.Module) -> Iterator[Reads]:
    """Note, while it lasts, the Python attributes that are read of a module and its submodules."""
    reads: Reads = set()
    with ExitStack() as stack:
        for child in module.modules():
            stack.enter_context(_watched_one(child, reads))
        yield reads


@contextmanager
def _watched_one(module: nn.Module, reads: Reads) -> Iterator[None]:
    kind = type(module)
    module.__class__ = _watching(kind, reads)
    try:
        yield
    finally:
        module.__class__ = kind


def _watching(kind: type[nn.Module], reads: Reads) -> type[nn.Module]:
    """Return a subclass that looks like `kind` and notes what is read of its instances; `__dict__` counts as everything in it."""

    def __getattribute__(self: Any, name: str) -> Any:
        if name == "__dict__" and sys._getframe(1).f_code.co_filename != nn.modules.module.__file__:
            reads.update((id(self), key) for key in object.__getattribute__(self, "__dict__"))
        else:  # also what only the class has: another instance may have its own
            reads.add((id(self), name))
        return kind.__getattribute__(self, name)

    own = {"__getattribute__": __getattribute__, "watched_class": kind, "__module__": kind.__module__, "__qualname__": kind.__qualname__}
    return type(kind.__name__, (kind,), own)
