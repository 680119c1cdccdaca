"""Type Error: Type (tensor(int64)) of output arg (trunc) of node (node_trunc) does not match expected type (tensor(float))

The file declares one type for a value, and ONNX Runtime infers another one from the node that computes it. It refuses the file: nothing is
cast for you. The declaration is wrong where a file was edited after the export, or where an exporter took the type from PyTorch and wrote a
node that returns another one. The message names the node.
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
    """Cast in the model, and export it again: then the node and the declared type agree."""
    return export("dynamo", WholeNumbers(), SAMPLES[0], dynamic_shapes=ROWS), WholeNumbers(), SAMPLES


def as_it_is() -> Claim:
    """Leave the declared type as the exporter wrote it, and cast what the runtime returns."""
    return export("dynamo", Whole(), SAMPLES[0], dynamic_shapes=ROWS), Whole(), SAMPLES


ERROR = KnownError(
    stage="load",
    message=r"Type Error: Type \(tensor\(\w+\)\) of output arg \(.*?\) of node \(.*?\) does not match expected type \(tensor\(\w+\)\)",
    breaks=breaks,
    fixes=(Fix("change the model", cast), Fix("change the call", as_it_is)),
    threads=("enpasos/jax2onnx#64", "onnx/sklearn-onnx#1102"),
)
