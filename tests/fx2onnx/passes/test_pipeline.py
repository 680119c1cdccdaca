"""What is left of a graph when all is written: weights once, norms inside convolutions."""

from __future__ import annotations

import torch
from torch import nn

from exportlab import to_onnx, verify

BATCH = ({0: "batch"},)


def test_a_weight_read_in_two_ways_is_stored_once() -> None:
    class Tied(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.embedding = nn.Embedding(7, 4)
            self.head = nn.Linear(4, 7, bias=False)
            self.head.weight = self.embedding.weight

        def forward(self, ids: torch.Tensor) -> torch.Tensor:
            return self.head(self.embedding(ids))

    module, ids = Tied(), torch.tensor([[1, 2, 3]])
    program = to_onnx(module, (ids,))
    verify(program, module, [(ids,)]).check()
    assert len(program.model.graph.initializers) == 1


def test_a_batch_norm_becomes_part_of_the_convolution() -> None:
    module = nn.Sequential(nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4)).eval()
    module[1].running_mean.normal_()
    x = torch.randn(2, 3, 8, 8)
    program = to_onnx(module, (x,), dynamic_shapes=BATCH)
    assert [node.op_type for node in program.model.graph] == ["Conv"]
    verify(program, module, [(x,), (torch.randn(3, 3, 8, 8),)]).check()
