"""Registry of shape functions by operator."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

import sympy
import torch

from ..compat.operators import OpOverload
from ..compat.symbols import CeilToInt, FloatTrueDiv, ToFloat
from . import products, views
from .sizes import DataDependentGuard, Shape, Size, broadcast, floor_divide, plain, positive

aten = torch.ops.aten


def result_shapes(op: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> list[Shape] | None:
    """Return the shapes of the results of a call whose tensors are given as `Shape`; None if no rule decides them."""
    rule = rule_of(op)
    if rule is None:
        return None
    try:
        shapes = rule(*args, **kwargs)
    except DataDependentGuard:
        return None
    return [shapes] if isinstance(shapes, Shape) else shapes


@cache
def rule_of(op: Any) -> Any:
    """Return the shape function of an operator; None if it has none."""
    if op in RULES or not isinstance(op, OpOverload):
        return RULES.get(op)
    is_plain = torch.Tag.pointwise in op.tags and len(op._schema.returns) == 1 and "out" not in op._overloadname
    return elementwise_shape if is_plain else None


def elementwise_shape(*args: Any, **kwargs: Any) -> Shape:
    """Broadcast the tensors."""
    return broadcast(*(leaf for leaf in (*args, *kwargs.values()) if isinstance(leaf, Shape)))


def first_argument_shape(x: Shape, *_: Any, **__: Any) -> Shape:
    """Return the shape of the first tensor."""
    return x


def first_argument_shape_twice(x: Shape, *_: Any, **__: Any) -> list[Shape]:
    """Return the shape of the first tensor, for two results."""
    return [x, x]


def factory_shape(*args: Any, **_: Any) -> Shape:
    """Return the requested sizes: the first list among the arguments."""
    return Shape(map(plain, next(arg for arg in args if isinstance(arg, (list, tuple)) and not isinstance(arg, Shape))))


def scalar_shape(*_: Any, **__: Any) -> Shape:
    """Return the shape of a number."""
    return Shape()


def arange_shape(*given: Any, **_: Any) -> Shape:
    """Return the length of `arange`. Raises DataDependentGuard for integer steps other than 1, or if it may be empty."""
    start, end, step = (0, *given, 1) if len(given) == 1 else (*given, 1)[:3]
    if any(isinstance(number, sympy.Expr) and not number.is_integer for number in (start, end, step)):
        whole = _convert_to_float(end) - start if start else _convert_to_float(end)
        return Shape([CeilToInt(whole if step == 1 else FloatTrueDiv(whole, _convert_to_float(step)))])
    if step != 1 or not all(isinstance(bound, int) or (isinstance(bound, sympy.Expr) and bound.is_integer) for bound in (start, end)):
        raise DataDependentGuard
    length = plain(end - start)
    if (length >= 0) not in (True, sympy.true):
        raise DataDependentGuard
    return Shape([length])


def _convert_to_float(number: Any) -> Any:
    converted = sympy.sympify(number)
    return ToFloat(converted) if converted.is_integer else converted


def linspace_shape(start: Any, end: Any, steps: Any, *_: Any, **__: Any) -> Shape:
    """Return as many numbers as there are steps."""
    return Shape([plain(steps)])


def length_shape(length: Any, *_: Any, **__: Any) -> Shape:
    """Return the requested length."""
    return Shape([plain(length)])


def one_hot_shape(x: Shape, classes: Any = -1) -> Shape:
    """Add an axis of classes. Raises DataDependentGuard if their number depends on values."""
    if classes == -1:
        raise DataDependentGuard
    return Shape((*x, plain(classes)))


def histogram_shapes(x: Shape, bins: Any = 100, *_: Any, **__: Any) -> list[Shape]:
    """Return as many counts as bins, and their edges."""
    number = bins[0] - 1 if isinstance(bins, Shape) else bins
    return [Shape([plain(number)]), Shape([plain(number + 1)])]


def istft_shape(x: Shape, *given: Any, length: Any = None, **_: Any) -> Shape:
    """Return signals of the requested length. Raises DataDependentGuard if none is requested."""
    length = given[7] if len(given) > 7 else length
    if length is None:
        raise DataDependentGuard
    return Shape((*x[:-2], plain(length)))


def triu_indices_shape(row: Any, col: Any, offset: Any = 0, **_: Any) -> Shape:
    """Return two indices per entry of a square matrix on or above this diagonal."""
    _check_square(row, col, offset)
    return Shape([2, _entries_above(row, offset)])


def tril_indices_shape(row: Any, col: Any, offset: Any = 0, **_: Any) -> Shape:
    """Return two indices per entry of a square matrix on or below this diagonal."""
    _check_square(row, col, offset)
    return Shape([2, plain(row * row - _entries_above(row, offset + 1))])


def _check_square(rows: Any, columns: Any, offset: Any) -> None:
    if rows != columns or not isinstance(offset, int):
        raise DataDependentGuard


def _entries_above(rows: Any, offset: int) -> Any:
    if offset <= 0:
        return plain(rows * rows - _triangle(positive(rows + offset - 1)))
    return plain(_triangle(positive(rows - offset)))


def _triangle(side: Any) -> Size:
    found: Size = floor_divide(side * (side + 1), 2)
    return found


LIKE_FIRST = (
    *("alias", "clone", "contiguous", "detach", "detach_", "dropout", "feature_dropout", "alpha_dropout", "bernoulli", "type_as"),
    *("layer_norm", "rms_norm", "batch_norm", "group_norm", "instance_norm", "_to_copy", "lift_fresh_copy", "copy_", "zero_"),
    *("cumsum", "cumprod", "logcumsumexp", "flip", "roll", "tril", "triu", "index_put", "index_put_", "_index_put_impl_"),
    *("zeros_like", "ones_like", "empty_like", "full_like", "rand_like", "randn_like", "randint_like", "normal_", "uniform_"),
    *("to.dtype", "to.device", "to.dtype_layout", "to.other", "softmax.int", "log_softmax.int", "_softmax", "_log_softmax"),
    *("scatter.src", "scatter.value", "scatter_add", "scatter_reduce.two", "index_add", "index_copy", "index_fill.int_Scalar"),
    *("slice_scatter", "select_scatter", "argsort", "argsort.stable", "masked_fill_.Scalar", "masked_fill_.Tensor"),
    *("fake_quantize_per_tensor_affine", "fake_quantize_per_tensor_affine.tensor_qparams", "fake_quantize_per_channel_affine"),
    *("quantize_per_tensor", "quantize_per_channel", "dequantize.self", "int_repr"),
    *("fill.Scalar", "fill_.Scalar", "fill.Tensor", "fill_.Tensor", "bernoulli.p"),
)
BY_ELEMENT = (  # torch does not tag these as pointwise
    *("where.self", "where.ScalarOther", "where.ScalarSelf", "masked_fill.Scalar", "masked_fill.Tensor", "masked_scatter"),
    *("__and__.Tensor", "__or__.Tensor", "__xor__.Tensor", "divide.Tensor", "subtract.Tensor", "multiply.Tensor", "rsub.Scalar"),
    *("rsub.Tensor", "floor_divide", "true_divide.Tensor", "isclose", "greater.Tensor", "less.Tensor", "not_equal.Tensor"),
)
FACTORIES = (
    *("zeros", "ones", "empty.memory_format", "full", "new_zeros", "new_ones", "new_empty", "new_full"),
    *(f"{name}{kind}" for name in ("rand", "randn", "randint") for kind in ("", ".generator")),
    *("randint.low", "randint.low_generator"),
)
LENGTHS = (
    *("randperm", "randperm.generator", "kaiser_window", "kaiser_window.periodic", "kaiser_window.beta"),
    *(f"{name}_window{kind}" for name in ("hann", "hamming", "blackman", "bartlett") for kind in ("", ".periodic")),
    *("hamming_window.periodic_alpha", "hamming_window.periodic_alpha_beta"),
)


def _overloads(names: Sequence[str]) -> list[Any]:
    """The overloads of these names that exist in this version of torch."""
    pairs = [name.partition(".")[::2] for name in names]
    return [getattr(getattr(aten, name), overload or "default") for name, overload in pairs if hasattr(aten, name)]


RULES: dict[Any, Any] = {
    **views.RULES,
    **products.RULES,
    **dict.fromkeys(_overloads(LIKE_FIRST), first_argument_shape),
    **dict.fromkeys(_overloads(("sort", "sort.stable", "cummax", "cummin")), first_argument_shape_twice),
    **dict.fromkeys(_overloads(FACTORIES), factory_shape),
    aten.scalar_tensor.default: scalar_shape,
    **dict.fromkeys(_overloads(("linspace", "logspace")), linspace_shape),
    **dict.fromkeys(_overloads(LENGTHS), length_shape),
    aten.one_hot.default: one_hot_shape,
    **dict.fromkeys((aten.histogram.bin_ct, aten.histogram.bins_tensor), histogram_shapes),
    aten.istft.default: istft_shape,
    **dict.fromkeys((aten.arange.default, aten.arange.start, aten.arange.start_step), arange_shape),
    aten.triu_indices.default: triu_indices_shape,
    aten.tril_indices.default: tril_indices_shape,
    **dict.fromkeys(_overloads(BY_ELEMENT), elementwise_shape),
}
