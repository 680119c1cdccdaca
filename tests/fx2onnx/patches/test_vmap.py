"""`vmap` of modules, in chunks and at batched positions is right at sizes that the export never saw."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from modules import Of, Op
from torch import Tensor, nn

from exportlab import to_onnx, verify

X = torch.randn(4, 3)


class ByRow(nn.Module):
    """A module written for one row."""

    def __init__(self, **options: Any) -> None:
        super().__init__()
        self.row = nn.Sequential(nn.Linear(3, 4), nn.LayerNorm(4, **options), nn.Linear(4, 2))

    def forward(self, x: Tensor) -> Tensor:
        return torch.vmap(self.row)(x)


@pytest.mark.parametrize("options", [{}, {"bias": False, "eps": 1e-2}, {"elementwise_affine": False}])
def test_a_layer_norm_leaves_the_batch_moving(options: dict[str, Any]) -> None:
    module = ByRow(**options)
    program = to_onnx(module, (X,), dynamic_shapes=({0: "batch"},))
    verify(program, module, [(X,), (torch.randn(7, 3),), (X[:1],), (X[:0],)]).check()


@pytest.mark.parametrize("chunk_size", [1, 3])
def test_chunks_are_as_many_as_there_are(chunk_size: int) -> None:
    module = Of(torch.vmap(lambda row: row.cumsum(0) * row.max(), chunk_size=chunk_size))
    verify(to_onnx(module, (X,), dynamic_shapes=({0: "batch"},)), module, [(X,), (torch.randn(8, 3),), (X[:1],)]).check()


def allowed(padding: Tensor, other: Tensor) -> Tensor:
    """For two positions: the second is no later, and not padding."""
    at = torch.vmap(lambda b, q, k: (k <= q) & padding[b, k], in_dims=(None, None, 0))
    at = torch.vmap(torch.vmap(at, in_dims=(None, 0, None)), in_dims=(0, None, None))
    return at(*(torch.arange(size) for size in (*padding.shape, padding.shape[1])[:3])) & other


@pytest.mark.skipif(torch.__version__ < "2.11", reason="torch 2.10 reads batched positions as numbers, so this is refused")
def test_batched_positions_are_no_numbers() -> None:
    module, given = Op(allowed), (X > 0, torch.tensor(True))
    program = to_onnx(module, given, dynamic_shapes=(({0: "batch", 1: "seq"}, {}),))
    verify(program, module, [given, (torch.randn(2, 7) > 0, given[1]), (X[:1, :1] > 0, given[1])]).check()


@pytest.mark.skipif(torch.__version__ < "2.13", reason="torch.export itself refuses an index that is a tensor before torch 2.13")
def test_a_number_outside_of_vmap_is_an_index_as_before() -> None:
    module, given = Op(lambda x, i: x[i] + x[-1]), (X, torch.tensor(2))
    program = to_onnx(module, given, dynamic_shapes=(({0: "batch"}, {}),), capture="torch.export")
    verify(program, module, [given, (torch.randn(7, 3), torch.tensor(5))]).check()
