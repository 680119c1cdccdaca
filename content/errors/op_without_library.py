"""Fatal error: my.domain:Tripled(-1) is not a registered function/op: a custom operator in ONNX Runtime

The ONNX model contains an operator from a custom domain. ONNX Runtime implements the standard domains. Other operators need a library with
a kernel, or the operator's definition as a function in the model. The library can be a short kernel {doc}`in Python
</generated/gallery/torch_onnx/custom_op_kernel>` or {doc}`in C++ </tutorials/308_onnx_in_cpp>`.
"""

import onnx_ir as ir
import onnxscript
import torch
from onnxscript import FLOAT, opset18
from torch import nn

from exportlab.errors.known import Claim, Fix, KnownError
from exportlab.exporters import export


class Tripled(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if torch.compiler.is_exporting():
            return torch.onnx.ops.symbolic("my.domain::Tripled", (x,), dtype=x.dtype, shape=x.shape, version=1)
        return x * 3


SAMPLES = [(torch.ones(rows, 3),) for rows in (4, 7, 1, 0)]
ROWS = ({0: "rows"},)


def breaks() -> Claim:
    return export("dynamo", Tripled(), SAMPLES[0], dynamic_shapes=ROWS), Tripled(), SAMPLES


@onnxscript.script(onnxscript.values.Opset("my.domain", 1), default_opset=opset18)
def definition(x: FLOAT[...]) -> FLOAT[...]:
    return x + x + x


def defined() -> Claim:
    """Add the operator's definition to the model as an ONNX function. A runtime without the operator then uses the definition."""
    exported = export("dynamo", Tripled(), SAMPLES[0], dynamic_shapes=ROWS)
    function = ir.from_proto(definition.to_function_proto())
    function.name = "Tripled"
    exported.model.functions[function.identifier()] = function
    return exported, Tripled(), SAMPLES


class Written(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x * 3


def written() -> Claim:
    """Export the computation with standard operators."""
    return export("dynamo", Written(), SAMPLES[0], dynamic_shapes=ROWS), Tripled(), SAMPLES


ERROR = KnownError(
    stage="load",
    message=r"Fatal error: [\w.]+:\w+\(-1\) is not a registered function/op",
    breaks=breaks,
    fixes=(Fix("change the model", written), Fix("change the call", defined)),
    threads=("microsoft/onnxruntime#23566", "microsoft/onnxruntime#17214", "microsoft/onnxruntime-extensions#964"),
)
