"""`vmap` in a form that torch.export can trace: without chunks, with layer norms decomposed, and with batched indices."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch.nn.functional import layer_norm
from torch.overrides import TorchFunctionMode

from ..compat import exporting  # noqa: F401 - it imports what is patched
from ..compat import trees as pytree
from ..compat.operators import is_batchedtensor
from .registry import register_context, register_patch


@register_patch("vmap", "torch._functorch.apis.vmap_impl", reason="torch.export makes a constant of the number of chunks of chunk_size")
def _ignore_chunk_size(mapped: Callable[..., Any]) -> Callable[..., Any]:
    """Ignore `chunk_size`, which only saves memory, except where it also decides random numbers."""

    def whole(func: Any, in_dims: Any, out_dims: Any, randomness: str, chunk_size: int | None, *args: Any, **kwargs: Any) -> Any:
        size = chunk_size if randomness != "error" else None
        return mapped(func, in_dims, out_dims, randomness, size, *args, **kwargs)

    return whole


@register_patch(
    "vmap",
    "torch._export.non_strict_utils._NonStrictTorchFunctionHandler._override",
    reason="torch.export reads each batched position of an index as a number",
    issue="pytorch#158540",
)
def _keep_batched_index(override: Callable[..., Any]) -> Callable[..., Any]:
    """Pass an index with batched tensors through unchanged."""

    def overridden(self: Any, func: Any, args: Any, kwargs: Any) -> Any:
        indexed = getattr(func, "__name__", "") == "__getitem__" and isinstance(args[0], torch.Tensor)
        if indexed and any(isinstance(leaf, torch.Tensor) and is_batchedtensor(leaf) for leaf in pytree.tree_leaves(args[1:])):
            return func, args, kwargs
        return override(self, func, args, kwargs)

    return overridden


@register_context(
    "vmap", "torch.nn.functional.layer_norm", reason="torch's rule for batched tensors makes the size of the batch a constant"
)
class LayerNorms(TorchFunctionMode):
    """Writes out a layer norm of a batched tensor, because torch's own rule for it makes the size of the batch a constant."""

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        """Make the call."""
        if func is layer_norm and is_batchedtensor(args[0]):
            return _written_out(*args, **(kwargs or {}))
        return func(*args, **(kwargs or {}))


def _written_out(input: torch.Tensor, normalized_shape: Any, weight: Any = None, bias: Any = None, eps: float = 1e-5) -> torch.Tensor:
    axes = tuple(range(-len(normalized_shape), 0))
    centred = input - input.mean(axes, keepdim=True)
    made = centred * (centred.square().mean(axes, keepdim=True) + eps).rsqrt()
    made = made if weight is None else made * weight
    return made if bias is None else made + bias
