"""Operators that take functions call them directly during a capture, without torch.compile."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Any

from ..compat.operators import COMPILES_AND_CALLS, has_compile_and_call
from .registry import apply_patches, register_patch


def functions_called_by(call: Callable[..., Any]) -> AbstractContextManager[None]:
    """Make operators with function arguments pass these to `call(function, args, kwargs)` inside the context, not to torch.compile."""
    return apply_patches("functions_called" if has_compile_and_call() else "functions_compiled", call=call)


@register_patch(
    "functions_called",
    f"torch._higher_order_ops.utils.{COMPILES_AND_CALLS}",
    optional=True,
    reason="operators that take functions would compile them first, from torch 2.12 on",
)
def _call_instead(compile_and_call: Callable[..., Any], call: Callable[..., Any]) -> Callable[..., Any]:
    return call


@register_patch("functions_compiled", "torch.compile", reason="operators that take functions would compile them first, until torch 2.11")
def _instead_of(compile: Callable[..., Any], call: Callable[..., Any]) -> Callable[..., Any]:
    def compiled(model: Any = None, **options: Any) -> Any:
        if getattr(model, "__name__", "").endswith("_op_wrapper"):
            return lambda *args, **kwargs: call(model, args, kwargs)
        return compile(model, **options)

    return compiled
