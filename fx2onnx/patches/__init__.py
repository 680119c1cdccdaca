"""Patches of torch and Python during a capture: the registry, and modules that contain only patches."""

from . import caught_errors, cumulative_batch_norm, flex_attention, module_to, one_hot, operator_dispatch, quiet_logs, tensor_len, vmap

__all__ = [
    "caught_errors", "cumulative_batch_norm", "flex_attention", "module_to", "one_hot", "operator_dispatch", "quiet_logs", "tensor_len",
    "vmap",
]  # fmt: skip
