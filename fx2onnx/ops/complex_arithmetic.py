"""Arithmetic of complex numbers by their parts: products, quotients, powers, absolute values and angles."""

from __future__ import annotations

from typing import Any

from ..compat.operators import aten
from ..errors import Untranslated
from ..ir.complex_pairs import ComplexPair, use_real_meta
from ..ir.dtypes import onnx_dtype
from ..ir.graph import Graph, Tensor
from ..translate.dispatch import functional_variant
from ..translate.registry import translates_complex
from . import own_translations
from .complex_parts import part_of, promote_to_complex, translate_by_parts

PRODUCTS = (
    aten.mul.Tensor, aten.mul.Scalar, aten.multiply.Tensor, aten.matmul.default, aten.mm.default, aten.bmm.default, aten.mv.default,
    aten.dot.default, aten.outer.default, aten.inner.default, aten.ger.default, aten.linalg_matmul.default, aten.kron.default,
)  # fmt: skip


def _target(g: Graph) -> Any:
    return functional_variant(g.overload) or g.overload


def times(g: Graph, z: ComplexPair, w: ComplexPair) -> ComplexPair:
    """Return the product of two complex tensors, element by element."""
    return ComplexPair(
        g.Sub(g.Mul(z.real, w.real), g.Mul(z.imag, w.imag)),
        g.Add(g.Mul(z.real, w.imag), g.Mul(z.imag, w.real)),
    )


def squared_length(g: Graph, z: ComplexPair) -> Tensor:
    """Return re² + im²."""
    return g.Add(g.Mul(z.real, z.real), g.Mul(z.imag, z.imag))


def length(g: Graph, z: ComplexPair) -> Tensor:
    """Return |z| as large · √(1 + (small / large)²), where no square overflows or underflows."""
    real, imag = g.Abs(z.real), g.Abs(z.imag)
    large, small = g.Max(real, imag), g.Min(real, imag)
    no_ratio = g.Or(g.Equal(large, 0.0), g.IsInf(large))
    ratio = g.Where(no_ratio, g.scalar(0.0, large.dtype), g.Div(small, large))
    made = g.Mul(large, g.Sqrt(g.Add(g.Mul(ratio, ratio), 1.0)))
    return g.set_sizes(made, z.sizes) if z.known_sizes is not None else made


def angle_of(g: Graph, z: ComplexPair) -> Tensor:
    """Return the angle of a complex number, in (-π, π]."""
    found: Tensor = own_translations()[aten.atan2.default](g, z.imag, z.real)
    return found


def make_complex(g: Graph, value: complex, like: ComplexPair) -> ComplexPair:
    """Return a Python number as a complex value without axes, in the dtype of another."""
    return ComplexPair(g.scalar(value.real, like.real.dtype), g.scalar(value.imag, like.real.dtype))


@translates_complex(*PRODUCTS)
def product(g: Graph, a: Any, b: Any) -> ComplexPair:
    """mul(z, w), matmul(z, w), … → four products of real numbers; two where one factor is real."""
    return bilinear(g, _target(g), a, b)


def bilinear(g: Graph, target: Any, a: Any, b: Any) -> ComplexPair:
    """Return the result of an operator that is linear in each of its two operands, of which at least one is complex."""
    translation, a, b = own_translations()[target], _cast_to_real_dtype(g, a), _cast_to_real_dtype(g, b)

    def of(part: str, other: str) -> Tensor:
        made: Tensor = translation(g, part_of(a, part), part_of(b, other))
        return made

    with use_real_meta(g):
        if not isinstance(a, (ComplexPair, complex)) or not isinstance(b, (ComplexPair, complex)):
            return ComplexPair(of("real", "real"), of("imag", "imag"))
        return ComplexPair(g.Sub(of("real", "real"), of("imag", "imag")), g.Add(of("real", "imag"), of("imag", "real")))


def _cast_to_real_dtype(g: Graph, value: Any) -> Any:
    return g.cast(value, onnx_dtype(g.result().dtype.to_real())) if isinstance(value, Tensor) else value


@translates_complex(aten.linear.default)
def linear(g: Graph, x: Any, weight: Any, bias: Any = None) -> ComplexPair:
    """linear(z, w, b?) → MatMul of the parts, and Add."""
    made = bilinear(g, aten.linear.default, x, weight)
    return made if bias is None else plus(g, made, bias)


@translates_complex(aten.addmm.default, aten.baddbmm.default, aten.addmv.default)
def added_product(g: Graph, c: Any, a: Any, b: Any, beta: float = 1, alpha: float = 1) -> ComplexPair:
    """addmm(c, a, b), baddbmm(c, a, b), addmv(c, a, b) → MatMul of the parts, and Add."""
    if (beta, alpha) != (1, 1):
        raise Untranslated("for complex numbers, beta and alpha must be 1")
    return plus(g, bilinear(g, aten.matmul.default, a, b), c)


@translates_complex(aten.einsum.default)
def einsum(g: Graph, equation: str, operands: list[Any], path: Any = None) -> ComplexPair:
    """einsum(equation, operands) → the einsum of the parts, for one or two operands."""
    if len(operands) == 1:
        return ComplexPair(*(own_einsum(g, equation, [part_of(operands[0], part)]) for part in ("real", "imag")))
    if len(operands) > 2:
        raise Untranslated("einsum of complex tensors supports at most two operands")
    return _einsum_of_two(g, equation, *operands)


def _einsum_of_two(g: Graph, equation: str, a: Any, b: Any) -> ComplexPair:
    def of(part: str, other: str) -> Tensor:
        return own_einsum(g, equation, [part_of(a, part), part_of(b, other)])

    a, b = _cast_to_real_dtype(g, a), _cast_to_real_dtype(g, b)
    if not (isinstance(a, ComplexPair) and isinstance(b, ComplexPair)):
        return ComplexPair(of("real", "real"), of("imag", "imag"))
    return ComplexPair(g.Sub(of("real", "real"), of("imag", "imag")), g.Add(of("real", "imag"), of("imag", "real")))


def own_einsum(g: Graph, equation: str, operands: list[Tensor]) -> Tensor:
    """Return the einsum of real operands."""
    with use_real_meta(g):
        made: Tensor = own_translations()[aten.einsum.default](g, equation, operands)
    return made


def plus(g: Graph, a: ComplexPair, b: Any) -> ComplexPair:
    """Return the sum of a complex tensor and another, which may be real."""
    if not isinstance(b, ComplexPair):
        return ComplexPair(g.Add(a.real, g.cast(b, a.real.dtype)), a.imag)
    return ComplexPair(g.Add(a.real, b.real), g.Add(a.imag, b.imag))


def inverse(g: Graph, z: ComplexPair) -> ComplexPair:
    """Return 1/z; ∞ + NaN·i for 0, as torch's `reciprocal`."""
    large, unit, size = _scale_by_larger(g, z)
    made = conjugate(g, unit).map(lambda part: g.Div(part, size))
    return ComplexPair(g.Where(g.Equal(large, 0.0), g.Div(g.scalar(1.0, large.dtype), large), made.real), made.imag)


def _scale_by_larger(g: Graph, z: ComplexPair) -> tuple[Tensor, ComplexPair, Tensor]:
    """Return the larger part m of z, z/m, and |z|²/m, whose squares neither overflow nor underflow."""
    large = g.Max(g.Abs(z.real), g.Abs(z.imag))
    unit = z.map(lambda part: g.Div(part, large))
    return large, unit, g.Mul(squared_length(g, unit), large)


@translates_complex(aten.reciprocal.default)
def reciprocal(g: Graph, z: ComplexPair) -> ComplexPair:
    """reciprocal(z) → conj(z) / |z|²: Mul, Add, Div, Neg."""
    return inverse(g, z)


@translates_complex(aten.div.Tensor, aten.div.Scalar, aten.true_divide.Tensor, aten.divide.Tensor)
def div(g: Graph, a: Any, b: Any) -> ComplexPair:
    """div(z, w) → z · conj(w) / |w|²; Div of both parts by a real number."""
    if isinstance(b, complex):
        if not b:
            raise Untranslated("division of complex numbers by 0 is not supported")
        return bilinear(g, aten.mul.Tensor, a, 1 / b)
    if not isinstance(b, ComplexPair):
        made: ComplexPair = translate_by_parts(g, aten.div.Tensor, a, _cast_to_real_dtype(g, b))
        return made
    _, unit, size = _scale_by_larger(g, b)
    unit = conjugate(g, unit)
    above = times(g, promote_to_complex(g, a), unit) if isinstance(a, (Tensor, ComplexPair)) else _number_times(g, complex(a), unit)
    return above.map(lambda part: g.Div(part, size))


def _number_times(g: Graph, number: complex, z: ComplexPair) -> ComplexPair:
    return times(g, make_complex(g, number, z), z)


@translates_complex(aten.addcmul.default)
def addcmul(g: Graph, x: Any, a: Any, b: Any, value: complex = 1) -> ComplexPair:
    """addcmul(x, z, w, value) → x + value · z · w."""
    made = bilinear(g, aten.mul.Tensor, a, b)
    return plus(g, made if value == 1 else _number_times(g, complex(value), made), x)


def conjugate(g: Graph, z: ComplexPair) -> ComplexPair:
    """Return the complex conjugate."""
    return ComplexPair(z.real, g.Neg(z.imag))


@translates_complex(aten._conj.default, aten.conj.default, aten.conj_physical.default, aten._conj_physical.default)
def conj(g: Graph, z: ComplexPair) -> ComplexPair:
    """conj(z) → Neg of the imaginary part."""
    return conjugate(g, z)


@translates_complex(aten.resolve_conj.default)
def resolve_conj(g: Graph, z: ComplexPair) -> ComplexPair:
    """resolve_conj(z) → nothing, because conj is computed immediately."""
    return z


@translates_complex(aten.mH.default, aten.adjoint.default, aten.matrix_H.default)
def adjoint(g: Graph, z: ComplexPair) -> ComplexPair:
    """mH(z), adjoint(z), H(z) → Transpose of the last two axes, and Neg of the imaginary part."""
    return conjugate(g, translate_by_parts(g, aten.mT.default, z))


@translates_complex(aten.vdot.default)
def vdot(g: Graph, a: ComplexPair, b: ComplexPair) -> ComplexPair:
    """vdot(z, w) → dot(conj(z), w)."""
    return bilinear(g, aten.dot.default, conjugate(g, a), b)


@translates_complex(aten.abs.default, aten.absolute.default)
def abs_(g: Graph, z: ComplexPair) -> Tensor:
    """abs(z) → Sqrt(re² + im²)."""
    return length(g, z)


@translates_complex(aten.angle.default)
def angle(g: Graph, z: ComplexPair) -> Tensor:
    """angle(z) → atan2 of both parts."""
    return angle_of(g, z)


@translates_complex(aten.eq.Tensor, aten.eq.Scalar)
def eq(g: Graph, a: Any, b: Any) -> Tensor:
    """eq(z, w) → Equal of both parts, And."""
    a, b = _operands(g, a, b)
    return g.And(g.Equal(a.real, b.real), g.Equal(a.imag, b.imag))


@translates_complex(aten.ne.Tensor, aten.ne.Scalar)
def ne(g: Graph, a: Any, b: Any) -> Tensor:
    """ne(z, w) → Not of eq(z, w)."""
    return g.Not(eq(g, a, b))


def _operands(g: Graph, a: Any, b: Any) -> tuple[ComplexPair, ComplexPair]:
    """Return both operands, of which at least one is complex, as complex values of one dtype."""
    like = a if isinstance(a, ComplexPair) else b
    made = [each if isinstance(each, ComplexPair) else _complex_like(g, each, like) for each in (a, b)]
    return made[0], made[1]


def _complex_like(g: Graph, value: Any, like: ComplexPair) -> ComplexPair:
    if isinstance(value, Tensor):
        return ComplexPair(g.cast(value, like.real.dtype), g.scalar(0, like.real.dtype))
    return make_complex(g, complex(value), like)


@translates_complex(aten.isnan.default)
def isnan(g: Graph, z: ComplexPair) -> Tensor:
    """isnan(z) → IsNaN of either part."""
    return g.Or(g.IsNaN(z.real), g.IsNaN(z.imag))


@translates_complex(aten.isfinite.default)
def isfinite(g: Graph, z: ComplexPair) -> Tensor:
    """isfinite(z) → whether re·0 + im·0 is 0: Mul, Add, Equal."""
    zero = g.Add(g.Mul(z.real, 0.0), g.Mul(z.imag, 0.0))
    return g.Equal(zero, 0.0)


@translates_complex(aten.linalg_vector_norm.default)
def vector_norm(g: Graph, z: ComplexPair, *args: Any, **kwargs: Any) -> Tensor:
    """linalg_vector_norm(z, …) → the norm of the absolute values."""
    made: Tensor = own_translations()[aten.linalg_vector_norm.default](g, length(g, z), *args, **kwargs)
    return made


@translates_complex(aten.var.default, aten.var.dim, aten.var.correction)
def var(g: Graph, z: ComplexPair, *args: Any, **kwargs: Any) -> Tensor:
    """var(z, …) → the sum of the variances of both parts."""
    translation = own_translations()[_target(g)]
    return g.Add(translation(g, z.real, *args, **kwargs), translation(g, z.imag, *args, **kwargs))


@translates_complex(aten.std.default, aten.std.dim, aten.std.correction)
def std(g: Graph, z: ComplexPair, *args: Any, **kwargs: Any) -> Tensor:
    """std(z, …) → Sqrt of the sum of the variances of both parts."""
    squares = (own_translations()[_target(g)](g, part, *args, **kwargs) for part in (z.real, z.imag))
    return g.Sqrt(g.Add(*(g.Mul(each, each) for each in squares)))
