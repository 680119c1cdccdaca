"""Eigenvalues and singular values: in torch's order, with vectors that make the matrix again, at sizes that the export never saw."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from operators import Call, check_further
from torch import linalg
from torch.export import Dim

from fx2onnx import to_onnx
from fx2onnx.errors import UnsupportedOps

CLOSE = {"rtol": 1e-4, "atol": 1e-4}
FLOATS = [torch.float32, torch.float64]
SQUARE = [(4, 4), (1, 1), (0, 0), (0, 3, 3), (2, 3, 5, 5)]
OTHERS = [(4, 6), (6, 4), (2, 0, 3), (2, 3, 0), (1, 3), (3, 1)]
FURTHER = [(7, 8, 8), (1, 1, 1), (2, 64, 64), (1, 33, 33), (0, 4, 4), (2, 0, 0)]


def eigen(a: torch.Tensor, **options: Any) -> tuple[torch.Tensor, ...]:
    """Eigenvalues, and what vectors of any sign give: the matrix, and the identity."""
    values, vectors = linalg.eigh(a, **options)
    return values, vectors @ torch.diag_embed(values) @ vectors.mT, vectors.mT @ vectors


def singular(full: bool) -> Callable[[torch.Tensor], tuple[torch.Tensor, ...]]:
    """A function that gives singular values, and what vectors of any sign give: the matrix, and identities."""

    def call(a: torch.Tensor) -> tuple[torch.Tensor, ...]:
        u, values, vh = linalg.svd(a, full_matrices=full)
        count = values.shape[-1]
        again = (u[..., :, :count] * values[..., None, :]) @ vh[..., :count, :]
        return values, again, u.mT @ u, vh @ vh.mT

    return call


WAYS: dict[str, Callable[..., Any]] = {
    "eigh": eigen,
    "eigh of the upper triangle": lambda a: eigen(a.triu(), UPLO="U"),
    "eigh of the lower triangle": lambda a: eigen(a.tril()),
    "svd": singular(False),
    "svd in full": singular(True),
    "torch.svd": lambda a: (torch.svd(a)[1],),
    "torch.svd as factors": lambda a: (lambda u, s, v: ((u * s[..., None, :]) @ v.mT,))(*torch.svd(a)),
    "torch.svd without vectors": lambda a: torch.svd(a, compute_uv=False),
}


def made(name: str, *sizes: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    """Random matrices, symmetric ones for eigenvalues, the same ones each time."""
    x = torch.randn(*sizes, dtype=dtype, generator=torch.Generator().manual_seed(sum(sizes)))
    return x + x.mT if name.startswith("eigh") else x


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
@pytest.mark.parametrize("name", WAYS)
def test_of_matrices(name: str, dtype: torch.dtype) -> None:
    for sizes in SQUARE if name.startswith("eigh") else SQUARE + OTHERS:
        x = made(name, *sizes, dtype=dtype)
        check_further(WAYS[name], (x,), (x,), ({},), **CLOSE)


@pytest.mark.parametrize("dtype", FLOATS, ids=str)
@pytest.mark.parametrize("name", WAYS)
def test_at_sizes_that_the_export_never_saw(name: str, dtype: torch.dtype) -> None:
    example = made(name, 3, 5, 5, dtype=dtype)
    axes = {0: Dim("b"), 1: Dim("n"), 2: Dim("n")}
    program = to_onnx(Call(WAYS[name], (example,), {}), (example,), dynamic_shapes=((axes,),))
    alike = [torch.ones(2, 4, 4, dtype=dtype), torch.zeros(2, 3, 3, dtype=dtype), 1e-3 * torch.eye(3, dtype=dtype)[None]]
    large = [made(name, 2, 6, 6, dtype=dtype) * scale for scale in (1e-4, 10)]
    for x in [*(made(name, *sizes, dtype=dtype) for sizes in FURTHER), *alike, *large]:
        for actual, expected in zip(program(x), WAYS[name](x), strict=True):
            torch.testing.assert_close(torch.as_tensor(actual), expected, **CLOSE)


@pytest.mark.parametrize("function", [linalg.eigvalsh, linalg.svdvals])
def test_values_alone_are_refused(function: Callable[..., Any]) -> None:
    x = made("eigh", 3, 3)
    with pytest.raises(UnsupportedOps, match=r"linalg_(eigvalsh|svdvals).*no translation"):
        to_onnx(Call(function, (x,), {}), (x,))


def test_as_torch_export_captures_it() -> None:
    for name in ("eigh", "svd"):
        x = made(name, 2, 4, 4)
        program = to_onnx(Call(WAYS[name], (x,), {}), (x,), capture="torch.export")
        torch.testing.assert_close(program(x)[1], x, **CLOSE)


def test_of_two_moving_axes_it_has_to_be_known_which_is_longer() -> None:
    x = made("svd", 5, 3)
    with pytest.raises(UnsupportedOps, match="unknown which of two dynamic dimensions is larger"):
        to_onnx(Call(singular(False), (x,), {}), (x,), dynamic_shapes=(({0: Dim("m"), 1: Dim("n")},),))


OF_VALUES: dict[str, Callable[..., Any]] = {
    "nuclear norm": lambda a: linalg.matrix_norm(a, "nuc"),
    "norm 2": lambda a: linalg.matrix_norm(a, 2, keepdim=True),
    "norm -2": lambda a: linalg.matrix_norm(a, -2, dim=(1, 0)),
    "torch.norm": lambda a: torch.norm(a, "nuc", dim=(0, 2)),
    "cond": linalg.cond,
    "cond -2": lambda a: linalg.cond(a, -2),
}


@pytest.mark.parametrize("name", OF_VALUES)
def test_what_follows_from_singular_values(name: str) -> None:
    for dtype in FLOATS:
        example = made("svd", 3, 6, 4, dtype=dtype)
        axes = dict.fromkeys(range(3), Dim.DYNAMIC)
        program = to_onnx(Call(OF_VALUES[name], (example,), {}), (example,), dynamic_shapes=((axes,),))
        for sizes in ((3, 6, 4), (2, 4, 7), (4, 3, 3), (1, 20, 5)):
            x = made("svd", *sizes, dtype=dtype)
            torch.testing.assert_close(program(x)[0], OF_VALUES[name](x), **CLOSE)
