"""A fast path from an operator to the tracer, without torch's dispatch."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

from ..compat.dispatch import (
    DispatchKey,
    ProxyTorchDispatchMode,
    dispatch_tls_is_dispatch_key_excluded,
    dispatch_tls_set_dispatch_key_included,
    mode_stack_state_for_pre_dispatch,
)
from ..compat.operators import OpOverload
from .registry import register_patch

PRE_DISPATCH = DispatchKey.PreDispatch
PYTHON = DispatchKey.Python
PLACE = 0  # the index of this kind of mode in the mode stack


@register_patch(
    "operator_dispatch", "torch._ops.OpOverload._get_dispatch", reason="the dispatch of torch before each call triples the time of a run"
)
def _handing_calls_to(asked: Callable[..., Any], mode: ProxyTorchDispatchMode) -> Callable[..., Any]:
    """Pass calls of operators directly to an active mode, without the dispatch of torch, which triples the time.

    If torch would not call this mode, the original dispatch is used.
    """
    modes = mode_stack_state_for_pre_dispatch()
    handlers: dict[OpOverload, Callable[..., Any]] = {}

    def called(op: OpOverload, *args: Any, **kwargs: Any) -> Any:
        modes.set(PLACE, None)
        dispatch_tls_set_dispatch_key_included(PRE_DISPATCH, False)
        try:
            return mode.__torch_dispatch__(op, (), args, kwargs)
        finally:
            modes.set(PLACE, mode)
            dispatch_tls_set_dispatch_key_included(PRE_DISPATCH, True)

    def is_asked() -> bool:
        return modes.get(PLACE) is mode and modes.get(1) is None and modes._schema_check_mode is None

    def get_dispatch(self: OpOverload, key: DispatchKey) -> Any:
        if key != PRE_DISPATCH or not is_asked() or dispatch_tls_is_dispatch_key_excluded(PYTHON):
            return asked(self, key)
        if self not in handlers:
            handlers[self] = partial(called, self)
        return handlers[self]

    return get_dispatch
