"""Special functions, such as those of Bessel: right in ONNX Runtime at the export's size and at another."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest
import torch
from operators import check, check_both
from torch import special

NUMBERS = torch.cat(
    [torch.linspace(-12, 12, 49) + 0.013, torch.tensor([0.0, -0.0, 1, 2, 5, 8, 1e-6, -1e-3, 20, 90, 1000, -20.5, math.inf, math.nan])]
)
WHOLE = torch.tensor([-3.0, -1, -math.inf, 7])
SHARES = torch.cat([torch.linspace(-1, 1, 41), torch.tensor([1e-30, 1e-10, 0.99999, -0.999999, 2, -2, math.nan, 0.1353, 0.8647])])
UNARY = [
    torch.lgamma, torch.digamma, special.i0, special.i0e, special.i1, special.i1e, special.modified_bessel_i0, special.modified_bessel_i1,
    special.modified_bessel_k0, special.modified_bessel_k1, special.scaled_modified_bessel_k0, special.scaled_modified_bessel_k1,
    special.bessel_j0, special.bessel_j1, special.bessel_y0, special.bessel_y1, special.spherical_bessel_j0,
    special.erfcx, special.log_ndtr, special.airy_ai,
]  # fmt: skip  # fmt: skip


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("function", UNARY, ids=lambda f: f.__name__)
def test_of_one_number(function: Callable[..., torch.Tensor], dtype: torch.dtype) -> None:
    check(function, torch.cat([NUMBERS, WHOLE]).to(dtype))


@pytest.mark.parametrize("function", [*UNARY, special.ndtri, torch.erfinv], ids=lambda f: f.__name__)
@pytest.mark.parametrize("x", [torch.rand(0, 3), torch.tensor(0.5), torch.tensor([1, 0, 3])], ids=["empty", "0-d", "int64"])
def test_of_any_shape_and_of_integers(function: Callable[..., torch.Tensor], x: torch.Tensor) -> None:
    check_both(function, x)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
@pytest.mark.parametrize("function", [special.ndtri, torch.erfinv], ids=lambda f: f.__name__)
def test_quantiles_up_to_the_ends_of_both_tails(function: Callable[..., torch.Tensor], dtype: torch.dtype) -> None:
    check(function, SHARES.to(dtype))


@pytest.mark.parametrize("n", range(5))
def test_polygamma_of_any_order(n: int) -> None:
    check(lambda x: torch.polygamma(n, x), NUMBERS)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_zeta_also_of_negative_numbers(dtype: torch.dtype) -> None:
    check(special.zeta, torch.tensor([[0.5], [1], [1.5], [2], [3], [4.5], [10], [30]], dtype=dtype), NUMBERS[:-2].to(dtype))
    check_both(special.zeta, 2.5, torch.rand(4, dtype=dtype))
    check_both(special.zeta, torch.rand(4, dtype=dtype) + 2, 1)


@pytest.mark.parametrize("opset", [18, 26])
def test_what_is_made_of_them(opset: int) -> None:
    options = {"opset_version": opset}
    check_both(lambda x: torch.mvlgamma(x, 3), torch.rand(5) + 3, options=options)
    check_both(lambda x: x * torch.kaiser_window(8), torch.randn(3, 8), options=options)
    check_both(lambda x: special.bessel_j0(x) + special.legendre_polynomial_p(x, 3), torch.randn(5), options=options)
