"""Dispatch modes and dispatch keys of torch, and how to leave them."""

from __future__ import annotations

import torch
from torch._C import DisableTorchFunction, DispatchKey
from torch._C import _disabled_torch_function_impl as disabled_torch_function_impl
from torch._C import _DisablePythonDispatcher as DisablePythonDispatcher
from torch._C import _dispatch_tls_is_dispatch_key_excluded as dispatch_tls_is_dispatch_key_excluded
from torch._C import _dispatch_tls_set_dispatch_key_included as dispatch_tls_set_dispatch_key_included
from torch._C import _is_any_autocast_enabled as is_any_autocast_enabled
from torch._dispatch.python import enable_python_dispatcher
from torch._ops import mode_stack_state_for_pre_dispatch
from torch.fx.experimental.proxy_tensor import ProxyTorchDispatchMode, disable_proxy_modes_tracing, make_fx
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._python_dispatch import _disable_current_modes as disable_current_modes

__all__ = [
    "DisablePythonDispatcher", "DisableTorchFunction", "DispatchKey", "ProxyTorchDispatchMode", "TorchDispatchMode",
    "disable_current_modes", "disable_proxy_modes_tracing", "disabled_torch_function_impl", "dispatch_tls_is_dispatch_key_excluded",
    "dispatch_tls_set_dispatch_key_included", "enable_python_dispatcher", "is_any_autocast_enabled", "is_fake_mode_active", "make_fx",
    "mode_stack_state_for_pre_dispatch",
]  # fmt: skip


def is_fake_mode_active() -> bool:
    """Return whether the caller has entered a `FakeTensorMode`."""
    return torch._C._get_dispatch_mode(torch._C._TorchDispatchModeKey.FAKE) is not None
