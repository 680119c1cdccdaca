"""Compare the kinds of two calls: which arguments are tensors, their dtypes and ranks, and the structure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import nn

from fx2onnx.compat import trees as pytree

from ..samples import Sample, bound, format_leaf_path


def other_kind(module: nn.Module, first: Sample, other: Sample) -> str:
    """Describe how the kinds of a call's arguments differ from those of the first call; empty if only sizes and values differ."""
    before, now = _leaves(module, first), _leaves(module, other)
    return "; ".join(text for name in {**before, **now} if (text := _differs(name, before, now)))


def _leaves(module: nn.Module, sample: Sample) -> dict[str, Any]:
    """Return the leaves by name; None counts as a leaf."""
    try:
        arguments: Mapping[str, Any] = bound(module, sample.args, sample.kwargs)
    except TypeError:
        arguments = {**{f"argument {i}": arg for i, arg in enumerate(sample.args)}, **sample.kwargs}
    flat = pytree.tree_flatten_with_path(dict(arguments), is_leaf=lambda value: value is None)[0]
    return {format_leaf_path(path): leaf for path, leaf in flat}


def _differs(name: str, before: Mapping[str, Any], now: Mapping[str, Any]) -> str:
    was, is_ = (_kind(leaves[name]) if name in leaves else "not given" for leaves in (before, now))
    return f"`{name}` is {is_} and was {was} at the export" if was != is_ else ""


def _kind(leaf: Any) -> str:
    if isinstance(leaf, torch.Tensor):
        return f"a {str(leaf.dtype).removeprefix('torch.')} tensor of {leaf.dim()} axes"
    return "None" if leaf is None else f"{'an' if isinstance(leaf, int) and not isinstance(leaf, bool) else 'a'} {type(leaf).__name__}"
