"""Cholesky and triangular systems: as torch has them, either triangle, from either side, at sizes that the export never saw."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from typing import Any

import pytest
import torch
from operators import Call, check_further
from torch import linalg
from torch.export import Dim

from fx2onnx import to_onnx

CLOSE = {"rtol": 1e-4, "atol": 1e-4}
SIZES = [(4, 4), (1, 1), (0, 0), (0, 3, 3), (2, 3, 5, 5)]
FURTHER = [(7, 8, 8), (1, 1, 1), (2, 64, 64), (0, 4, 4), (2, 0, 0)]
FLOATS = [torch.float32, torch.float64]
FACTORS: dict[str, Callable[..., Any]] = {
    "cholesky": linalg.cholesky,
    "cholesky_ex": lambda a: tuple(linalg.cholesky_ex(a)),
    "the upper factor": lambda a: linalg.cholesky(a, upper=True),
    "torch.cholesky": torch.cholesky,
    "of one triangle": lambda a: linalg.cholesky(a.tril()),
    "there and back": lambda a: torch.cholesky_inverse(linalg.cholesky(a)),
    "there and back above": lambda a: torch.cholesky_inverse(linalg.cholesky(a, upper=True), upper=True),
}


def random(*sizes: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    """The same random numbers each time."""
    return torch.randn(*sizes, dtype=dtype, generator=torch.Generator().manual_seed(sum(sizes)))


def positive(*sizes: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    """Matrices with positive eigenvalues, at least one."""
    x = random(*sizes, dtype=dtype)
    return x @ x.mT / max(sizes[-1], 1) + torch.eye(sizes[-1], dtype=dtype)


def triangular(*sizes: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    """Matrices of which either triangle is far from singular, with ones or without."""
    return random(*sizes, dtype=dtype) * 0.3 + 2 * torch.eye(sizes[-1], dtype=dtype)


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
@pytest.mark.parametrize("name", FACTORS)
def test_cholesky(name: str, dtype: torch.dtype) -> None:
    for sizes in SIZES:
        x = positive(*sizes, dtype=dtype)
        check_further(FACTORS[name], (x,), (x,), ({},), **CLOSE)


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
@pytest.mark.parametrize("name", FACTORS)
def test_cholesky_at_sizes_that_the_export_never_saw(name: str, dtype: torch.dtype) -> None:
    example = positive(3, 5, 5, dtype=dtype)
    axes = dict.fromkeys(range(3), Dim.DYNAMIC)
    program = to_onnx(Call(FACTORS[name], (example,), {}), (example,), dynamic_shapes=((axes,),))
    for sizes in FURTHER:
        x = positive(*sizes, dtype=dtype)
        wanted = FACTORS[name](x)
        for actual, expected in zip(program(x), wanted if isinstance(wanted, tuple) else (wanted,), strict=True):
            torch.testing.assert_close(torch.as_tensor(actual), expected, **CLOSE)


def test_a_matrix_that_is_not_positive_has_info_as_in_torch_and_no_numbers_after_it() -> None:
    x, bad = positive(3, 3), torch.tensor([[1.0, 0, 0], [0, -1.0, 0], [0, 0, 1.0]])
    factor, info = to_onnx(Call(FACTORS["cholesky_ex"], (x,), {}), (x,))(bad)
    assert int(info) == int(linalg.cholesky_ex(bad).info) == 2
    assert factor[0, 0] == 1
    assert factor[1, 1].isnan()


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
@pytest.mark.parametrize(("upper", "left", "unitriangular"), list(product((False, True), repeat=3)))
def test_triangular_systems(upper: bool, left: bool, unitriangular: bool, dtype: torch.dtype) -> None:
    def call(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        return linalg.solve_triangular(a, b if left else b.mT, upper=upper, left=left, unitriangular=unitriangular)

    for of_a, of_b in (((4, 4), (4, 3)), ((2, 4, 4), (4, 3)), ((4, 4), (2, 4, 3)), ((0, 0), (0, 2)), ((3, 3), (3, 0)), ((1, 1), (1, 1))):
        given = triangular(*of_a, dtype=dtype), random(*of_b, dtype=dtype)
        check_further(call, given, given, ({}, {}), **CLOSE)


@pytest.mark.parametrize(("upper", "transpose"), list(product((False, True), repeat=2)))
def test_systems_by_their_older_names(upper: bool, transpose: bool) -> None:
    given = triangular(2, 4, 4), random(4, 3)
    check_further(lambda a, b: tuple(torch.triangular_solve(b, a, upper=upper, transpose=transpose)), given, given, ({}, {}), **CLOSE)
    check_further(lambda a, b: torch.cholesky_solve(b, a, upper=upper), given, given, ({}, {}), **CLOSE)


def test_systems_of_any_size() -> None:
    axes = ({0: Dim("b"), 1: Dim("n"), 2: Dim("n")}, {0: Dim("b"), 1: Dim("n"), 2: Dim("r")})
    example = (triangular(2, 4, 4), random(2, 4, 3))

    def call(a: torch.Tensor, b: torch.Tensor) -> torch.Tensor:
        return linalg.solve_triangular(a, b, upper=False) + torch.cholesky_solve(b, a)

    program = to_onnx(Call(call, example, {}), example, dynamic_shapes=(axes,))
    for b, n, r in ((3, 7, 2), (1, 1, 1), (2, 64, 5), (0, 3, 2), (2, 3, 0)):
        x, y = triangular(b, n, n) * torch.ones(n, n).tril() + torch.eye(n) * n, random(b, n, r)
        torch.testing.assert_close(program(x, y)[0], call(x, y), **CLOSE)


def test_a_zero_on_the_diagonal_gives_what_torch_gives() -> None:
    singular = torch.tensor([[1.0, 0.0], [1.0, 0.0]])
    check_further(
        lambda a, b: linalg.solve_triangular(a, b, upper=False),
        (triangular(2, 2), random(2, 1)),
        (singular, torch.tensor([[1.0], [2.0]])),
        ({}, {}),
    )
