"""Type 'tensor(int32)' of input parameter of operator (GatherND) is invalid: a tensor indexed by int32

PyTorch accepts int32 indices. `torch.onnx.export` writes `GatherND` for `table[index]` without a cast. `GatherND` accepts only int64, so
the model is invalid. `nn.Embedding` is exported as `Gather`, which accepts both.
"""

import torch
from torch import nn

from exportlab.errors.known import Claim, Fix, KnownError
from exportlab.exporters import export


class Lookup(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("table", torch.arange(15.0).reshape(5, 3))

    def forward(self, index: torch.Tensor) -> torch.Tensor:
        return self.table[index]


SAMPLES = [(torch.arange(rows, dtype=torch.int32) % 5,) for rows in (4, 7, 1, 0)]
ROWS = ({0: "rows"},)


def breaks() -> Claim:
    return export("dynamo", Lookup(), SAMPLES[0], dynamic_shapes=ROWS), Lookup(), SAMPLES


class LookupIn64Bits(Lookup):
    def forward(self, index: torch.Tensor) -> torch.Tensor:
        return super().forward(index.long())


def widened() -> Claim:
    """Cast the index with `.long()` in the model. The exported model still accepts int32."""
    return export("dynamo", LookupIn64Bits(), SAMPLES[0], dynamic_shapes=ROWS), Lookup(), SAMPLES


def to_onnx() -> Claim:
    """Use `to_onnx`. It casts the index."""
    return export("to_onnx", Lookup(), SAMPLES[0], dynamic_shapes=ROWS), Lookup(), SAMPLES


ERROR = KnownError(
    stage="load",
    message=r"Type Error: Type 'tensor\(int32\)' of input parameter \(.*?\) of operator \(Gather\w*\)",
    breaks=breaks,
    fixes=(Fix("change the model", widened), Fix("another exporter", to_onnx)),
    threads=(),
)
