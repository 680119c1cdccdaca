"""NOT_IMPLEMENTED: Could not find an implementation for MatMul, because ONNX Runtime has no bfloat16 kernel on the processor

The file is right: ONNX knows bfloat16 since opset 13. ONNX Runtime has kernels for it on some accelerators, and for few operators on the
processor. It looks for one when it loads the file, and refuses the node that has none.
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
    """Run in float32 what the processor has no kernel for: `module.float()` before the export. The file doubles in size."""
    return export("dynamo", Product(torch.float32), FULL[0], dynamic_shapes=ROWS), Product(torch.float32), FULL


def to_onnx() -> Claim:
    """On a CPU, use `to_onnx`: it writes a cast to float32 where ONNX Runtime has no CPU kernel. The weights stay bfloat16."""
    return export("to_onnx", Product(torch.bfloat16), HALF[0], dynamic_shapes=ROWS), Product(torch.bfloat16), HALF


ERROR = KnownError(
    stage="load",
    message=r"NOT_IMPLEMENTED : Could not find an implementation for (?:MatMul|Gemm)\(\d+\)",
    breaks=breaks,
    fixes=(Fix("change the model", widened), Fix("another exporter", to_onnx)),
    threads=("onnx/onnx#7393", "pytorch/pytorch#143643"),
    kin=r"Could not find an implementation",
    advice="ONNX Runtime has no kernel for this operator in this dtype on the processor: module.float()",
)
