"""Whether two calls are of one kind: what is a tensor in one is a tensor in the other, of the same dtype, in the same structure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import nn
from torch.utils import _pytree as pytree

from ..samples import Sample, bound, format_leaf_path


def other_kind(module: nn.Module, first: Sample, other: Sample) -> str:
    """Return in words how the arguments of a call differ in kind from those of the first; nothing where only sizes and values do."""
    before, now = _leaves(module, first), _leaves(module, other)
    return "; ".join(told for name in {**before, **now} if (told := _differs(name, before, now)))


def _leaves(module: nn.Module, sample: Sample) -> dict[str, Any]:
    """The leaves by name, None among them."""
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
