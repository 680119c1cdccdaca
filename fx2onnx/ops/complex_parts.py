"""Operators that treat both parts of a complex tensor alike: they rearrange, select or sum elements."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch

from ..compat.operators import aten
from ..errors import Untranslated
from ..ir.complex_pairs import ComplexPair, use_real_meta
from ..ir.dtypes import onnx_dtype
from ..ir.graph import Graph, Tensor
from ..translate.dispatch import functional_variant
from ..translate.registry import translates_complex
from . import own_translations
from .create import expand_scalar

MOVED = (
    aten.alias.default, aten.as_strided.default, aten.broadcast_to.default, aten.chunk.default, aten.clone.default, aten.contiguous.default,
    aten.cumsum.default, aten.detach.default, aten.detach_.default, aten.diag.default, aten.diag_embed.default, aten.diagonal.default,
    aten.dropout.default, aten.expand.default, aten.expand_as.default, aten.flatten.using_ints, aten.flip.default, aten.gather.default,
    aten.index.Tensor, aten.index_select.default, aten.lift_fresh_copy.default, aten.masked_select.default, aten.mT.default,
    aten.mean.default, aten.mean.dim, aten.movedim.int, aten.movedim.intlist, aten.narrow.default, aten.neg.default,
    aten.permute.default, aten.positive.default, aten.repeat.default, aten.repeat_interleave.self_int, aten.repeat_interleave.self_Tensor,
    aten.reshape.default, aten.reshape_as.default, aten.roll.default, aten.rot90.default, aten.select.int, aten.slice.Tensor,
    aten.split.Tensor, aten.split.sizes, aten.split_with_sizes.default, aten.squeeze.default, aten.squeeze.dim, aten.squeeze.dims,
    aten.sum.default, aten.sum.dim_IntList, aten.swapaxes.default, aten.swapdims.default, aten.t.default, aten.take.default,
    aten.take_along_dim.default, aten.tensor_split.indices, aten.tensor_split.sections, aten.tile.default, aten.trace.default,
    aten.transpose.int, aten.tril.default, aten.triu.default, aten.unbind.int, aten.unflatten.int, aten.unfold.default,
    aten.unsqueeze.default, aten.view.default, aten.view_as.default, aten._unsafe_view.default, aten.lift_fresh.default,
    aten.nansum.default, aten.resolve_neg.default, aten.pixel_shuffle.default, aten.unsafe_chunk.default,
    aten.unsafe_split.Tensor, aten.numpy_T.default, aten.ravel.default, aten.moveaxis.int, aten.moveaxis.intlist,
)  # fmt: skip
TOGETHER: Mapping[Any, tuple[int, ...]] = {  # the positions of operands with complex values
    aten.add.Tensor: (0, 1), aten.add.Scalar: (0, 1), aten.sub.Tensor: (0, 1), aten.sub.Scalar: (0, 1), aten.rsub.Scalar: (0, 1),
    aten.rsub.Tensor: (0, 1), aten.cat.default: (0,), aten.concat.default: (0,), aten.stack.default: (0,), aten.hstack.default: (0,),
    aten.vstack.default: (0,), aten.where.self: (1, 2), aten.where.ScalarOther: (1, 2), aten.where.ScalarSelf: (1, 2),
    aten.index_put.default: (0, 2), aten.scatter.src: (0, 3), aten.scatter_add.default: (0, 3), aten.index_add.default: (0, 3),
    aten.masked_fill.Scalar: (0, 2), aten.masked_fill.Tensor: (0, 2), aten.copy.default: (0, 1), aten.slice_scatter.default: (0, 1),
    aten.select_scatter.default: (0, 1), aten.full.default: (1,), aten.full_like.default: (1,), aten.new_full.default: (2,),
    aten.fill.Scalar: (1,), aten.fill.Tensor: (1,), aten.index_copy.default: (0, 3), aten.index_fill.int_Scalar: (0, 3),
    aten.constant_pad_nd.default: (0, 2), aten.pad.default: (0, 3),
}  # fmt: skip
NOTHING_YET = (
    aten.zeros.default, aten.zeros_like.default, aten.new_zeros.default, aten.empty.memory_format, aten.empty_like.default,
    aten.new_empty.default, aten.zero.default, aten.empty_strided.default,
)  # fmt: skip


def part_of(value: Any, part: str) -> Any:
    """Return the real or imaginary part of each complex value in an argument; other values do not change."""
    if isinstance(value, (ComplexPair, complex)):
        return getattr(value, part)
    if isinstance(value, (list, tuple)):
        return [part_of(each, part) for each in value]
    return value.to_real() if isinstance(value, torch.dtype) and value.is_complex else value


def translate_by_parts(g: Graph, target: Any, *args: Any, **kwargs: Any) -> Any:
    """Return the results of an operator for the real parts, paired with those for the imaginary parts.

    Raises:
        Untranslated: the operator has no translation for real numbers.
    """
    translation = own_translations().get(target)
    if translation is None:
        raise Untranslated("no translation for complex numbers")

    def of(part: str) -> Any:
        return translation(g, *part_of(args, part), **{key: part_of(value, part) for key, value in kwargs.items()})

    if isinstance(g.result(), torch.Tensor) and not g.result().is_complex():
        return of("real")
    with use_real_meta(g):
        return _pair_parts(of("real"), of("imag"))


def _pair_parts(real: Any, imag: Any) -> Any:
    if isinstance(real, (list, tuple)):
        return [_pair_parts(a, b) for a, b in zip(real, imag, strict=True)]
    return ComplexPair(real, imag)


def promote_to_complex(g: Graph, value: Any) -> Any:
    """Return real tensors or numbers, also in lists, as complex values in the dtype of the result."""
    if value is None or not g.result().is_complex():
        return value
    if isinstance(value, (list, tuple)):
        return [promote_to_complex(g, each) for each in value]
    return complex(value) if isinstance(value, (int, float, complex)) else complex_with_nothing(g, value, g.result().dtype)


def complex_with_nothing(g: Graph, value: Any, dtype: torch.dtype) -> ComplexPair:
    """Return a real tensor as a complex value of this dtype, with an imaginary part of 0; a complex value does not change."""
    if isinstance(value, ComplexPair):
        return value
    real = g.cast(value, onnx_dtype(dtype.to_real()))
    return ComplexPair(real, expand_scalar(g, real.sizes, 0, real.dtype))


def _target(g: Graph) -> Any:
    return functional_variant(g.overload) or g.overload


@translates_complex(*MOVED)
def translate_movement(g: Graph, *args: Any, **kwargs: Any) -> Any:
    """view(z, size), permute(z, dims), sum(z, dim), … → the translation for real numbers, once for each part."""
    if not any(isinstance(each, ComplexPair) for value in args for each in (value if isinstance(value, list) else [value])):
        return own_translations()[_target(g)](g, *args, **kwargs)
    return translate_by_parts(g, _target(g), *args, **kwargs)


@translates_complex(*TOGETHER)
def together(g: Graph, *args: Any, **kwargs: Any) -> Any:
    """add(z, w), cat(tensors), where(condition, z, w), … → the same; a real operand has an imaginary part of 0."""
    taken = TOGETHER[_target(g)]
    return translate_by_parts(
        g, _target(g), *(promote_to_complex(g, value) if i in taken else value for i, value in enumerate(args)), **kwargs
    )


@translates_complex(*NOTHING_YET)
def zeros(g: Graph, *args: Any, **kwargs: Any) -> Any:
    """zeros(size), empty_like(z), … → a constant, or Expand of 0, once for each part."""
    return translate_by_parts(g, _target(g), *args, **kwargs)


@translates_complex(aten.ones.default, aten.ones_like.default, aten.new_ones.default)
def ones(g: Graph, *_: Any, **__: Any) -> Any:
    """ones(size), ones_like(z), new_ones(z, size) → Expand of 1 and of 0."""
    dtype = g.result().dtype
    real = expand_scalar(g, g.sizes, 1, onnx_dtype(dtype.to_real() if dtype.is_complex else dtype))
    return ComplexPair(real, expand_scalar(g, real.sizes, 0, real.dtype)) if dtype.is_complex else real


@translates_complex(aten.to.dtype, aten.to.dtype_layout, aten.to.other, aten.to.device, aten._to_copy.default, aten.type_as.default)
def to(g: Graph, z: Any, *_: Any, **__: Any) -> Any:
    """to(z, dtype) → Cast of both parts, or of the real part alone; a real tensor gets an imaginary part of 0."""
    if not g.result().dtype.is_complex:
        return z.real if isinstance(z, ComplexPair) else z
    return promote_to_complex(g, z)


@translates_complex(aten.complex.default)
def complex_(g: Graph, real: Tensor, imag: Tensor) -> ComplexPair:
    """complex(real, imag) → both parts, broadcast to common sizes."""
    return ComplexPair(
        *(part if part.known_sizes == g.sizes else g.set_sizes(g.Expand(part, list(g.sizes)), g.sizes) for part in (real, imag))
    )


@translates_complex(aten.view_as_complex.default, aten.view_as_complex_copy.default)
def view_as_complex(g: Graph, x: Tensor) -> ComplexPair:
    """view_as_complex(x) → Gather of each element of the last axis."""
    return ComplexPair(*(g.set_sizes(g.Gather(x, g.const(i, torch.int64), axis=-1), x.sizes[:-1]) for i in (0, 1)))


@translates_complex(aten.view_as_real.default, aten.view_as_real_copy.default)
def view_as_real(g: Graph, z: ComplexPair) -> Tensor:
    """view_as_real(z) → Concat along a last axis of two."""
    return g.Concat(g.Unsqueeze(z.real, [-1]), g.Unsqueeze(z.imag, [-1]), axis=-1)


@translates_complex(aten.real.default)
def real_part(g: Graph, z: ComplexPair) -> Tensor:
    """real(z) → the real part."""
    return z.real


@translates_complex(aten.imag.default)
def imaginary_part(g: Graph, z: ComplexPair) -> Tensor:
    """imag(z) → the imaginary part."""
    return z.imag
