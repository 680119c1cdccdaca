"""`scatter_reduce` with "mean" returns one of the values instead of their mean

ONNX's `ScatterElements` can add, multiply, or keep the largest or smallest value, but it doesn't have a mean. `torch.onnx.export` writes
the operator without a reduction. If several values go to the same position, only the last one remains.
"""

import torch
from torch import nn

from exportlab.errors.known import Claim, Fix, KnownError
from exportlab.exporters import export


class MeanByTarget(nn.Module):
    def forward(self, nodes: torch.Tensor, values: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
        return nodes.scatter_reduce(0, target, values, "mean")


SAMPLES = [(torch.arange(5.0) + 0.25, torch.arange(edges) - 3.5, torch.arange(edges) % 5) for edges in (9, 12, 1, 0)]
EDGES = ({}, {0: "edges"}, {0: "edges"})


def breaks() -> Claim:
    return export("dynamo", MeanByTarget(), SAMPLES[0], dynamic_shapes=EDGES), MeanByTarget(), SAMPLES


class SumOverCount(nn.Module):
    def forward(self, nodes: torch.Tensor, values: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
        total = nodes.scatter_reduce(0, target, values, "sum")
        count = torch.ones_like(nodes).scatter_reduce(0, target, torch.ones_like(values), "sum")
        return total / count


def sum_over_count() -> Claim:
    """Divide the sum by the count. `scatter_reduce` with "sum" is translated correctly."""
    return export("dynamo", SumOverCount(), SAMPLES[0], dynamic_shapes=EDGES), MeanByTarget(), SAMPLES


def to_onnx() -> Claim:
    """Use `to_onnx`. It divides the sum by the count."""
    return export("to_onnx", MeanByTarget(), SAMPLES[0], dynamic_shapes=EDGES), MeanByTarget(), SAMPLES


ERROR = KnownError(
    stage="silent",
    message=r"^export inputs: output\S*\[\d+\]: -?\d+(\.\d+)? where eager has -?\d+\.\d+ \(\d+ of \d+ elements differ\)",
    check="export inputs",
    breaks=breaks,
    op="scatter_reduce",
    fixes=(Fix("change the model", sum_over_count), Fix("another exporter", to_onnx)),
    threads=("pytorch/pytorch#101535", "onnx/onnx#5100", "microsoft/onnxscript#582"),
)
