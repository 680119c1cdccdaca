"""Unsupported model IR version: 14, max supported IR version: 13

A file says which version of the format it is written in. `onnx.helper.make_model` writes the newest one that the installed `onnx` knows,
and your ONNX Runtime may be older than that. What the model computes has no part in it. The exporters write an older version on purpose: it
is what you build or change afterwards that has the new one.
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
    file = ir.to_proto(exported.model)
    newest = onnx.IR_VERSION + 1
    exported.model = ir.from_proto(onnx.helper.make_model(file.graph, opset_imports=file.opset_import, ir_version=newest))
    return exported, Doubled(), SAMPLES


def older() -> Claim:
    """Say the version where the model is made, or set `model.ir_version = 10` afterwards: it is safe where no type or feature is newer."""
    exported = export("dynamo", Doubled(), SAMPLES[0], dynamic_shapes=ROWS)
    file = ir.to_proto(exported.model)
    exported.model = ir.from_proto(onnx.helper.make_model(file.graph, opset_imports=file.opset_import, ir_version=10))
    return exported, Doubled(), SAMPLES


def in_place() -> Claim:
    """Or change the model that the exporter made, and do not make another: it keeps its versions."""
    exported = export("dynamo", Doubled(), SAMPLES[0], dynamic_shapes=ROWS)
    exported.model.graph.doc_string = "doubled"
    return exported, Doubled(), SAMPLES


ERROR = KnownError(
    stage="load",
    message=r"Unsupported model IR version: \d+, max supported IR version: \d+",
    breaks=breaks,
    fixes=(Fix("change the call", older), Fix("change the call", in_place)),
    threads=("microsoft/onnxruntime#14932", "microsoft/onnxruntime#23602", "microsoft/onnxruntime#20559"),
)
