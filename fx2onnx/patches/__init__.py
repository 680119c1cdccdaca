"""What a capture replaces in torch and Python while it runs: the registry, and patches that need nothing else of this package."""

from . import caught_errors, cumulative_batch_norm, flex_attention, module_to, one_hot, operator_dispatch, quiet_logs, tensor_len, vmap

__all__ = [
    "caught_errors", "cumulative_batch_norm", "flex_attention", "module_to", "one_hot", "operator_dispatch", "quiet_logs", "tensor_len",
    "vmap",
]  # fmt: skip
