"""Prove that two modules run the same code on weights of the same shapes."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from functools import cache
from typing import Any

import torch
from torch import nn

from ..match import number_by_first_use

PLUMBING = {"_parameters", "_buffers", "_modules", "_non_persistent_buffers_set", "_is_full_backward_hook", "_version"}
HOOKS = (
    "_forward_hooks", "_forward_pre_hooks", "_backward_hooks", "_backward_pre_hooks",
)  # fmt: skip
SIMPLE = (int, float, bool, complex, str, bytes, type(None), torch.dtype, torch.device, torch.layout, torch.memory_format)
Reads = set[tuple[int, str]]  # the id of a module, and the name of an attribute


def weights(module: nn.Module) -> dict[str, torch.Tensor]:
    """Return all parameters and buffers by name, tied ones under each name."""
    return {**dict(module.named_parameters(remove_duplicate=False)), **dict(module.named_buffers(remove_duplicate=False))}


def have_same_structure(first: nn.Module, other: nn.Module) -> bool:
    """Return whether modules have the same classes inside, in the same modes and without hooks, and weights of the same kinds."""
    mine, yours = (
        [(path, type(module), module.training) for path, module in block.named_modules(remove_duplicate=False)] for block in (first, other)
    )
    return mine == yours and not _has_code_of_its_own(first) and not _has_code_of_its_own(other) and _have_same_weights(first, other)


def _has_code_of_its_own(module: nn.Module) -> bool:
    """Whether a module has a hook, or one inside it a `forward` set on the instance, which no other module shares."""
    has_hook = any(getattr(child, hooks, None) for child in module.modules() for hooks in HOOKS)
    return has_hook or any("forward" in vars(child) for child in module.modules() if child is not module)


def _have_same_weights(first: nn.Module, other: nn.Module) -> bool:
    mine, yours = weights(first), weights(other)
    if list(mine) != list(yours) or any(_describe_weight(weight) != _describe_weight(yours[name]) for name, weight in mine.items()):
        return False
    return number_by_first_use(map(id, mine.values())) == number_by_first_use(map(id, yours.values()))


def _describe_weight(weight: torch.Tensor) -> tuple[Any, ...]:
    return type(weight), tuple(weight.shape), weight.stride(), weight.dtype, weight.device, weight.requires_grad


def read_of(first: nn.Module, other: nn.Module, reads: Reads) -> list[tuple[nn.Module, nn.Module, str]]:
    """Return the instance attributes that the forward of `first` read, each with the module of `first` and that of `other`."""
    yours = dict(other.named_modules(remove_duplicate=False))
    pairs = {id(module): (module, yours[path]) for path, module in first.named_modules(remove_duplicate=False)}
    found = ((*pairs[number], name) for number, name in reads if number in pairs and not _is_plumbing(name))
    return [(mine, its, name) for mine, its, name in found if _may_be_own(mine, name) or _may_be_own(its, name)]


def _may_be_own(module: nn.Module, name: str) -> bool:
    """Whether an instance has an attribute of this name, or could have one that hides nothing."""
    if name in vars(module):
        return True
    return not (hasattr(type(module), name) or name in module._modules or name in module._parameters or name in module._buffers)


def same_values(read: Iterable[tuple[nn.Module, nn.Module, str]]) -> bool:
    """Return whether attributes that were read are equal in both modules."""
    return all(_same(getattr(mine, name, None), getattr(its, name, None)) for mine, its, name in read)


def attributes(module: nn.Module) -> dict[str, Any]:
    """Return the Python attributes of a module, except those of nn.Module itself."""
    return {name: value for name, value in vars(module).items() if not _is_plumbing(name)}


@cache
def _is_plumbing(name: str) -> bool:
    return name in PLUMBING or name == "forward" or "_hooks" in name


def _same(a: Any, b: Any) -> bool:
    """Return whether values are certainly equal: simple values and plain containers by value, all others by identity."""
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
    """Return what can change during a call of `forward`: attributes, and the versions of the weights."""
    found: dict[tuple[int, str], Any] = {(0, name): weight._version for name, weight in weights(module).items()}
    for child in module.modules():
        found |= {(id(child), name): _snapshot_value(value) for name, value in attributes(child).items()}
    return found


def _snapshot_value(value: Any) -> Any:
    if isinstance(value, SIMPLE):
        return value
    if isinstance(value, (list, tuple)):
        return tuple(map(_snapshot_value, value))
    if isinstance(value, dict):
        return tuple((str(key), _snapshot_value(item)) for key, item in value.items())
    return id(value)


class Watch:
    """Records reads of the attributes of modules by a subclass of each class, cached because creating it is slow."""

    def __init__(self) -> None:
        self._classes: dict[type, type] = {}
        self._recording: list[Reads] = []

    @contextmanager
    def of(self, module: nn.Module) -> Iterator[Reads]:
        """Record the attributes that are read from a module and its submodules."""
        reads: Reads = set()
        kinds = [(child, type(child)) for child in module.modules()]
        self._recording.append(reads)
        try:
            for child, kind in kinds:
                object.__setattr__(child, "__class__", self._watching(kind))
            yield reads
        finally:
            self._recording.remove(reads)
            for child, kind in kinds:
                object.__setattr__(child, "__class__", kind)

    def _watching(self, kind: type) -> type:
        if kind not in self._classes:
            subclass = self._classes[kind] = _watching(kind, self._recording)
            self._classes[subclass] = subclass  # of an enclosing block, which records for both
        return self._classes[kind]


def _watching(kind: Any, recordings: list[Reads]) -> type:
    """Return a subclass of `kind` that records attribute reads of its instances; reading `__dict__` counts as reading all of them."""

    def __getattribute__(self: Any, name: str) -> Any:
        if name == "__dict__" and sys._getframe(1).f_code.co_filename != nn.modules.module.__file__:
            names: Iterable[str] = object.__getattribute__(self, "__dict__")
        else:  # includes attributes of the class, because another instance may override them
            names = (name,)
        for reads in recordings:
            reads.update((id(self), key) for key in names)
        return kind.__getattribute__(self, name)

    own = {"__getattribute__": __getattribute__, "__module__": kind.__module__, "__qualname__": kind.__qualname__}
    return type(kind.__name__, (kind,), own)
