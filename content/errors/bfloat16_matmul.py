"""NOT_IMPLEMENTED: Could not find an implementation for MatMul: ONNX Runtime has no bfloat16 kernel on the CPU

The exported model is valid, because ONNX supports bfloat16 since opset 13. ONNX Runtime has bfloat16 kernels on some accelerators, but for
few operators on the CPU. It selects a kernel for each node when it loads the model, and fails if there isn't one.
"""

import torch
from torch import nn

from exportlab.errors.known import Claim, Fix, KnownError
from exportlab.exporters import export


class Product(nn.Module):
    def __init__(self, dtype: torch.dtype) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.weight = nn.Parameter(torch.randn(3, 5, dtype=torch.bfloat16).to(dtype))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x @ self.weight


HALF = [(torch.randn(rows, 3, dtype=torch.bfloat16),) for rows in (4, 7)]
FULL = [(x.float(),) for (x,) in HALF]
ROWS = ({0: "rows"},)


def breaks() -> Claim:
    return export("dynamo", Product(torch.bfloat16), HALF[0], dynamic_shapes=ROWS), Product(torch.bfloat16), HALF


def widened() -> Claim:
    """Convert the model to float32 before the export: `module.float()`. The file doubles in size."""
    return export("dynamo", Product(torch.float32), FULL[0], dynamic_shapes=ROWS), Product(torch.float32), FULL


def to_onnx() -> Claim:
    """Use `to_onnx` for the CPU. It inserts casts to float32 where ONNX Runtime has no CPU kernel. The weights stay bfloat16."""
    return export("to_onnx", Product(torch.bfloat16), HALF[0], dynamic_shapes=ROWS), Product(torch.bfloat16), HALF


ERROR = KnownError(
    stage="load",
    message=r"NOT_IMPLEMENTED : Could not find an implementation for (?:MatMul|Gemm)\(\d+\)",
    breaks=breaks,
    fixes=(Fix("change the model", widened), Fix("another exporter", to_onnx)),
    threads=("onnx/onnx#7393", "pytorch/pytorch#143643"),
    kin=r"Could not find an implementation",
    advice="ONNX Runtime has no CPU kernel for this operator in this dtype: use module.float()",
)
