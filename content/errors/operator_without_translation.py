"""DispatchError: No ONNX function found for OpOverload(op='aten._cdist_forward'): no ONNX translation in `torch.onnx.export`

`torch.onnx.export` first decomposes operators into simpler ones. Then it looks up a translation for each remaining operator. If an operator
has neither a decomposition nor a translation, the export fails. The message names the operator after decomposition: you called
`torch.cdist`, and it reports `aten._cdist_forward`. `median`, `searchsorted`, `cummax`, `lgamma`, `masked_select` and `linalg.inv` fail in
the same way.
"""

from typing import Any

import torch
from torch import nn

from exportlab.errors.known import Claim, Fix, KnownError
from exportlab.exporters import export


class Distances(nn.Module):
    def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return torch.cdist(x, y)


def points(count: int, shift: float) -> torch.Tensor:
    return torch.linspace(-1, 1, count * 3).reshape(count, 3).sin() + shift


SAMPLES = [(points(rows, 0.0), points(others, 2.0)) for rows, others in ((4, 5), (7, 2), (1, 3))]
COUNTS = ({0: "rows"}, {0: "others"})


def breaks() -> Claim:
    return export("dynamo", Distances(), SAMPLES[0], dynamic_shapes=COUNTS), Distances(), SAMPLES


class ByHand(nn.Module):
    def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return (x[:, None] - y[None]).pow(2).sum(-1).sqrt()


def by_hand() -> Claim:
    """Write the computation with supported operators. This version stores all differences at the same time, which needs memory."""
    return export("dynamo", ByHand(), SAMPLES[0], dynamic_shapes=COUNTS), Distances(), SAMPLES


def distances(x: Any, y: Any, p: float, compute_mode: int | None = None) -> Any:
    from onnxscript import opset18 as op

    squares = op.ReduceSumSquare(op.Sub(op.Unsqueeze(x, [1]), op.Unsqueeze(y, [0])), [-1], keepdims=False)
    return op.Sqrt(squares)


def translated() -> Claim:
    """Pass a translation in `custom_translation_table`. The key is the operator that the message names. Check that the translation is
    right: this one is for `p=2` only.
    """
    table = {torch.ops.aten._cdist_forward.default: distances}
    made = export("dynamo", Distances(), SAMPLES[0], dynamic_shapes=COUNTS, custom_translation_table=table)
    return made, Distances(), SAMPLES


def to_onnx() -> Claim:
    """Use `to_onnx`. It has a translation for `cdist`."""
    return export("to_onnx", Distances(), SAMPLES[0], dynamic_shapes=COUNTS), Distances(), SAMPLES


def torchscript() -> Claim:
    """Use the legacy exporter (`dynamo=False`). It translates operators that the default doesn't, such as `cdist` and `masked_select`."""
    return export("torchscript", Distances(), SAMPLES[0], dynamic_shapes=COUNTS), Distances(), SAMPLES


ERROR = KnownError(
    stage="translation",
    message=r"No ONNX function found for <OpOverload\(op='(aten|prims)\.\w+', overload='\w+'\)>\. Failure message: .*? for the real-valued",
    breaks=breaks,
    fixes=(
        Fix("change the model", by_hand),
        Fix("change the call", translated),
        Fix("another exporter", to_onnx),
        Fix("another exporter", torchscript),
    ),
    threads=("microsoft/onnxscript#1647", "pytorch/pytorch#69201", "pytorch/pytorch#194382"),
    kin=r"No ONNX function found|cannot export ",
    advice="give the operator a translation: custom_translation_table={operator: function}",
)
