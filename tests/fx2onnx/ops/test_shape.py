"""Views, joining, parting, padding and creation: each as a module of its own, right in ONNX Runtime at the export's size and at another."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from operators import check, check_both
from torch import Tensor
from torch.nn import functional as F

from fx2onnx import to_onnx
from fx2onnx.errors import UnsupportedOps

OWN = {"fallback": False}
NAN, INF = float("nan"), float("inf")


def normal(*sizes: int) -> Tensor:
    return torch.randn(*sizes, generator=torch.Generator().manual_seed(sum(sizes)))


def count(*sizes: int) -> Tensor:
    return torch.arange(torch.Size(sizes).numel()).reshape(sizes)


X, Y, W, Z = normal(4, 6), normal(2, 3, 4), normal(5), torch.tensor(2.5)
IMAGE, MASK = normal(1, 2, 4, 5), normal(4, 6) > 0

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
JOINS = {
    "cat": (lambda a, b: (torch.cat([a, b], -1), torch.concat((a, a), 0), torch.cat([a])), X, normal(4, 2)),
    "cat promotes": (lambda a, b: torch.cat([a, b, b > 3]), normal(2, 6), count(1, 6)),
    "cat passes over empty ones": (lambda a, b: torch.cat([a, b]), torch.zeros(0), X),
    "cat of empty ones": (lambda a, b: torch.cat([a, b]), torch.zeros(0), torch.zeros(0)),
    "stack": (lambda a, b: (torch.stack([a, b]), torch.stack([a, b], -1), torch.stack([a, b], 1)), X, X + 1),
    "stacks of no axes": (lambda a, b: tuple(s([a, b]) for s in STACKS), Z, Z + 1),
    "stacks of one axis": (lambda a, b: tuple(s([a, b]) for s in STACKS), W, W + 1),
    "stacks of two axes": (lambda a, b: tuple(s([a, b]) for s in STACKS), X, X + 1),
    "columns of both kinds": (lambda a, b: torch.column_stack([a, b]), X, normal(4)),
    "tensor_split": (lambda a: (a.tensor_split(3, 1), a.tensor_split(5), a.tensor_split((3, 1, -1), 1), a.tensor_split((100,), 1)), X),
    "splits by name": (lambda a: (a.vsplit(1), a.hsplit((1, 2)), a.vsplit((1,)), a[..., None].dsplit((1,)), a[0].hsplit((2,))), X),
    "repeat": (lambda a: (a.repeat(2, 3), a.repeat(2, 1, 1), a.repeat(1, 1), a.repeat(0, 1), a.repeat(a.shape[0], 1)), X),
    "tile": (lambda a: (a.tile(2), a.tile(2, 1, 3), a.tile(1, 2)), X),
    "repeat no axes": (lambda a: (a.repeat(3), a.tile(2, 2), a.repeat_interleave(2)), Z),
    "repeat_interleave": (
        lambda a: tuple(a.repeat_interleave(n, d) for n, d in ((2, None), (3, 0), (2, -1), (1, 0), (1, None), (0, 1))),
        Y,
    ),
    "repeats of each": (lambda a, r: (a.repeat_interleave(r, 0), torch.repeat_interleave(r)), X, torch.tensor([1, 0, 2, 3])),
    "repeats of all": (lambda a, r: a.repeat_interleave(r, 1), X, torch.tensor([2])),
    "repeats of none": (lambda r: torch.repeat_interleave(r), torch.tensor([0, 0]).int()),
    "meshgrid": (lambda a, b: torch.meshgrid(a, b, indexing="ij"), W, normal(3)),
    "meshgrid of columns": (lambda a, b, c: torch.meshgrid(a, b, c, indexing="xy"), W, normal(3), normal(1)),
    "meshgrid with no axes": (lambda a, b: torch.meshgrid(a, b), W, Z),
    "broadcast_tensors": (lambda a, b: torch.broadcast_tensors(a, b), normal(4, 1), normal(6)),
    "cartesian_prod": (lambda a, b: (torch.cartesian_prod(a, b, a), torch.cartesian_prod(a)), count(2), count(3)),
    "block_diag": (lambda a, b, c: torch.block_diag(a, b, c), X, W, Z),
}
STACKS = (torch.stack, torch.hstack, torch.vstack, torch.row_stack, torch.dstack, torch.column_stack)
PARTED = {
    "split": (lambda a: (a.split(3), a.split(2, -1), a.split(100), a.split([1, 3]), a.split([0, 4, 2], 1)), X),
    "chunk": (lambda a: (a.chunk(3, 1), a.chunk(3), a.chunk(1)), X),
    "hsplit": (lambda a: (a.hsplit(2), a.vsplit(2), a[..., None].dsplit(1)), X),
    "unbind": (lambda a: (a.unbind(), a.unbind(-1)), X),
    "split of nothing": (lambda a: a.split(2), torch.zeros(0, 3)),
    "vander": (lambda a: (torch.vander(a), torch.vander(a, 3, increasing=True)), W),
    "as_strided": (lambda a: (a.as_strided((2, 2), (1, 2)), a.as_strided((3,), (5,), 2)), X),
}
PADS = {
    "numbers": (lambda a: (F.pad(a, (1, 2)), F.pad(a, (1, -2, -1, 3), value=2.5), F.pad(a, (0, 0)), F.pad(a, (0, a.shape[0] - 3))), X),
    "to a multiple": (lambda a: F.pad(a, (0, -a.shape[0] % 4)), X),
    "integers": (lambda a: (F.pad(a, (1, 1), value=1), F.pad(a.int(), (1, 1)), F.pad(a > 1, (1, 1), value=True)), count(3)),
    "float16": (lambda a: F.pad(a.half(), (1, 1), value=-INF), X),
    "nothing": (lambda a: F.pad(a, (1, 1)), torch.zeros(0)),
    "reflect": (lambda a: (F.pad(a, (1, 2, 2, 1), "reflect"), F.pad(a, (-1, 2, 0, 0), "reflect")), IMAGE),
    "replicate": (lambda a: (F.pad(a, (2, 1, 5, 0), "replicate"), F.pad(a, (1, -1, -2, 1), "replicate")), IMAGE),
    "replicate cut off": (lambda a: F.pad(a, (-a.shape[-1], 5, 0, 0), "replicate"), IMAGE),
    "circular of nothing": (lambda a: F.pad(a, (2, 1), "circular"), torch.zeros(0, 3, 3)),
    "circular": (lambda a: (F.pad(a, (2, 1), "circular"), F.pad(a, (5, 5), "circular")), IMAGE[0]),
    "three axes": (lambda a: (F.pad(a, (1,) * 6, "reflect"), F.pad(a, (1,) * 6, "replicate")), normal(1, 2, 3, 4, 5)),
}
CREATED = {
    "zeros": (lambda a: (torch.zeros(3, a.shape[0]), torch.zeros_like(a), a.new_zeros(3), torch.zeros(1000, 3, dtype=torch.int16)), X),
    "ones": (lambda a: (torch.ones(a.shape, dtype=torch.bool), torch.ones_like(a, dtype=torch.int64), a.new_ones(a.shape[0], 2)), X),
    "full": (
        lambda a: (torch.full((2, 3), 7), torch.full((a.shape[0],), 1.5), torch.full((3, a.shape[0]), a.shape[1]), torch.full((), 3)),
        X,
    ),
    "full_like": (lambda a: (torch.full_like(a, 2.5), a.new_full((2, a.shape[1]), -1.5), torch.full_like(a, NAN, dtype=torch.float16)), X),
    "like booleans": (lambda a: (torch.zeros_like(a), torch.ones_like(a), torch.full_like(a, 3)), MASK),
    "like nothing": (lambda a: (torch.zeros_like(a), torch.ones_like(a)), torch.zeros(0, 3)),
    "empty": (lambda a: (torch.empty_like(a).zero_(), torch.empty(a.shape[0]).fill_(2), torch.cat([a, torch.empty(0, 6)])), X),
    "arange": (lambda a: (torch.arange(5), torch.arange(a.shape[0]), torch.arange(1, a.shape[0]), torch.arange(a.shape[1], 0, -1)), X),
    "arange in steps": (lambda a: (torch.arange(0, a.shape[1], 2), torch.arange(-a.shape[0] + 1, a.shape[0]), torch.arange(3, 3)), X),
    "arange of fractions": (lambda a: (torch.arange(0, 1, 0.3), torch.arange(0, a.shape[0], 0.3), torch.arange(0.5, a.shape[0])), X),
    "arange in a dtype": (lambda a: tuple(torch.arange(a.shape[0], dtype=t) for t in (torch.float16, torch.int32, torch.float64)), X),
    "long arange": (lambda a: (torch.arange(0, 500), torch.arange(0, 500, 0.7)), X),
    "eye": (lambda a: (torch.eye(3, 4), torch.eye(a.shape[0], a.shape[1]), torch.eye(a.shape[0], dtype=torch.bool), torch.eye(300, 2)), X),
    "linspace of tensors": (lambda a, b: (torch.linspace(a, b, 5), torch.linspace(0.0, b, 7), torch.linspace(a, 3.0, 7)), Z, Z * 3),
    "linspace to a size": (lambda a: (torch.linspace(0, a.shape[0], 5), torch.linspace(3, -7, 500), torch.linspace(0, 1, 1)), X),
    "one_hot": (lambda a: F.one_hot(a, 5), count(2, 2)),
    "one_hot of no axes": (lambda a: F.one_hot(a, 5), torch.tensor(3)),
    "one_hot of nothing": (lambda a: F.one_hot(a, 5), count(0)),
    "tensors of numbers": (lambda a: (a + torch.tensor([1, 2, 3, 4, 5, 6]), a * torch.tensor(a.shape[0]), torch.scalar_tensor(3.5)), X),
    "causal mask": (lambda a: torch.triu(torch.full((a.shape[0], a.shape[0]), -INF), 1), X),
}
CREATED_STATIC = {
    "logspace": (lambda a: (torch.logspace(0, 1, 5), torch.linspace(0, 1, a.shape[0]), torch.logspace(0, 1, 300)), X),
    "indices of triangles": (lambda a: (torch.tril_indices(3, 4, -1), torch.triu_indices(a.shape[0], 20, 1), torch.tril_indices(2, 2)), X),
}
EVERYWHERE = {**VIEWS, **JOINS, **PADS, **CREATED}
ENDS = (
    "slices",
    "roll",
    "diagonals",
    "batches of diagonals",
    "repeat_interleave",
    "tensor_split",
    "circular",
    "reflect",
    "arange",
    "eye",
    "one_hot",
)


@pytest.mark.parametrize("name", EVERYWHERE)
def test_it_is_what_torch_computes_at_any_size(name: str) -> None:
    check_both(*EVERYWHERE[name], options=OWN)


@pytest.mark.parametrize("name", [*PARTED, *CREATED_STATIC])
def test_it_is_what_torch_computes_where_the_sizes_are_fixed(name: str) -> None:
    check(*(PARTED | CREATED_STATIC)[name], options=OWN)


@pytest.mark.parametrize("opset", [18, 26])
@pytest.mark.parametrize("name", ENDS)
def test_the_first_and_the_last_opset_do(name: str, opset: int) -> None:
    check(*EVERYWHERE[name], dynamic=True, options={"opset_version": opset, **OWN})


def ops_of(function: Any, *tensors: Tensor) -> list[str]:
    class Module(torch.nn.Module):
        def forward(self, *given: Tensor) -> Any:
            return function(*given)

    axes = tuple(dict.fromkeys(range(tensor.ndim), torch.export.Dim.AUTO) for tensor in tensors)
    return [node.op_type for node in to_onnx(Module(), tensors, dynamic_shapes=(axes,), **OWN).model.graph]


@pytest.mark.parametrize(
    ("function", "expected"),
    [
        (lambda x: x.relu()[:, :].expand(-1, -1).permute(0, 1).repeat(1, 1).squeeze(0).narrow(0, 0, x.shape[0]), ["Relu"]),
        (lambda x: x[None, :, None], ["Unsqueeze", "Unsqueeze"]),
        (lambda x: x[:, None].expand(-1, 3, -1), ["Unsqueeze", "Expand"]),
        (lambda x: x[:, 1], ["Gather"]),
        (lambda x: x + torch.arange(6.0), ["Add"]),
    ],
)
def test_nothing_is_emitted_that_would_have_to_be_removed(function: Any, expected: list[str]) -> None:
    assert ops_of(function, X) == expected


def test_bits_are_not_read_as_another_kind_of_number() -> None:
    with pytest.raises(UnsupportedOps, match="cannot read the bits of FLOAT as INT32"):
        check(lambda x: x.view(torch.int32), X)


bounds = st.none() | st.integers(-8, 8)


@settings(max_examples=8, deadline=None, derandomize=True)
@given(bounds, bounds, st.integers(1, 4), st.integers(-2, 1))
def test_any_slice_is_right(start: int | None, end: int | None, step: int, dim: int) -> None:
    check(lambda x: torch.ops.aten.slice.Tensor(x, dim, start, end, step), X, dynamic=True, options=OWN)


@settings(max_examples=6, deadline=None, derandomize=True)
@given(st.integers(-7, 7), st.permutations([-3, -2, -1]))
def test_any_diagonal_is_right(offset: int, dims: list[int]) -> None:
    check(lambda x: (x.diagonal(offset, *dims[:2]), x.diag_embed(offset, *dims[1:])), Y, dynamic=True, options=OWN)


@settings(max_examples=6, deadline=None, derandomize=True)
@given(st.lists(st.integers(-2, 3), min_size=4, max_size=4), st.sampled_from(["constant", "reflect", "replicate"]))
def test_any_padding_is_right(widths: list[int], mode: str) -> None:
    check(lambda x: F.pad(x, widths, mode), normal(1, 1, 6, 7), options=OWN)
