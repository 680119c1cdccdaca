"""Opset 28 is under development and support for this is limited: the file asks for a later opset than ONNX Runtime knows

A file says which opset its operators come from. `onnx.helper.make_model` writes the newest one that the installed `onnx` has, even where
the operators are older; ONNX Runtime follows `onnx` with some delay, and refuses what it has not seen released.
{doc}`Which release takes which opset </docs/old_runtimes>` was tried.
"""

import onnx
import onnx_ir as ir
import torch
from torch import nn

from exportlab.errors.known import Claim, Fix, KnownError
from exportlab.exporters import export


class Doubled(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x * 2


SAMPLES = [(torch.ones(rows, 3),) for rows in (4, 7, 1, 0)]
ROWS = ({0: "rows"},)


def breaks() -> Claim:
    exported = export("dynamo", Doubled(), SAMPLES[0], dynamic_shapes=ROWS)
    newest = [onnx.helper.make_opsetid("", onnx.defs.onnx_opset_version() + 1)]
    exported.model = ir.from_proto(onnx.helper.make_model(ir.to_proto(exported.model).graph, opset_imports=newest, ir_version=10))
    return exported, Doubled(), SAMPLES


def same_opset() -> Claim:
    """Pass on the opsets of the model that you rebuild: `opset_imports=file.opset_import`."""
    exported = export("dynamo", Doubled(), SAMPLES[0], dynamic_shapes=ROWS)
    file = ir.to_proto(exported.model)
    exported.model = ir.from_proto(onnx.helper.make_model(file.graph, opset_imports=file.opset_import, ir_version=10))
    return exported, Doubled(), SAMPLES


def asked() -> Claim:
    """Export with the `opset_version` that the runtime of your users has; 18 is read by most of them."""
    return export("dynamo", Doubled(), SAMPLES[0], dynamic_shapes=ROWS, opset_version=18), Doubled(), SAMPLES


ERROR = KnownError(
    stage="load",
    message=r"official released onnx opset versions\. Opset \d+ is under development and support for this is limited",
    breaks=breaks,
    fixes=(Fix("change the call", same_opset), Fix("change the call", asked)),
    threads=("microsoft/onnxruntime#5905", "onnxsim/onnxsim#289"),
)
