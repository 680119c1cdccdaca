"""Fourier transforms, as products with the matrix of the transform. Transforms of frames are in fourier_frames.py.

ONNX's DFT would need n log n operations. But if n is not a power of two, the error of ONNX Runtime's DFT is 1e-4 of the largest result
at 400 elements and 3e-4 at 1,000, and it is slower than the product.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import sympy
import torch

from ..compat.operators import aten
from ..compat.symbols import FloorDiv, Min
from ..errors import Untranslated
from ..ir.complex_pairs import ComplexPair
from ..ir.dtypes import DOUBLE, INT64
from ..ir.expressions import Size
from ..ir.graph import Graph, Tensor
from ..translate.registry import translates, translates_complex
from .complex_arithmetic import conjugate
from .create import expand_scalar, make_range
from .shape import permute_axes

Matrix = tuple[Tensor, Tensor]
WAYS = ("backward", "ortho", "forward")
OTHER_WAY = {"backward": "forward", "forward": "backward", "ortho": "ortho"}
TURN = 2 * math.pi


def turns(g: Graph, rows: Size, columns: Size, n: Size, like: Tensor) -> Matrix:
    """Return cos and sin of 2π·j·k/n, (rows, columns), in the dtype of a tensor."""
    if all(isinstance(size, int) for size in (rows, columns, n)):
        j, k = torch.arange(int(rows), dtype=torch.float64), torch.arange(int(columns), dtype=torch.float64)
        angles = torch.outer(j, k).remainder(max(int(n), 1)) * (TURN / max(int(n), 1))
        return g.const(angles.cos(), like.dtype), g.const(angles.sin(), like.dtype)
    products = g.Mul(g.Reshape(make_range(g, rows), [-1, 1]), g.Reshape(make_range(g, columns), [1, -1]))
    whole = g.scalar(n, INT64)
    angles = g.Div(g.Mul(g.cast(g.Mod(products, whole), DOUBLE), TURN), g.cast(whole, DOUBLE))
    cos, sin = (g.cast(made, like.dtype) for made in (g.Cos(angles), g.Sin(angles)))
    return g.set_sizes(cos, (rows, columns)), g.set_sizes(sin, (rows, columns))


def append_dft(g: Graph, x: Any, dim: int, n: Size, *, inverse: bool, norm: str | None, bins: Size | None = None) -> ComplexPair:
    """Return the first `bins` of the transform along one axis of a complex or real tensor, cut or padded with zeros to `n` elements."""
    x = x if isinstance(x, ComplexPair) else ComplexPair(x, x)
    is_real = x.imag is x.real
    rows, sizes = _within(x.sizes[dim], n), list(x.sizes)
    parts = [_last(g, _cut(g, part, dim, rows), dim) for part in ([x.real] if is_real else [x.real, x.imag])]
    cos, sin = turns(g, rows, n if bins is None else bins, n, x.real)
    sizes[dim] = n if bins is None else bins
    by_cos, by_sin = [g.MatMul(part, cos) for part in parts], [g.MatMul(part, sin) for part in parts]
    if is_real:
        made = ComplexPair(by_cos[0], by_sin[0] if inverse else g.Neg(by_sin[0]))
    elif inverse:
        made = ComplexPair(g.Sub(by_cos[0], by_sin[1]), g.Add(by_cos[1], by_sin[0]))
    else:
        made = ComplexPair(g.Add(by_cos[0], by_sin[1]), g.Sub(by_cos[1], by_sin[0]))
    return made.map(lambda part: _apply_norm(g, _back(g, part, dim, sizes), n, inverse, norm))


def back_to_real(g: Graph, z: ComplexPair, dim: int, n: Size, norm: str | None) -> Tensor:
    """Return the inverse transform of half the frequencies, which are mirrored, as `n` real numbers along one axis."""
    half = n // 2 if isinstance(n, int) else FloorDiv(n, 2)
    rows, sizes = _within(z.sizes[dim], half + 1), list(z.sizes)
    sizes[dim] = n
    real, imag = (_last(g, _cut(g, part, dim, rows), dim) for part in (z.real, z.imag))
    twice = _counted_twice(g, rows, n, real)
    cos, sin = turns(g, rows, n, n, real)
    made = g.Sub(g.MatMul(g.Mul(real, twice), cos), g.MatMul(g.Mul(imag, twice), sin))
    return _apply_norm(g, _back(g, made, dim, sizes), n, True, norm)


def _counted_twice(g: Graph, rows: Size, n: Size, like: Tensor) -> Tensor:
    """Return how often each frequency counts, (rows,): twice, except the first, and the last if n is even, which have no mirror image."""
    k = make_range(g, rows)
    alone = g.Or(g.Equal(k, 0), g.Equal(g.Mul(k, 2), g.scalar(n, INT64)))
    return g.Where(alone, g.scalar(1.0, like.dtype), g.scalar(2.0, like.dtype))


def _within(size: Size, most: Size) -> Size:
    """Return how many of `size` elements are among the first `most`."""
    if isinstance(size, int) and isinstance(most, int):
        return min(size, most)
    more = sympy.sympify(most) - size
    return size if more.is_nonnegative else most if more.is_nonpositive else Min(size, most)


def _cut(g: Graph, x: Tensor, dim: int, rows: Size) -> Tensor:
    if x.sizes[dim] == rows:
        return x
    sizes = list(x.sizes)
    sizes[dim] = rows
    return g.set_sizes(g.Slice(x, [0], [rows], [dim % x.rank]), sizes)


def _last(g: Graph, x: Tensor, dim: int) -> Tensor:
    order = [i for i in range(x.rank) if i != dim % x.rank]
    return permute_axes(g, x, [*order, dim % x.rank])


def _back(g: Graph, x: Tensor, dim: int, sizes: Sequence[Size]) -> Tensor:
    rank, dim = len(sizes), dim % len(sizes)
    order = list(range(rank - 1))
    order.insert(dim, rank - 1)
    known = g.set_sizes(x, [*(size for i, size in enumerate(sizes) if i != dim), sizes[dim]])
    return permute_axes(g, known, order)


def _apply_norm(g: Graph, x: Tensor, n: Size, inverse: bool, norm: str | None) -> Tensor:
    way = norm or "backward"
    if way not in WAYS:
        raise Untranslated(f"norm={norm!r} is not supported")
    if way == ("forward" if inverse else "backward"):
        return x
    if isinstance(n, int):
        made = g.Mul(x, 1 / (math.sqrt(n) if way == "ortho" else n))
    else:
        whole = g.cast(g.scalar(n, INT64), DOUBLE)
        made = g.Div(x, g.cast(g.Sqrt(whole) if way == "ortho" else whole, x.dtype))
    return g.set_sizes(made, x.sizes)


def _dims(x: Any, s: Sequence[Size] | None, dim: Sequence[int] | int | None) -> list[int]:
    if isinstance(dim, int):
        return [dim]
    if dim is not None:
        return list(dim)
    return list(range(x.rank)) if s is None else list(range(-len(s), 0))


def _floating(g: Graph, x: Any) -> Any:
    """Return integers as floats of the default dtype, as torch transforms them."""
    return x if isinstance(x, ComplexPair) else g.cast(x, _real_dtype(g))


def _real_dtype(g: Graph) -> torch.dtype:
    dtype = g.result().dtype
    return dtype.to_real() if dtype.is_complex else dtype


@translates_complex(aten.fft_fft.default, aten.fft_ifft.default)
def fft(g: Graph, x: Any, n: Size | None = None, dim: int = -1, norm: str | None = None) -> ComplexPair:
    """fft(x, n, dim, norm), ifft(x, n, dim, norm) → MatMul with cosines and sines."""
    return append_dft(g, _floating(g, x), dim, g.sizes[dim], inverse="ifft" in g.overload._opname, norm=norm)


@translates_complex(aten.fft_rfft.default)
def rfft(g: Graph, x: Tensor, n: Size | None = None, dim: int = -1, norm: str | None = None) -> ComplexPair:
    """rfft(x, n, dim, norm) → MatMul with cosines and sines, for half the frequencies."""
    return append_dft(g, _floating(g, x), dim, x.sizes[dim] if n is None else n, inverse=False, norm=norm, bins=g.sizes[dim])


def _make_complex(g: Graph, z: Any) -> ComplexPair:
    """Return a tensor as a complex value in the dtype of the result."""
    if isinstance(z, ComplexPair):
        return z
    real = g.cast(z, g.dtype)
    return ComplexPair(real, expand_scalar(g, real.sizes, 0, real.dtype))


@translates(aten.fft_irfft.default)
@translates_complex(aten.fft_irfft.default)
def irfft(g: Graph, z: Any, n: Size | None = None, dim: int = -1, norm: str | None = None) -> Tensor:
    """irfft(z, n, dim, norm) → MatMul of both parts, where all frequencies except the ends count twice."""
    return back_to_real(g, _make_complex(g, z), dim, g.sizes[dim], norm)


@translates(aten.fft_hfft.default)
@translates_complex(aten.fft_hfft.default)
def hfft(g: Graph, z: Any, n: Size | None = None, dim: int = -1, norm: str | None = None) -> Tensor:
    """hfft(z, n, dim, norm) → irfft of the conjugate, with the opposite norm."""
    return back_to_real(g, conjugate(g, _make_complex(g, z)), dim, g.sizes[dim], OTHER_WAY[norm or "backward"])


@translates_complex(aten.fft_ihfft.default)
def ihfft(g: Graph, x: Tensor, n: Size | None = None, dim: int = -1, norm: str | None = None) -> ComplexPair:
    """ihfft(x, n, dim, norm) → the conjugate of rfft, with the opposite norm."""
    return conjugate(g, rfft(g, x, n, dim, OTHER_WAY[norm or "backward"]))


@translates_complex(aten.fft_fft2.default, aten.fft_ifft2.default, aten.fft_fftn.default, aten.fft_ifftn.default)
def fftn(g: Graph, x: Any, s: Sequence[Size] | None = None, dim: Any = None, norm: str | None = None) -> ComplexPair:
    """fft2(x, s, dim, norm), fftn(x, s, dim, norm), ifft2, ifftn → fft or ifft along each axis."""
    inverse, dim = "_ifft" in g.overload._opname, _default_dim(g, dim)
    for axis in _dims(x, s, dim)[::-1]:
        x = append_dft(g, _floating(g, x), axis, g.sizes[axis], inverse=inverse, norm=norm)
    made: ComplexPair = x
    return made


@translates_complex(aten.fft_rfft2.default, aten.fft_rfftn.default)
def rfftn(g: Graph, x: Tensor, s: Sequence[Size] | None = None, dim: Any = None, norm: str | None = None) -> ComplexPair:
    """rfft2(x, s, dim, norm), rfftn(x, s, dim, norm) → rfft along the last axis, fft along the others."""
    *others, last = _dims(x, s, _default_dim(g, dim))
    n = x.sizes[last] if s is None or s[-1] == -1 else s[-1]
    made = append_dft(g, _floating(g, x), last, n, inverse=False, norm=norm, bins=g.sizes[last])
    for axis in others[::-1]:
        made = append_dft(g, made, axis, g.sizes[axis], inverse=False, norm=norm)
    return made


@translates(aten.fft_irfft2.default, aten.fft_irfftn.default)
@translates_complex(aten.fft_irfft2.default, aten.fft_irfftn.default)
def irfftn(g: Graph, z: Any, s: Sequence[Size] | None = None, dim: Any = None, norm: str | None = None) -> Tensor:
    """irfft2(z, s, dim, norm), irfftn(z, s, dim, norm) → ifft along all axes except the last, irfft along the last."""
    *others, last = _dims(z, s, _default_dim(g, dim))
    z = _make_complex(g, z)
    for axis in others:
        z = append_dft(g, z, axis, g.sizes[axis], inverse=True, norm=norm)
    return back_to_real(g, z, last, g.sizes[last], norm)


def _default_dim(g: Graph, dim: Any) -> Any:
    return (-2, -1) if dim is None and g.overload._opname.endswith("fft2") else dim


@translates(aten.fft_fftfreq.default, aten.fft_rfftfreq.default)
def fftfreq(g: Graph, n: int, d: float = 1.0, dtype: torch.dtype | None = None) -> Tensor:
    """fftfreq(n, d), rfftfreq(n, d) → a constant."""
    return g.const(g.overload(n, d, dtype=torch.float64), g.dtype)


@translates_complex(aten._fft_c2c.default)
def c2c(g: Graph, z: ComplexPair, dim: Sequence[int], normalization: int, forward: bool) -> ComplexPair:
    """_fft_c2c(z, dim, normalization, forward) → MatMul with cosines and sines, along each axis."""
    for axis in dim:
        z = append_dft(g, z, axis, z.sizes[axis], inverse=not forward, norm=_norm_of(normalization, not forward))
    return z


@translates_complex(aten._fft_r2c.default)
def r2c(g: Graph, x: Tensor, dim: Sequence[int], normalization: int, onesided: bool) -> ComplexPair:
    """_fft_r2c(x, dim, normalization, onesided) → MatMul with cosines and sines along each axis; half of them along the last axis."""
    *others, last = dim
    norm = _norm_of(normalization, False)
    made = append_dft(g, x, last, x.sizes[last], inverse=False, norm=norm, bins=g.sizes[last])
    return c2c(g, made, others, normalization, True)


@translates_complex(aten._fft_c2r.default)
def c2r(g: Graph, z: ComplexPair, dim: Sequence[int], normalization: int, last_dim_size: Size) -> Tensor:
    """_fft_c2r(z, dim, normalization, size) → MatMul of both parts along the last axis, after the others."""
    *others, last = dim
    return back_to_real(g, c2c(g, z, others, normalization, False), last, last_dim_size, _norm_of(normalization, True))


def _norm_of(normalization: int, inverse: bool) -> str:
    """Return the name of the norm that a primitive divides by: nothing, the root of the size, or the size."""
    return ("forward" if inverse else "backward", "ortho", "backward" if inverse else "forward")[normalization]
