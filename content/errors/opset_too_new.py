"""Opset 28 is under development and support for this is limited: the model's opset is newer than ONNX Runtime supports

An ONNX model declares the opset of its operators. `onnx.helper.make_model` declares the newest opset of the installed `onnx` package, even
if the operators are older. ONNX Runtime supports a new opset some time after `onnx` does, and refuses opsets that weren't released when it
was built. {doc}`This table </docs/versions>` lists the opsets that each ONNX Runtime release loads.
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
    """Keep the opset of the model that you rebuild. Pass `opset_imports=file.opset_import` to `make_model`."""
    exported = export("dynamo", Doubled(), SAMPLES[0], dynamic_shapes=ROWS)
    file = ir.to_proto(exported.model)
    exported.model = ir.from_proto(onnx.helper.make_model(file.graph, opset_imports=file.opset_import, ir_version=10))
    return exported, Doubled(), SAMPLES


def asked() -> Claim:
    """Export with an `opset_version` that your users' runtime supports. Most runtimes support 18."""
    return export("dynamo", Doubled(), SAMPLES[0], dynamic_shapes=ROWS, opset_version=18), Doubled(), SAMPLES


ERROR = KnownError(
    stage="load",
    message=r"official released onnx opset versions\. Opset \d+ is under development and support for this is limited",
    breaks=breaks,
    fixes=(Fix("change the call", same_opset), Fix("change the call", asked)),
    threads=("microsoft/onnxruntime#5905", "onnxsim/onnxsim#289"),
)
