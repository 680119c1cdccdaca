"""The exponential of matrices: small and large ones, each squared as often as it needs, at sizes that the export never saw."""

from __future__ import annotations

import pytest
import torch
from operators import Call, check_further
from torch import linalg
from torch.export import Dim

from fx2onnx import to_onnx

CLOSE = {"rtol": 1e-4, "atol": 1e-4}


def random(*sizes: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    """The same random numbers each time."""
    return torch.randn(*sizes, dtype=dtype, generator=torch.Generator().manual_seed(sum(sizes))) / max(sizes[-1], 1) ** 0.5


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
def test_of_matrices(dtype: torch.dtype) -> None:
    for sizes in ((4, 4), (1, 1), (0, 0), (0, 3, 3), (2, 3, 5, 5)):
        x = random(*sizes, dtype=dtype)
        check_further(linalg.matrix_exp, (x,), (x,), ({},), **CLOSE)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64], ids=str)
def test_at_sizes_that_the_export_never_saw(dtype: torch.dtype) -> None:
    example = random(3, 5, 5, dtype=dtype)
    axes = dict.fromkeys(range(3), Dim.DYNAMIC)
    program = to_onnx(Call(linalg.matrix_exp, (example,), {}), (example,), dynamic_shapes=((axes,),))
    for sizes in ((7, 8, 8), (1, 1, 1), (2, 64, 64), (0, 4, 4), (2, 0, 0)):
        x = random(*sizes, dtype=dtype)
        torch.testing.assert_close(program(x)[0], torch.matrix_exp(x), **CLOSE)


def test_of_matrices_of_many_sizes_in_one_batch() -> None:
    x = random(4, 3, 3, dtype=torch.float64)
    scaled = (x - 3 * torch.eye(3)) * torch.tensor([1e-6, 1.0, 30.0, 0.0])[:, None, None]
    check_further(torch.matrix_exp, (x,), (scaled,), ({},), rtol=1e-9, atol=1e-12)


def test_of_infinities_and_nan_there_are_no_numbers_in_that_matrix_alone() -> None:
    x = random(3, 3, 3)
    x[1, 0, 0], x[2, 1, 2] = float("inf"), float("nan")
    check_further(torch.matrix_exp, (random(3, 3, 3),), (x,), ({},), **CLOSE)
