"""Type Error: Type (tensor(int64)) of output arg (trunc) of node (node_trunc) does not match expected type (tensor(float))

The model declares one type for a value, but ONNX Runtime infers another type from the node that computes it. ONNX Runtime doesn't insert a
cast, so it refuses the model. This happens if you edit a model after the export. It also happens if an exporter uses the type from PyTorch
and writes a node with another output type. The message names the node.
"""

import onnx_ir as ir
import torch
from torch import nn

from exportlab.errors.known import Claim, Fix, KnownError
from exportlab.exporters import export


class Whole(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.trunc(x)


SAMPLES = [(torch.linspace(-3, 3, rows * 3).reshape(rows, 3),) for rows in (4, 7, 1)]
ROWS = ({0: "rows"},)


def breaks() -> Claim:
    program = export("dynamo", Whole(), SAMPLES[0], dynamic_shapes=ROWS)
    program.model.graph.outputs[0].type = ir.TensorType(ir.DataType.INT64)
    program(*SAMPLES[0])
    return program, Whole(), SAMPLES


class WholeNumbers(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.trunc(x).long()


def cast() -> Claim:
    """Cast in the PyTorch model and export again. The declared type then matches the node."""
    return export("dynamo", WholeNumbers(), SAMPLES[0], dynamic_shapes=ROWS), WholeNumbers(), SAMPLES


def as_it_is() -> Claim:
    """Keep the declared type, and cast the output of the runtime."""
    return export("dynamo", Whole(), SAMPLES[0], dynamic_shapes=ROWS), Whole(), SAMPLES


ERROR = KnownError(
    stage="load",
    message=r"Type Error: Type \(tensor\(\w+\)\) of output arg \(.*?\) of node \(.*?\) does not match expected type \(tensor\(\w+\)\)",
    breaks=breaks,
    fixes=(Fix("change the model", cast), Fix("change the call", as_it_is)),
    threads=("enpasos/jax2onnx#64", "onnx/sklearn-onnx#1102"),
)
