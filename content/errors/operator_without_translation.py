"""DispatchError: No ONNX function found for OpOverload(op='aten._cdist_forward'): the official exporter has no translation for an operator

The exporter first replaces the operators that have a decomposition by simpler ones, then looks each of the rest up in a table of
translations. One that is in neither ends the export. The name in the message is what the decompositions left: you called `torch.cdist`,
and it says `aten._cdist_forward`. A missing `median`, `searchsorted`, `cummax`, `lgamma`, `masked_select` or `linalg.inv` looks the same.
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
    """Write it with operators that have a translation. This one holds all differences at once, which costs memory."""
    return export("dynamo", ByHand(), SAMPLES[0], dynamic_shapes=COUNTS), Distances(), SAMPLES


def distances(x: Any, y: Any, p: float, compute_mode: int | None = None) -> Any:
    from onnxscript import opset18 as op

    squares = op.ReduceSumSquare(op.Sub(op.Unsqueeze(x, [1]), op.Unsqueeze(y, [0])), [-1], keepdims=False)
    return op.Sqrt(squares)


def translated() -> Claim:
    """Say it in ONNX, and hand that over for the name in the message. That it is right (here: for `p=2` only) is yours to know."""
    table = {torch.ops.aten._cdist_forward.default: distances}
    made = export("dynamo", Distances(), SAMPLES[0], dynamic_shapes=COUNTS, custom_translation_table=table)
    return made, Distances(), SAMPLES


def to_onnx() -> Claim:
    """`to_onnx` has a translation for `cdist`."""
    return export("to_onnx", Distances(), SAMPLES[0], dynamic_shapes=COUNTS), Distances(), SAMPLES


def torchscript() -> Claim:
    """The older exporter has translations that the newer lacks: `cdist`, `masked_select` and others."""
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
