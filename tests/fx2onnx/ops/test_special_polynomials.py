"""Orthogonal polynomials of degrees that may differ by element: right in ONNX Runtime at the export's size and at another."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from operators import check, check_both
from torch import special

POLYNOMIALS = [
    special.chebyshev_polynomial_t, special.chebyshev_polynomial_u, special.chebyshev_polynomial_v, special.chebyshev_polynomial_w,
    special.shifted_chebyshev_polynomial_t, special.shifted_chebyshev_polynomial_u, special.shifted_chebyshev_polynomial_v,
    special.shifted_chebyshev_polynomial_w, special.hermite_polynomial_h, special.hermite_polynomial_he,
    special.laguerre_polynomial_l, special.legendre_polynomial_p,
]  # fmt: skip  # fmt: skip
POINTS = torch.tensor([-1.0, 0, 1, 0.3, -0.7, 1.5, 0.5, 0.99])
DEGREES = torch.tensor([3, 0, -2, 1, 9, 5, 12, 20])
HIGHEST = 20  # beyond it float32 overflows, to infinity in eager and to NaN where terms are combined otherwise


@pytest.mark.parametrize("function", POLYNOMIALS, ids=lambda f: f.__name__)
def test_polynomials_of_degrees_by_element(function: Callable[..., torch.Tensor]) -> None:
    check_both(function, POINTS, DEGREES)
    check_both(function, POINTS[:, None].clone().double(), DEGREES)
    check(function, POINTS[:0], DEGREES[:0])


@pytest.mark.parametrize("function", POLYNOMIALS, ids=lambda f: f.__name__)
@pytest.mark.parametrize("n", [-1, 0, 1, 4, 150])
def test_polynomials_of_one_degree(function: Callable[..., torch.Tensor], n: int) -> None:
    check(function, POINTS, n)


@pytest.mark.parametrize("function", POLYNOMIALS, ids=lambda f: f.__name__)
def test_polynomials_of_one_number_and_of_integers(function: Callable[..., torch.Tensor]) -> None:
    check_both(lambda n: function(2.5, n.clamp(max=HIGHEST)), DEGREES)
    check(function, torch.tensor([1, 2, 3]), 4)
    check(function, torch.tensor(0.4), 3)
