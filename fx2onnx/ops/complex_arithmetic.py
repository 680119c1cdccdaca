"""Arithmetic of complex numbers by their parts: products, quotients, powers, lengths and angles."""

from __future__ import annotations

from typing import Any

from ..build.dtypes import onnx_dtype
from ..build.graph import Graph, Tensor
from ..build.pairs import Pair, in_real_numbers
from ..compat import aten
from ..errors import Untranslated
from ..translate.dispatch import functional_twin
from ..translate.registry import translates_pairs
from . import own_translations
from .complex_parts import as_pair, by_parts, part_of

PRODUCTS = (
    aten.mul.Tensor, aten.mul.Scalar, aten.multiply.Tensor, aten.matmul.default, aten.mm.default, aten.bmm.default, aten.mv.default,
    aten.dot.default, aten.outer.default, aten.inner.default, aten.ger.default, aten.linalg_matmul.default, aten.kron.default,
)  # fmt: skip


def _target(g: Graph) -> Any:
    return functional_twin(g.overload) or g.overload


def times(g: Graph, z: Pair, w: Pair) -> Pair:
    """Return the product of two complex tensors, element by element."""
    return Pair(
        g.Sub(g.Mul(z.real, w.real), g.Mul(z.imag, w.imag)),
        g.Add(g.Mul(z.real, w.imag), g.Mul(z.imag, w.real)),
    )


def squared_length(g: Graph, z: Pair) -> Tensor:
    """Return re² + im²."""
    return g.Add(g.Mul(z.real, z.real), g.Mul(z.imag, z.imag))


def length(g: Graph, z: Pair) -> Tensor:
    """Return |z| as large · √(1 + (small / large)²), of which no square overflows or vanishes."""
    real, imag = g.Abs(z.real), g.Abs(z.imag)
    large, small = g.Max(real, imag), g.Min(real, imag)
    no_ratio = g.Or(g.Equal(large, 0.0), g.IsInf(large))
    ratio = g.Where(no_ratio, g.scalar(0.0, large.dtype), g.Div(small, large))
    made = g.Mul(large, g.Sqrt(g.Add(g.Mul(ratio, ratio), 1.0)))
    return g.sized(made, z.sizes) if z.known_sizes is not None else made


def angle_of(g: Graph, z: Pair) -> Tensor:
    """Return the angle of a complex number, in (-π, π]."""
    found: Tensor = own_translations()[aten.atan2.default](g, z.imag, z.real)
    return found


def of_number(g: Graph, value: complex, like: Pair) -> Pair:
    """Return a Python number as a complex value without axes, in the dtype of another."""
    return Pair(g.scalar(value.real, like.real.dtype), g.scalar(value.imag, like.real.dtype))


@translates_pairs(*PRODUCTS)
def product(g: Graph, a: Any, b: Any) -> Pair:
    """mul(z, w), matmul(z, w), … → four products of real numbers; two where one factor is real."""
    return bilinear(g, _target(g), a, b)


def bilinear(g: Graph, target: Any, a: Any, b: Any) -> Pair:
    """Return what an operator makes of two operands, of which at least one is complex: it is linear in each of them."""
    translation, a, b = own_translations()[target], _in_its_dtype(g, a), _in_its_dtype(g, b)

    def of(part: str, other: str) -> Tensor:
        made: Tensor = translation(g, part_of(a, part), part_of(b, other))
        return made

    with in_real_numbers(g):
        if not isinstance(a, (Pair, complex)) or not isinstance(b, (Pair, complex)):
            return Pair(of("real", "real"), of("imag", "imag"))
        return Pair(g.Sub(of("real", "real"), of("imag", "imag")), g.Add(of("real", "imag"), of("imag", "real")))


def _in_its_dtype(g: Graph, value: Any) -> Any:
    return g.cast(value, onnx_dtype(g.result().dtype.to_real())) if isinstance(value, Tensor) else value


@translates_pairs(aten.linear.default)
def linear(g: Graph, x: Any, weight: Any, bias: Any = None) -> Pair:
    """linear(z, w, b?) → products of real numbers, and sums."""
    made = bilinear(g, aten.linear.default, x, weight)
    return made if bias is None else plus(g, made, bias)


@translates_pairs(aten.addmm.default, aten.baddbmm.default, aten.addmv.default)
def added_product(g: Graph, c: Any, a: Any, b: Any, beta: float = 1, alpha: float = 1) -> Pair:
    """addmm(c, a, b), baddbmm(c, a, b), addmv(c, a, b) → products of real numbers, and sums."""
    if (beta, alpha) != (1, 1):
        raise Untranslated("for complex numbers, beta and alpha must be 1")
    return plus(g, bilinear(g, aten.matmul.default, a, b), c)


@translates_pairs(aten.einsum.default)
def einsum(g: Graph, equation: str, operands: list[Any], path: Any = None) -> Pair:
    """einsum(equation, operands) → that of real numbers, for each part of one operand, or of two."""
    if len(operands) == 1:
        return Pair(*(own_einsum(g, equation, [part_of(operands[0], part)]) for part in ("real", "imag")))
    if len(operands) > 2:
        raise Untranslated("einsum of complex tensors supports at most two operands")
    return _einsum_of_two(g, equation, *operands)


def _einsum_of_two(g: Graph, equation: str, a: Any, b: Any) -> Pair:
    def of(part: str, other: str) -> Tensor:
        return own_einsum(g, equation, [part_of(a, part), part_of(b, other)])

    a, b = _in_its_dtype(g, a), _in_its_dtype(g, b)
    if not (isinstance(a, Pair) and isinstance(b, Pair)):
        return Pair(of("real", "real"), of("imag", "imag"))
    return Pair(g.Sub(of("real", "real"), of("imag", "imag")), g.Add(of("real", "imag"), of("imag", "real")))


def own_einsum(g: Graph, equation: str, operands: list[Tensor]) -> Tensor:
    """Return the einsum of real operands."""
    with in_real_numbers(g):
        made: Tensor = own_translations()[aten.einsum.default](g, equation, operands)
    return made


def plus(g: Graph, a: Pair, b: Any) -> Pair:
    """Return the sum of a complex tensor and another, which may be real."""
    if not isinstance(b, Pair):
        return Pair(g.Add(a.real, g.cast(b, a.real.dtype)), a.imag)
    return Pair(g.Add(a.real, b.real), g.Add(a.imag, b.imag))


def inverse(g: Graph, z: Pair) -> Pair:
    """Return 1/z; ∞ + NaN·i for 0, as torch's `reciprocal`."""
    large, unit, size = _scaled(g, z)
    made = conjugate(g, unit).map(lambda part: g.Div(part, size))
    return Pair(g.Where(g.Equal(large, 0.0), g.Div(g.scalar(1.0, large.dtype), large), made.real), made.imag)


def _scaled(g: Graph, z: Pair) -> tuple[Tensor, Pair, Tensor]:
    """The larger part m of z, z/m, and |z|²/m: of none of these a square overflows or vanishes."""
    large = g.Max(g.Abs(z.real), g.Abs(z.imag))
    unit = z.map(lambda part: g.Div(part, large))
    return large, unit, g.Mul(squared_length(g, unit), large)


@translates_pairs(aten.reciprocal.default)
def reciprocal(g: Graph, z: Pair) -> Pair:
    """reciprocal(z) → conj(z) / |z|²: Mul, Add, Div, Neg."""
    return inverse(g, z)


@translates_pairs(aten.div.Tensor, aten.div.Scalar, aten.true_divide.Tensor, aten.divide.Tensor)
def div(g: Graph, a: Any, b: Any) -> Pair:
    """div(z, w) → z · conj(w) / |w|²; Div of both parts by a real number."""
    if isinstance(b, complex):
        if not b:
            raise Untranslated("division of complex numbers by 0 is not supported")
        return bilinear(g, aten.mul.Tensor, a, 1 / b)
    if not isinstance(b, Pair):
        made: Pair = by_parts(g, aten.div.Tensor, a, _in_its_dtype(g, b))
        return made
    _, unit, size = _scaled(g, b)
    unit = conjugate(g, unit)
    above = times(g, as_pair(g, a), unit) if isinstance(a, (Tensor, Pair)) else _number_times(g, complex(a), unit)
    return above.map(lambda part: g.Div(part, size))


def _number_times(g: Graph, number: complex, z: Pair) -> Pair:
    return times(g, of_number(g, number, z), z)


@translates_pairs(aten.addcmul.default)
def addcmul(g: Graph, x: Any, a: Any, b: Any, value: complex = 1) -> Pair:
    """addcmul(x, z, w, value) → x + value · z · w."""
    made = bilinear(g, aten.mul.Tensor, a, b)
    return plus(g, made if value == 1 else _number_times(g, complex(value), made), x)


def conjugate(g: Graph, z: Pair) -> Pair:
    """Return the complex conjugate."""
    return Pair(z.real, g.Neg(z.imag))


@translates_pairs(aten._conj.default, aten.conj.default, aten.conj_physical.default, aten._conj_physical.default)
def conj(g: Graph, z: Pair) -> Pair:
    """conj(z) → Neg of the imaginary part."""
    return conjugate(g, z)


@translates_pairs(aten.resolve_conj.default)
def resolve_conj(g: Graph, z: Pair) -> Pair:
    """resolve_conj(z) → nothing: what is conjugated is so in the file at once."""
    return z


@translates_pairs(aten.mH.default, aten.adjoint.default, aten.matrix_H.default)
def adjoint(g: Graph, z: Pair) -> Pair:
    """mH(z), adjoint(z), H(z) → Transpose of the last two axes, and Neg of the imaginary part."""
    return conjugate(g, by_parts(g, aten.mT.default, z))


@translates_pairs(aten.vdot.default)
def vdot(g: Graph, a: Pair, b: Pair) -> Pair:
    """vdot(z, w) → dot(conj(z), w)."""
    return bilinear(g, aten.dot.default, conjugate(g, a), b)


@translates_pairs(aten.abs.default, aten.absolute.default)
def abs_(g: Graph, z: Pair) -> Tensor:
    """abs(z) → Sqrt(re² + im²)."""
    return length(g, z)


@translates_pairs(aten.angle.default)
def angle(g: Graph, z: Pair) -> Tensor:
    """angle(z) → atan2 of both parts."""
    return angle_of(g, z)


@translates_pairs(aten.eq.Tensor, aten.eq.Scalar)
def eq(g: Graph, a: Any, b: Any) -> Tensor:
    """eq(z, w) → Equal of both parts, And."""
    a, b = _operands(g, a, b)
    return g.And(g.Equal(a.real, b.real), g.Equal(a.imag, b.imag))


@translates_pairs(aten.ne.Tensor, aten.ne.Scalar)
def ne(g: Graph, a: Any, b: Any) -> Tensor:
    """ne(z, w) → Not of their being equal."""
    return g.Not(eq(g, a, b))


def _operands(g: Graph, a: Any, b: Any) -> tuple[Pair, Pair]:
    """Both as complex values of one dtype, of which at least one is complex."""
    like = a if isinstance(a, Pair) else b
    made = [each if isinstance(each, Pair) else _complex_like(g, each, like) for each in (a, b)]
    return made[0], made[1]


def _complex_like(g: Graph, value: Any, like: Pair) -> Pair:
    if isinstance(value, Tensor):
        return Pair(g.cast(value, like.real.dtype), g.scalar(0, like.real.dtype))
    return of_number(g, complex(value), like)


@translates_pairs(aten.isnan.default)
def isnan(g: Graph, z: Pair) -> Tensor:
    """isnan(z) → IsNaN of either part."""
    return g.Or(g.IsNaN(z.real), g.IsNaN(z.imag))


@translates_pairs(aten.isfinite.default)
def isfinite(g: Graph, z: Pair) -> Tensor:
    """isfinite(z) → neither part is infinite or NaN: what is finite times 0 is 0."""
    zero = g.Add(g.Mul(z.real, 0.0), g.Mul(z.imag, 0.0))
    return g.Equal(zero, 0.0)


@translates_pairs(aten.linalg_vector_norm.default)
def vector_norm(g: Graph, z: Pair, *args: Any, **kwargs: Any) -> Tensor:
    """linalg_vector_norm(z, …) → that of the lengths."""
    made: Tensor = own_translations()[aten.linalg_vector_norm.default](g, length(g, z), *args, **kwargs)
    return made


@translates_pairs(aten.var.default, aten.var.dim, aten.var.correction)
def var(g: Graph, z: Pair, *args: Any, **kwargs: Any) -> Tensor:
    """var(z, …) → that of both parts, added up."""
    translation = own_translations()[_target(g)]
    return g.Add(translation(g, z.real, *args, **kwargs), translation(g, z.imag, *args, **kwargs))


@translates_pairs(aten.std.default, aten.std.dim, aten.std.correction)
def std(g: Graph, z: Pair, *args: Any, **kwargs: Any) -> Tensor:
    """std(z, …) → Sqrt of the variance of both parts, added up."""
    squares = (own_translations()[_target(g)](g, part, *args, **kwargs) for part in (z.real, z.imag))
    return g.Sqrt(g.Add(*(g.Mul(each, each) for each in squares)))
