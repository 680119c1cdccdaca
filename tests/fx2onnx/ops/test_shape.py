"""Views, axes that move, triangles and diagonals: right in ONNX Runtime at the export's size and at another."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from inputs import INF, NAN, OWN, count, normal
from operators import check, check_both, nodes_of

X, Y, W, Z = normal(4, 6), normal(2, 3, 4), normal(5), torch.tensor(2.5)
MASK = normal(4, 6) > 0

VIEWS = {
    "flatten and view": (
        lambda x: (x.flatten(1), x.view(-1), x.reshape(x.shape[0], -1), x.unflatten(-1, (2, -1)), x.view_as(x), x.ravel()),
        Y,
    ),
    "flatten no axes": (lambda x: (x.flatten(), x.ravel(), x.reshape(1, 1)), Z),
    "unsqueeze": (lambda x: (x.unsqueeze(-1), x.unsqueeze(-2), x[:, None], x.unsqueeze(0)), Y),
    "squeeze": (lambda x: (x.squeeze(), x.squeeze(-1), x.squeeze((0, -1)), x.squeeze(1)), normal(1, 3, 1)),
    "squeeze no axes": (lambda x: (x.squeeze(), x.squeeze(0), x.unsqueeze(-1)), Z),
    "atleast of none": (lambda x: (torch.atleast_1d(x), torch.atleast_2d(x), torch.atleast_3d(x)), Z),
    "atleast of one": (lambda x: (torch.atleast_1d(x), torch.atleast_2d(x), torch.atleast_3d(x), torch.atleast_2d([x, x[0]])), W),
    "atleast of two": (lambda x: (torch.atleast_2d(x), torch.atleast_3d(x)), X),
    "booleans as bytes": (lambda x: x.view(torch.uint8), MASK),
    "integers without sign": (lambda x: x.to(torch.int32).view(torch.uint32).view(torch.int32), count(3) - 1),
    "slices": (lambda x: (x[1:], x[:-1], x[-3:], x[:, ::2], x[-100:100], x[3:1], x[:], x[:, x.shape[0] - 3 :], x[: x.shape[1] - 1]), X),
    "narrow": (lambda x: (x.narrow(0, -2, 2), x.narrow(-1, 1, 2), x.narrow(0, 0, x.shape[0])), X),
    "narrow by a size": (lambda x: x.narrow(1, x.shape[0] - 4, 2), X),
    "select": (lambda x: (x[0], x[-1], x[:, -1], x[..., 1], x.select(-1, 0)), Y),
    "select by a size": (lambda x: x[x.shape[1] - 4], X),
    "transposes": (lambda x: (x.T, x.mT, x.mH, x.t(), x.H, x.adjoint(), x.swapaxes(0, -1)), X),
    "transposes of one axis": (lambda x: (x.T, x.t(), x.movedim(0, -1)), W),
    "transposes of none": (lambda x: (x.T, x.t(), x.swapaxes(0, -1), x.movedim(0, 0)), Z),
    "moved axes": (lambda x: (x.movedim(0, -1), x.movedim((0, 1), (2, 0)), torch.moveaxis(x, (2,), (0,)), x.swapdims(0, 2), x.mT), Y),
    "permute": (lambda x: (x.permute(2, 0, 1), x.permute(-1, -2, -3), x.transpose(-1, 0), x.permute(0, 1, 2)), Y),
    "expand": (lambda x: (x.expand(5, -1, -1, -1), x[:, :1].expand(-1, 7, -1), x.expand_as(x), x.broadcast_to((2, *x.shape))), Y),
    "expand to nothing": (lambda x: (x.expand(0, 3), x.expand(2, 0, 1, 3)), normal(1, 3)),
    "expand no axes": (lambda x: x.expand(3, 2), Z),
    "flips": (lambda x: (x.flip(0), x.flip(-1, 0), x.flipud(), x.fliplr()), X),
    "rotations": (lambda x: (x.rot90(), x.rot90(2), x.rot90(-1, (1, 0)), x.rot90(4), x.rot90(1, (-1, 0))), X),
    "flip nothing": (lambda x: (x.flip(0), x.roll(1, 0), x.diagonal(), x.tril()), torch.zeros(0, 3)),
    "flip and roll no axes": (lambda x: (x.flip(0), x.flip(()), x.roll(1)), Z),
    "flip booleans": (lambda x: (x.flip(0), x.roll(2, 1), x.tril(), x.repeat(2, 1)), MASK),
    "roll": (lambda x: (x.roll(1), x.roll(-7, 0), x.roll((2, -1), (0, 1)), x.roll(100, 1), x.roll(0, 0), x.roll((1, 1), (0, 0))), X),
    "roll by a size": (lambda x: x.roll(x.shape[1] // 2, 1), X),
    "windows": (lambda x: (x.unfold(0, 2, 1), x.unfold(-1, 3, 2), x.unfold(1, 6, 1)), X),
    "windows in the middle": (lambda x: (x.unfold(1, 2, 3), x.unfold(1, 3, 1)), Y),
    "diagonals": (lambda x: (x.diagonal(), x.diagonal(1), x.diagonal(-2), x.diagonal(10), x.diagonal(-9), x.diag(), x.diag(2)), X),
    "diagonals of three axes": (lambda x: (x.diagonal(0, -1, 0), x.diagonal(1, 1, 2), x.diagonal(-1, 2, 0)), Y),
    "matrices of a diagonal": (lambda x: (x.diag(), x.diag(1), x.diag(-2), torch.diagflat(x), x.diag_embed()), W),
    "batches of diagonals": (lambda x: (torch.diagflat(x), x.diag_embed(1), x.diag_embed(-1, 0, -1), x.diag_embed(0, 1, 0)), X),
    "diagonals keep NaN": (lambda x: (x.diag_embed(), x.tril()), torch.tensor([[NAN, 1], [INF, NAN]])),
    "triangles": (lambda x: (x.tril(), x.triu(), x.tril(-1), x.triu(1), x.tril(10), x.triu(-10), x.triu(x.shape[0] - 2)), X),
    "triangles of integers": (lambda x: (x.triu(1), x.int().tril(diagonal=1), x.half().tril(), x.double().triu()), count(2, 3, 4)),
}
FIXED = {
    "as_strided": (lambda a: (a.as_strided((2, 2), (1, 2)), a.as_strided((3,), (5,), 2)), X),
}


@pytest.mark.parametrize("name", VIEWS)
def test_it_is_what_torch_computes_at_any_size(name: str) -> None:
    check_both(*VIEWS[name], options=OWN)


@pytest.mark.parametrize("name", FIXED)
def test_it_is_what_torch_computes_where_the_sizes_are_fixed(name: str) -> None:
    check(*FIXED[name], options=OWN)


@pytest.mark.parametrize("opset", [18, 26])
@pytest.mark.parametrize("name", ["slices", "roll", "diagonals", "batches of diagonals"])
def test_the_first_and_the_last_opset_do(name: str, opset: int) -> None:
    check(*VIEWS[name], dynamic=True, options={"opset_version": opset, **OWN})


@pytest.mark.parametrize(
    ("function", "expected"),
    [
        (lambda x: x.relu()[:, :].expand(-1, -1).permute(0, 1).repeat(1, 1).squeeze(0).narrow(0, 0, x.shape[0]), ["Relu"]),
        (lambda x: x[None, :, None], ["Unsqueeze", "Unsqueeze"]),
        (lambda x: x[:, None].expand(-1, 3, -1), ["Unsqueeze", "Expand"]),
        (lambda x: x[:, 1], ["Gather"]),
    ],
)
def test_nothing_is_emitted_that_would_have_to_be_removed(function: Any, expected: list[str]) -> None:
    assert nodes_of(function, X, dynamic=True, **OWN) == expected


bounds = st.none() | st.integers(-8, 8)


@settings(max_examples=8, deadline=None, derandomize=True)
@given(bounds, bounds, st.integers(1, 4), st.integers(-2, 1))
def test_any_slice_is_right(start: int | None, end: int | None, step: int, dim: int) -> None:
    check(lambda x: torch.ops.aten.slice.Tensor(x, dim, start, end, step), X, dynamic=True, options=OWN)


@settings(max_examples=6, deadline=None, derandomize=True)
@given(st.integers(-7, 7), st.permutations([-3, -2, -1]))
def test_any_diagonal_is_right(offset: int, dims: list[int]) -> None:
    check(lambda x: (x.diagonal(offset, *dims[:2]), x.diag_embed(offset, *dims[1:])), Y, dynamic=True, options=OWN)
