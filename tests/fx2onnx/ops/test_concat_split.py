"""Joining, repeating and parting: right in ONNX Runtime at the export's size and at another."""

from __future__ import annotations

import pytest
import torch
from inputs import OWN, count, normal
from operators import check, check_both

X, Y, W, Z = normal(4, 6), normal(2, 3, 4), normal(5), torch.tensor(2.5)
STACKS = (torch.stack, torch.hstack, torch.vstack, torch.row_stack, torch.dstack, torch.column_stack)

LIST_CONSUMERS = {
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
PARTED = {
    "split": (lambda a: (a.split(3), a.split(2, -1), a.split(100), a.split([1, 3]), a.split([0, 4, 2], 1)), X),
    "chunk": (lambda a: (a.chunk(3, 1), a.chunk(3), a.chunk(1)), X),
    "hsplit": (lambda a: (a.hsplit(2), a.vsplit(2), a[..., None].dsplit(1)), X),
    "unbind": (lambda a: (a.unbind(), a.unbind(-1)), X),
    "split of nothing": (lambda a: a.split(2), torch.zeros(0, 3)),
    "vander": (lambda a: (torch.vander(a), torch.vander(a, 3, increasing=True)), W),
}


@pytest.mark.parametrize("name", LIST_CONSUMERS)
def test_it_is_what_torch_computes_at_any_size(name: str) -> None:
    check_both(*LIST_CONSUMERS[name], options=OWN)


@pytest.mark.parametrize("name", PARTED)
def test_it_is_what_torch_computes_where_the_sizes_are_fixed(name: str) -> None:
    check(*PARTED[name], options=OWN)


@pytest.mark.parametrize("opset", [18, 26])
@pytest.mark.parametrize("name", ["repeat_interleave", "tensor_split"])
def test_the_first_and_the_last_opset_do(name: str, opset: int) -> None:
    check(*LIST_CONSUMERS[name], dynamic=True, options={"opset_version": opset, **OWN})
