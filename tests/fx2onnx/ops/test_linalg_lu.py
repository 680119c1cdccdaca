"""LU and what follows from it: as torch has it, at sizes that the export never saw, of nothing, of singular matrices."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import pytest
import torch
from operators import Call, check, check_further
from torch import linalg
from torch.export import Dim

from fx2onnx import to_onnx

warnings.filterwarnings("ignore", "torch.lu is deprecated")
SIZES = [(4, 4), (1, 1), (0, 0), (0, 3, 3), (2, 3, 5, 5)]
FURTHER = [(7, 8, 8), (1, 1, 1), (2, 64, 64), (0, 4, 4), (2, 0, 0)]
ALL_FREE = dict.fromkeys(range(3), Dim.DYNAMIC)
CLOSE = {"rtol": 1e-4, "atol": 1e-4}
OF_A_SQUARE: dict[str, Callable[..., Any]] = {
    "inv": linalg.inv,
    "inv_ex": lambda a: tuple(linalg.inv_ex(a)),
    "inverse": torch.inverse,
    "det": linalg.det,
    "slogdet": lambda a: tuple(linalg.slogdet(a)),
    "logdet": torch.logdet,
    "lu": lambda a: tuple(linalg.lu(a)),
    "lu_factor": lambda a: tuple(linalg.lu_factor(a)),
    "lu_factor_ex": lambda a: tuple(linalg.lu_factor_ex(a)),
    "lu_unpack": lambda a: tuple(torch.lu_unpack(*linalg.lu_factor(a))),
    "inverse of the transpose": lambda a: linalg.inv(a.mT),
}
SYSTEMS: dict[str, tuple[Callable[..., Any], tuple[int, ...], tuple[int, ...]]] = {
    "solve": (linalg.solve, (4, 4), (4, 3)),
    "a vector": (linalg.solve, (4, 4), (4,)),
    "vectors": (linalg.solve, (2, 4, 4), (2, 4)),
    "one right side": (linalg.solve, (2, 4, 4), (4, 3)),
    "one matrix": (linalg.solve, (4, 4), (2, 4, 3)),
    "broadcast": (linalg.solve, (3, 1, 4, 4), (2, 4, 3)),
    "no unknowns": (linalg.solve, (0, 0), (0, 3)),
    "no right side": (linalg.solve, (3, 3), (3, 0)),
    "from the right": (lambda a, b: linalg.solve(a, b, left=False), (2, 4, 4), (3, 4)),
    "solve_ex": (lambda a, b: tuple(linalg.solve_ex(a, b)), (2, 4, 4), (2, 4, 3)),
    "lu_solve": (lambda a, b: linalg.lu_solve(*linalg.lu_factor(a), b), (2, 4, 4), (4, 3)),
    "lu_solve of the transpose": (lambda a, b: linalg.lu_solve(*linalg.lu_factor(a), b, adjoint=True), (2, 4, 4), (2, 4, 3)),
    "lu_solve from the right": (lambda a, b: linalg.lu_solve(*linalg.lu_factor(a), b, left=False), (2, 4, 4), (3, 4)),
    "both": (lambda a, b: linalg.lu_solve(*linalg.lu_factor(a), b, left=False, adjoint=True), (4, 4), (3, 4)),
    "tensorsolve": (lambda a, b: linalg.tensorsolve(a.reshape(2, 2, 4), b.reshape(2, 2)), (4, 4), (4,)),
}


def well(*sizes: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    """Random matrices, far from singular where they are square; the same ones each time."""
    made = torch.randn(*sizes, dtype=dtype, generator=torch.Generator().manual_seed(sum(sizes)))
    square = len(sizes) > 1 and sizes[-1] == sizes[-2]
    return made + 2 * sizes[-1] ** 0.5 * torch.eye(sizes[-1], dtype=dtype) if square else made


@pytest.mark.parametrize("name", OF_A_SQUARE)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
def test_of_square_matrices(name: str, dtype: torch.dtype) -> None:
    for sizes in SIZES:
        x = well(*sizes, dtype=dtype)
        check_further(OF_A_SQUARE[name], (x,), (x,), ({},), **CLOSE)


@pytest.mark.parametrize("name", OF_A_SQUARE)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
def test_at_sizes_that_the_export_never_saw(name: str, dtype: torch.dtype) -> None:
    example = well(3, 5, 5, dtype=dtype)
    program = to_onnx(Call(OF_A_SQUARE[name], (example,), {}), (example,), dynamic_shapes=((ALL_FREE,),))
    for sizes in FURTHER:
        x = well(*sizes, dtype=dtype)
        wanted = OF_A_SQUARE[name](x)
        for actual, expected in zip(program(x), wanted if isinstance(wanted, tuple) else (wanted,), strict=True):
            torch.testing.assert_close(torch.as_tensor(actual), expected, **CLOSE)


@pytest.mark.parametrize("name", SYSTEMS)
@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
def test_systems(name: str, dtype: torch.dtype) -> None:
    function, *sizes = SYSTEMS[name]
    given = tuple(well(*size, dtype=dtype) for size in sizes)
    check_further(function, given, given, ({}, {}), **CLOSE)


def test_systems_of_any_size() -> None:
    axes = ({0: Dim("b"), 1: Dim("n"), 2: Dim("n")}, {0: Dim("b"), 1: Dim("n"), 2: Dim("r")})
    example = (well(2, 4, 4), well(2, 4, 3))
    program = to_onnx(Call(linalg.solve, example, {}), example, dynamic_shapes=(axes,))
    for b, n, r in ((3, 7, 2), (1, 1, 1), (2, 64, 5), (0, 3, 2), (2, 3, 0)):
        x, y = well(b, n, n), well(b, n, r + n)[..., :r]
        torch.testing.assert_close(program(x, y)[0], linalg.solve(x, y), **CLOSE)


@pytest.mark.parametrize("sizes", [(4, 6), (6, 4), (2, 3, 7), (3, 1), (0, 3), (3, 0)])
def test_factors_of_matrices_that_are_not_square(sizes: tuple[int, ...]) -> None:
    for name in ("lu", "lu_factor", "lu_unpack"):
        check_further(OF_A_SQUARE[name], (well(*sizes),), (well(*sizes),), ({},), **CLOSE)


@pytest.mark.parametrize("name", ["det", "slogdet", "logdet", "lu", "lu_factor_ex"])
def test_of_a_singular_matrix(name: str) -> None:
    for x in (torch.ones(3, 3), torch.zeros(2, 3, 3), torch.tensor([[1.0, 2.0, 0.0], [2.0, 4.0, 1.0], [0.0, 0.0, 0.0]]).double()):
        check_further(OF_A_SQUARE[name], (well(*x.shape, dtype=x.dtype),), (x,), ({},), **CLOSE)


def test_the_inverse_of_a_singular_matrix_is_no_number_where_torch_raises() -> None:
    x, singular = well(3, 3), torch.ones(3, 3)
    with pytest.raises(RuntimeError, match="singular"):
        linalg.inv(singular)
    made = to_onnx(Call(linalg.inv, (x,), {}), (x,))(singular)[0]
    assert not made.isfinite().all()


def test_pivots_are_chosen_as_lapack_does() -> None:
    x = torch.tensor([[0.0, 1.0], [2.0, 3.0]])
    check(linalg.lu_factor, x)
    check(lambda a: torch.lu(a)[0], x)


def test_each_routine_stands_once_in_the_file_whatever_calls_it() -> None:
    x = well(3, 3)
    program = to_onnx(Call(lambda a: (linalg.inv(a), linalg.inv(a + 1), linalg.slogdet(a)), (x,), {}), (x,))
    assert sorted(function.name for function in program.model.functions.values()) == ["determinant_float", "lu_float", "lu_solve_float"]
    twice = to_onnx(Call(lambda a: (linalg.inv(a), linalg.inv(a.double())), (x,), {}), (x,))
    assert {function.name for function in twice.model.functions.values()} >= {"lu_float", "lu_double"}


@pytest.mark.parametrize("opset", [18, 26])
def test_in_the_first_and_the_last_opset(opset: int) -> None:
    x = well(3, 3)
    for name in ("inv", "slogdet", "lu"):
        check_further(OF_A_SQUARE[name], (x,), (x,), ({},), opset_version=opset, **CLOSE)
