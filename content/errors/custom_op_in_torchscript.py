"""ONNX export failed on an operator with unrecognized namespace: a custom operator and the older exporter

`torch.onnx.export(dynamo=False)` knows the operators in `aten` and a few other namespaces. One of another library, such as `torch_scatter`,
`flash_attn` or your own, has no symbolic function. The message asks for the right domain and version, of which neither is the matter.
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
    """Register a symbolic function, which says it in ONNX. It is registered for the whole process, until it is taken back."""
    torch.onnx.register_custom_op_symbolic("known_errors::squeezed", symbolic, 20)
    try:
        return export("torchscript", Squeezed(), SAMPLES[0], dynamic_shapes=ROWS), Squeezed(), SAMPLES
    finally:
        torch.onnx.unregister_custom_op_symbolic("known_errors::squeezed", 20)


def in_onnx(g: Any, x: Any) -> Any:
    return g.Div(x, g.Add(g.Abs(x), 1.0))


def to_onnx() -> Claim:
    """Say the same to an exporter that takes it as an argument of the call: `to_onnx`, or `dynamo=True` with onnxscript."""
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
