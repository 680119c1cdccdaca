"""ONNX export failed on an operator with unrecognized namespace: a custom operator, with `dynamo=False`

The legacy exporter (`dynamo=False`) translates operators of `aten` and a few other namespaces. Operators of other libraries, such as
`torch_scatter`, `flash_attn` or your own, don't have a symbolic function. The message suggests checking the domain and the version, but
neither is the cause.
"""

from collections.abc import Callable
from functools import cache
from typing import Any

import torch
from torch import nn

from exportlab.errors.known import Claim, Fix, KnownError
from exportlab.exporters import export


def squeezed(x: torch.Tensor) -> torch.Tensor:
    return x / (1 + x.abs())


@cache
def registered() -> Callable[[torch.Tensor], torch.Tensor]:
    op = torch.library.custom_op("known_errors::squeezed", squeezed, mutates_args=())
    op.register_fake(torch.empty_like)
    return op


class Squeezed(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return registered()(x) * 2


SAMPLES = [(torch.linspace(-1, 1, rows * 3).reshape(rows, 3),) for rows in (4, 7, 1, 0)]
ROWS = ({0: "rows"},)


def breaks() -> Claim:
    return export("torchscript", Squeezed(), SAMPLES[0], dynamic_shapes=ROWS), Squeezed(), SAMPLES


def symbolic(g: Any, x: Any) -> Any:
    return g.op("Div", x, g.op("Add", g.op("Abs", x), g.op("Constant", value_t=torch.ones(()))))


def told() -> Claim:
    """Register a symbolic function, which writes the operator in ONNX. It applies to the whole process until you unregister it."""
    torch.onnx.register_custom_op_symbolic("known_errors::squeezed", symbolic, 20)
    try:
        return export("torchscript", Squeezed(), SAMPLES[0], dynamic_shapes=ROWS), Squeezed(), SAMPLES
    finally:
        torch.onnx.unregister_custom_op_symbolic("known_errors::squeezed", 20)


def in_onnx(g: Any, x: Any) -> Any:
    return g.Div(x, g.Add(g.Abs(x), 1.0))


def to_onnx() -> Claim:
    """Pass `custom_translation_table` to `torch.onnx.export(dynamo=True)` or to `to_onnx`. With `torch.onnx.export` the entries are
    onnxscript functions. This example uses `to_onnx`.
    """
    registered()
    table = {torch.ops.known_errors.squeezed.default: in_onnx}
    made = export("to_onnx", Squeezed(), SAMPLES[0], dynamic_shapes=ROWS, custom_translation_table=table)
    return made, Squeezed(), SAMPLES


ERROR = KnownError(
    stage="translation",
    message=r"ONNX export failed on an operator with unrecognized namespace [\w:]+",
    breaks=breaks,
    fixes=(Fix("change the call", told), Fix("another exporter", to_onnx)),
    threads=("pytorch/pytorch#73388", "rusty1s/pytorch_cluster#259", "NVIDIA/TensorRT-LLM#2368"),
)
