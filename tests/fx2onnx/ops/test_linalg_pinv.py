"""Pseudo-inverses and ranks: as torch's for full and lower rank, by each way to say the tolerance, at sizes never seen."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from operators import Call
from torch import linalg
from torch.export import Dim

from fx2onnx import to_onnx

FLOATS = [torch.float32, torch.float64]
SIZES = [(4, 4), (6, 3), (3, 6), (2, 5, 4), (1, 1), (0, 3), (3, 0), (2, 2, 3, 3), (20, 33)]
WAYS: dict[str, Callable[..., Any]] = {
    "pinv": linalg.pinv,
    "pinv atol": lambda a: linalg.pinv(a, atol=0.5),
    "pinv rtol": lambda a: linalg.pinv(a, rtol=0.2),
    "pinv both": lambda a: linalg.pinv(a, atol=0.3, rtol=0.1),
    "torch.pinverse": lambda a: torch.pinverse(a, rcond=0.1),
    "rank": linalg.matrix_rank,
    "rank tol": lambda a: linalg.matrix_rank(a, 0.7),
    "rank atol": lambda a: linalg.matrix_rank(a, atol=0.7),
    "rank atol of 0": lambda a: linalg.matrix_rank(a, atol=0.0),
    "rank rtol": lambda a: linalg.matrix_rank(a, rtol=0.3),
    "rank, an atol each": lambda a: linalg.matrix_rank(a, atol=a.abs().amax((-2, -1)) if a.numel() else torch.zeros(a.shape[:-2])),
}


def matrices(*sizes: int, rank: int, dtype: torch.dtype) -> torch.Tensor:
    """Random matrices of at most this rank, the same ones each time."""
    generator = torch.Generator().manual_seed(sum(sizes) + rank)
    *batch, m, n = sizes
    return torch.randn(*batch, m, rank, dtype=dtype, generator=generator) @ torch.randn(*batch, rank, n, dtype=dtype, generator=generator)


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
@pytest.mark.parametrize("name", WAYS)
def test_of_matrices_of_full_and_lower_rank(name: str, dtype: torch.dtype) -> None:
    for sizes in SIZES:
        full = matrices(*sizes, rank=max(sizes[-2:]), dtype=dtype)
        program = to_onnx(Call(WAYS[name], (full,), {}), (full,))
        for x in (full, matrices(*sizes, rank=2, dtype=dtype), torch.zeros_like(full), torch.ones_like(full)):
            torch.testing.assert_close(program(x)[0], WAYS[name](x), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("name", WAYS)
def test_at_sizes_that_the_export_never_saw(name: str) -> None:
    example = matrices(3, 5, 5, rank=5, dtype=torch.float32)
    axes = {0: Dim("b"), 1: Dim("n"), 2: Dim("n")}
    program = to_onnx(Call(WAYS[name], (example,), {}), (example,), dynamic_shapes=((axes,),))
    for sizes in ((1, 4, 4), (2, 12, 12), (7, 1, 1)):
        x = matrices(*sizes, rank=3, dtype=torch.float32)
        torch.testing.assert_close(program(x)[0], WAYS[name](x), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("function", [linalg.pinv, linalg.matrix_rank])
def test_of_symmetric_matrices_the_lower_triangle_is_read(function: Callable[..., Any]) -> None:
    x = matrices(2, 4, 4, rank=4, dtype=torch.float32)
    program = to_onnx(Call(lambda a: function(a, hermitian=True), (x,), {}), (x,))
    for a in (x, x + x.mT, matrices(2, 4, 4, rank=2, dtype=torch.float32)):
        torch.testing.assert_close(program(a)[0], function(a, hermitian=True), rtol=1e-4, atol=1e-4)
