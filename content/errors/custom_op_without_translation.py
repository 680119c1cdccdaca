"""DispatchError: No ONNX function found for your own custom_op, because no exporter to ONNX can look into it

`torch.export` writes one node for an operator made by `torch.library.custom_op`, and takes its shapes from `register_fake`. What the
operator computes is Python (or C++, or Triton) that nobody traces. A file of ONNX nodes cannot call it, so somebody has to say it in ONNX.
Or the file names it, and whoever runs it brings {doc}`a kernel </generated/gallery/torch_onnx/custom_op_kernel>`.
"""

from collections.abc import Callable
from functools import cache
from typing import Any

import torch
from torch import nn

from exportlab.errors.known import Claim, Fix, KnownError
from exportlab.exporters import export


def softly_signed(x: torch.Tensor, scale: float) -> torch.Tensor:
    return x / (scale + x.abs())


@cache
def registered() -> Callable[[torch.Tensor, float], torch.Tensor]:
    op = torch.library.custom_op("known_errors::softly_signed", softly_signed, mutates_args=())
    op.register_fake(lambda x, scale: torch.empty_like(x))
    return op


class Signed(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return registered()(x, 0.5) * 2


SAMPLES = [(torch.linspace(-1, 1, rows * 3).reshape(rows, 3),) for rows in (4, 7, 1)]
ROWS = ({0: "rows"},)


def breaks() -> Claim:
    return export("dynamo", Signed(), SAMPLES[0], dynamic_shapes=ROWS), Signed(), SAMPLES


class SpeltOut(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        function = softly_signed if torch.compiler.is_exporting() else registered()
        return function(x, 0.5) * 2


def spelt_out() -> Claim:
    """Where the operator can be written with those of torch, call that function during the export, and the operator otherwise."""
    return export("dynamo", SpeltOut(), SAMPLES[0], dynamic_shapes=ROWS), Signed(), SAMPLES


def in_onnx(x: Any, scale: float) -> Any:
    from onnxscript import opset18 as op

    return op.Div(x, op.Add(op.Abs(x), op.CastLike(scale, x)))


def translated() -> Claim:
    """Say it in ONNX, and hand that over. `to_onnx` takes the same table."""
    registered()
    table = {torch.ops.known_errors.softly_signed.default: in_onnx}
    made = export("dynamo", Signed(), SAMPLES[0], dynamic_shapes=ROWS, custom_translation_table=table)
    return made, Signed(), SAMPLES


def torch_export() -> Claim:
    """Where it need not be ONNX: an exported program calls the operator itself, and needs it installed."""
    return export("torch.export", Signed(), SAMPLES[0], dynamic_shapes=ROWS), Signed(), SAMPLES


ERROR = KnownError(
    stage="translation",
    message=r"No ONNX function found for <OpOverload\(op='(?!(aten|prims|transformers)\.)[\w.]+', overload='\w+'\)>.*? for the real-valued"
    r"|UnsupportedOps: cannot export (?!aten\.|prims\.|transformers\.)[\w.]+",
    breaks=breaks,
    fixes=(Fix("change the model", spelt_out), Fix("change the call", translated), Fix("another exporter", torch_export)),
    threads=("pytorch/pytorch#138391", "pytorch/pytorch#65199"),
)
