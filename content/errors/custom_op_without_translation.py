"""DispatchError: No ONNX function found for a custom operator made by `torch.library.custom_op`

`torch.export` records a custom operator as one node and gets its output shape from `register_fake`. It doesn't trace the Python, C++ or
Triton code of the operator, so an exporter to ONNX needs a translation. Instead of a translation, the ONNX model can contain a node of your
own domain, for which the runtime loads {doc}`a kernel </generated/gallery/torch_onnx/custom_op_kernel>`.
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
    """Use PyTorch operators during export with `torch.compiler.is_exporting()`. Outside the export, the model still calls the custom
    operator.
    """
    return export("dynamo", SpeltOut(), SAMPLES[0], dynamic_shapes=ROWS), Signed(), SAMPLES


def in_onnx(x: Any, scale: float) -> Any:
    from onnxscript import opset18 as op

    return op.Div(x, op.Add(op.Abs(x), op.CastLike(scale, x)))


def translated() -> Claim:
    """Write the operator in ONNX and pass it as `custom_translation_table`. `to_onnx` accepts such a table too."""
    registered()
    table = {torch.ops.known_errors.softly_signed.default: in_onnx}
    made = export("dynamo", Signed(), SAMPLES[0], dynamic_shapes=ROWS, custom_translation_table=table)
    return made, Signed(), SAMPLES


def torch_export() -> Claim:
    """Use `torch.export` if you don't need ONNX. The exported program calls the operator, which has to be installed."""
    return export("torch.export", Signed(), SAMPLES[0], dynamic_shapes=ROWS), Signed(), SAMPLES


ERROR = KnownError(
    stage="translation",
    message=r"No ONNX function found for <OpOverload\(op='(?!(aten|prims|transformers)\.)[\w.]+', overload='\w+'\)>.*? for the real-valued"
    r"|UnsupportedOps: cannot export (?!aten\.|prims\.|transformers\.)[\w.]+",
    breaks=breaks,
    fixes=(Fix("change the model", spelt_out), Fix("change the call", translated), Fix("another exporter", torch_export)),
    threads=("pytorch/pytorch#138391", "pytorch/pytorch#65199"),
)
