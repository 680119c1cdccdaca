"""QR: signs and all as LAPACK has them, tall and wide, reduced and complete, at sizes that the export never saw."""

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
SIZES = [(4, 4), (1, 1), (0, 0), (0, 3, 3), (2, 3, 5, 4), (2, 4, 6), (3, 1), (1, 3), (2, 0, 3), (2, 3, 0)]
FURTHER = [(7, 8, 8), (1, 1, 1), (2, 64, 64), (2, 40, 9), (0, 4, 4), (2, 0, 0)]
FLOATS = [torch.float32, torch.float64]
WAYS: dict[str, Callable[..., Any]] = {
    "reduced": lambda a: tuple(linalg.qr(a)),
    "complete": lambda a: tuple(linalg.qr(a, mode="complete")),
    "r": lambda a: linalg.qr(a, mode="r").R,
    "torch.qr": lambda a: tuple(torch.qr(a, some=False)),
    "of the transpose": lambda a: tuple(linalg.qr(a.mT)),
}


def random(*sizes: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    """The same random numbers each time."""
    return torch.randn(*sizes, dtype=dtype, generator=torch.Generator().manual_seed(sum(sizes)))


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
@pytest.mark.parametrize("name", [*WAYS, "geqrf"])
def test_of_matrices(name: str, dtype: torch.dtype) -> None:
    function = WAYS.get(name, lambda a: tuple(torch.geqrf(a)))
    for sizes in SIZES:
        x = random(*sizes, dtype=dtype)
        check_further(function, (x,), (x,), ({},), **CLOSE)


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
@pytest.mark.parametrize("name", ["reduced", "complete", "r"])
def test_at_sizes_that_the_export_never_saw(name: str, dtype: torch.dtype) -> None:
    example = random(3, 7, 5, dtype=dtype)
    axes = dict.fromkeys(range(3), Dim.DYNAMIC)
    program = to_onnx(Call(WAYS[name], (example,), {}), (example,), dynamic_shapes=((axes,),))
    for sizes in FURTHER:
        x = random(*sizes, dtype=dtype)
        wanted = WAYS[name](x)
        for actual, expected in zip(program(x), wanted if isinstance(wanted, tuple) else (wanted,), strict=True):
            torch.testing.assert_close(torch.as_tensor(actual), expected, **CLOSE)


def test_columns_that_need_no_reflection_keep_their_sign_as_in_lapack() -> None:
    for x in (torch.eye(3), -torch.eye(3), torch.zeros(3, 2), torch.ones(4, 3), torch.tensor([[0.0, 1.0], [2.0, 3.0]])):
        check_further(WAYS["r"], (random(*x.shape),), (x,), ({},), **CLOSE)


@pytest.mark.parametrize(("left", "transpose"), list(product((True, False), repeat=2)))
def test_products_with_reflections(left: bool, transpose: bool) -> None:
    given = random(5, 3), random(5, 2)
    check_further(
        lambda a, c: torch.ormqr(*torch.geqrf(a), c if left else c.mT, left, transpose), given, given, ({}, {}), **CLOSE
    )  # fmt: skip
    check_further(lambda a, _: linalg.householder_product(*torch.geqrf(a)), given, given, ({}, {}), **CLOSE)
