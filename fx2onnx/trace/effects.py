"""Classify operators: those that read values, those with data-dependent sizes, and those that mutate tensors."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from typing import Any

import torch

from ..compat import trees as pytree
from ..compat.operators import OpOverload
from ..lower.aliasing import HIDDEN_WRITES
from .events import plain

aten = torch.ops.aten
VALUES_READ = {aten._local_scalar_dense.default, aten.item.default, aten.is_nonzero.default, aten.equal.default}
INDEXING = {aten.index.Tensor, aten._unsafe_index.Tensor}
COUNTING = {  # data-dependent output sizes, without a tag in torch
    aten.where.default,
    aten.nonzero_numpy.default,
    aten.repeat_interleave.self_Tensor,
    aten.tensor_split.tensor_indices_or_sections,
    aten._pack_padded_sequence.default,
}
RAGGED = {aten._pack_padded_sequence.default}  # their results have no fixed layout
UNCHECKED = {aten.lu_unpack.default}  # their kernels write out of bounds if the sizes do not match, as may happen at another size
DROPOUTS = {aten.dropout.default, aten.feature_dropout.default, aten.alpha_dropout.default, aten.feature_alpha_dropout.default}
TRAINING = 5  # the position of `training` in the arguments of batch norm, and of `use_input_stats` in those of instance norm
RESIZING = (
    *(f"{kind}{axes}d" for kind in ("upsample_nearest", "_upsample_nearest_exact") for axes in (1, 2, 3)),
    *("upsample_linear1d", "upsample_bilinear2d", "upsample_trilinear3d", "upsample_bicubic2d"),
)


@cache
def is_harmless(func: OpOverload) -> bool:
    """Return whether an operator reads no values into Python, has no data-dependent sizes, and mutates nothing."""
    tags = {torch.Tag.data_dependent_output, torch.Tag.dynamic_output_shape}
    if func in COUNTING or func in UNCHECKED:
        return False
    return func not in VALUES_READ and tags.isdisjoint(func.tags) and func not in HIDDEN_WRITES and not func._schema.is_mutable


@cache
def is_inplace_view(func: OpOverload) -> bool:
    """Return whether a call changes the shape or strides of a tensor in place, but not its values."""
    return torch.Tag.inplace_view in func.tags and func is not aten.detach_.default


@cache
def view_instead_of(func: OpOverload) -> OpOverload | None:
    """Return the out-of-place view for an in-place one, such as `t` for `t_`; None for other operators."""
    if not is_inplace_view(func):
        return None
    plain = getattr(aten, func._opname.removesuffix("_"), None)
    view = getattr(plain, "int" if func is aten.transpose_.default else func._overloadname, None)
    return view if view is not None and view._schema.arguments[0].alias_info is not None else None


@cache
def is_random(func: OpOverload) -> bool:
    """Return whether an operator draws random numbers."""
    return torch.Tag.nondeterministic_seeded in func.tags


def replace_lift_fresh(func: Any) -> Any:
    """Return the operator to record: `torch.tensor` returns a copy of a constant, which the model may write into."""
    return aten.lift_fresh_copy.default if func is aten.lift_fresh.default else func


def is_identity(func: OpOverload, args: tuple[Any, ...]) -> bool:
    """Return whether a call returns its argument, as a dropout does in evaluation mode, where torch's tracing makes a copy."""
    return func in DROPOUTS and len(args) == 3 and (not args[2] or args[1] == 0)


def has_dynamic_output_shape(func: OpOverload, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> bool:
    """Return whether the output size of this call depends on values."""
    if torch.Tag.dynamic_output_shape in func.tags:
        return not _is_plain_index(func, args) and not _has_classes(func, args)
    return func in COUNTING and kwargs.get("output_size") is None


def _is_plain_index(func: OpOverload, args: tuple[Any, ...]) -> bool:
    """Whether a call indexes by positions, not by masks, whose results have one element per true element."""
    return func in INDEXING and not any(index is not None and index.dtype in (torch.bool, torch.uint8) for index in args[1])


def _has_classes(func: OpOverload, args: tuple[Any, ...]) -> bool:
    """Whether a call of `one_hot` receives the number of classes instead of computing it."""
    return func is aten.one_hot.default and len(args) > 1 and plain(args[1]) > 0


def written(func: OpOverload, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Iterator[torch.Tensor]:
    """Yield the tensors that a call writes into."""
    if func in HIDDEN_WRITES and args[TRAINING]:
        yield from (args[i] for i in HIDDEN_WRITES[func] if args[i] is not None)
    if not func._schema.is_mutable or torch.Tag.inplace_view in func.tags:
        return
    for position, declared in enumerate(func._schema.arguments):
        if declared.alias_info is not None and declared.alias_info.is_write:
            given = args[position] if position < len(args) else kwargs.get(declared.name)
            yield from (leaf for leaf in pytree.tree_leaves(given) if isinstance(leaf, torch.Tensor))


def sizes_written(func: OpOverload, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> tuple[torch.Size, ...]:
    """Return the sizes of the tensors that a call writes into, because torch resizes an `out` argument."""
    return () if is_harmless(func) or is_inplace_view(func) else tuple(tensor.shape for tensor in written(func, args, kwargs))
