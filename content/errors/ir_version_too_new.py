"""Unsupported model IR version: 14, max supported IR version: 13: the `onnx` package is newer than ONNX Runtime

An ONNX model contains the version of its file format, the IR version. `onnx.helper.make_model` writes the newest version that the installed
`onnx` package supports, and your ONNX Runtime may be older. The operators in the model don't matter. Exporters write an older IR version on
purpose, so this error affects models that you create or change afterwards.
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
    """Pass `ir_version=10` to `make_model`, or set `model.ir_version = 10` afterwards. This is safe if the model doesn't use a newer type
    or feature.
    """
    exported = export("dynamo", Doubled(), SAMPLES[0], dynamic_shapes=ROWS)
    file = ir.to_proto(exported.model)
    exported.model = ir.from_proto(onnx.helper.make_model(file.graph, opset_imports=file.opset_import, ir_version=10))
    return exported, Doubled(), SAMPLES


def in_place() -> Claim:
    """Change the exported model instead of creating another one. It keeps its IR version."""
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
