"""The modules that are being called."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TypeAlias

from torch import nn
from torch.nn.modules import module as hooks

Scope: TypeAlias = dict[str, tuple[str, str]]


class Scopes:
    """The modules that are being called, from the outermost, as torch.export writes them beside each node."""

    def __init__(self, model: nn.Module) -> None:
        self._paths = {id(module): path for path, module in model.named_modules()}
        self._stack: list[tuple[str, str]] = []
        self._now: Scope = {}

    def now(self) -> Scope:
        """Return them at this moment."""
        return self._now

    @contextmanager
    def followed(self) -> Iterator[None]:
        """Follow, while it lasts, the calls of modules."""
        handles = (
            hooks.register_module_forward_pre_hook(lambda module, args: self._enter(module)),
            hooks.register_module_forward_hook(lambda module, args, out: self._leave(), always_call=True),
        )
        try:
            yield
        finally:
            for handle in handles:
                handle.remove()

    def _enter(self, module: nn.Module) -> None:
        kind = type(module)
        self._stack.append((self._paths.get(id(module), ""), f"{kind.__module__}.{kind.__qualname__}"))
        self._now = as_stack(self._stack)

    def _leave(self) -> None:
        self._stack.pop()
        self._now = as_stack(self._stack)


def as_stack(stack: list[tuple[str, str]]) -> Scope:
    """Return modules, each by path and class, from the outermost, as a node of torch.export has them."""
    return {f"L__self__{path}@{depth}": (path, kind) for depth, (path, kind) in enumerate(stack)}
