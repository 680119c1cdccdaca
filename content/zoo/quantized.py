"""Quantised models, and parts that quantisation adds to them. Narrow types without scales are in dtypes."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from exportlab.cases import Declaration, case
from exportlab.specs import tensor


@case(dims={"batch": (4, 7, 1, 0)}, topics=("quantization",))
def fake_quantize_module() -> Declaration:
    """A `FakeQuantize` left in the model after training: can it be captured?"""
    from torch.ao.quantization import FakeQuantize

    fake = FakeQuantize(quant_min=0, quant_max=255)
    fake.scale.fill_(0.02)
    fake.zero_point.fill_(120)
    fake.disable_observer()
    return nn.Sequential(nn.Linear(5, 5), fake), (tensor("batch", 5),)


@case(dims={"batch": (4, 7, 1, 0)}, topics=("quantization",))
def fake_quantize_function() -> Declaration:
    """Values are rounded to 256 steps, per tensor and per channel: is the grid the same?"""

    class Grid(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("scales", torch.rand(5) / 20 + 0.01)
            self.register_buffer("zeros", torch.arange(5, dtype=torch.int32))

        def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
            one = torch.fake_quantize_per_tensor_affine(x, 0.02, 3, -128, 127)
            return one, torch.fake_quantize_per_channel_affine(x, self.scales, self.zeros, 1, -128, 127)

    return Grid(), (tensor("batch", 5),)


@case(dims={"batch": (4, 7, 1, 0)}, topics=("quantization",))
def quantized_tensor() -> Declaration:
    """A quantised tensor with its own dtype inside the model: is it exported?"""

    class Quantized(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            return torch.quantize_per_tensor(x, 0.02, 3, torch.qint8).dequantize() * 2

    return Quantized(), (tensor("batch", 5),)


@case(dims={"batch": (4, 7, 1, 0)}, topics=("quantization",))
def quantize_dequantize_pair() -> Declaration:
    """The pair of operators that PT2E quantisers insert: does it stay a pair?"""
    import torch.ao.quantization.fx._decomposed  # registers the two operators

    ops = torch.ops.quantized_decomposed

    class Pair(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            given = (0.02, 3, -128, 127, torch.int8)
            return ops.dequantize_per_tensor(ops.quantize_per_tensor(x, *given), *given).relu()

    return Pair(), (tensor("batch", 5),)


@case(dims={"batch": (4, 7, 1, 0)}, topics=("quantization", "dtypes"))
def int8_weights() -> Declaration:
    """Weights are stored as int8 and widened when used: are they int8 in the exported model?"""

    class Int8Linear(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("weight", torch.randint(-128, 128, (4, 16), dtype=torch.int8))
            self.register_buffer("scale", torch.rand(4, 1) / 100)

        def forward(self, x: Tensor) -> Tensor:
            return F.linear(x, self.weight.to(x.dtype) * self.scale)

    return Int8Linear(), (tensor("batch", 16),)
