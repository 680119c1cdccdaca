"""Track the modules that are being called."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager

from torch import nn
from torch.nn.modules import module as hooks

from ..lower.module_calls import Scope
from ..patches.registry import apply_patches, register_context


class Scopes:
    """The stack of modules being called, in the format of torch.export's `nn_module_stack`. Each call has its own key."""

    def __init__(self, model: nn.Module) -> None:
        self._paths = {id(module): path for path, module in model.named_modules()}
        self._stack: list[tuple[str, tuple[str, str]]] = []
        self._calls: Counter[str] = Counter()
        self._now: Scope = {}

    def now(self) -> Scope:
        """Return the current stack."""
        return self._now

    def follow_calls(self) -> AbstractContextManager[None]:
        """Track the calls of modules."""
        return apply_patches("scopes", enter=self._enter, leave=self._leave)

    def _enter(self, module: nn.Module) -> None:
        kind, path = type(module), self._paths.get(id(module), "")
        self._calls[path] += 1
        self._stack.append((f"L__self__{path}@{self._calls[path]}", (path, f"{kind.__module__}.{kind.__qualname__}")))
        self._now = dict(self._stack)

    def _leave(self) -> None:
        self._stack.pop()
        self._now = dict(self._stack)


@register_context("scopes", "the forward hooks of all modules", reason="an operator call does not show which module makes it")
@contextmanager
def _hooks_registered(enter: Callable[[nn.Module], None], leave: Callable[[], None]) -> Iterator[None]:
    handles = (
        hooks.register_module_forward_pre_hook(lambda module, args: enter(module)),
        hooks.register_module_forward_hook(lambda module, args, out: leave(), always_call=True),
    )
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()
