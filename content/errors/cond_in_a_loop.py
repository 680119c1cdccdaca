"""ValueError: Opset mismatch when inlining function 'pkg.torch.__subgraph__::while_loop_body_graph_0': `cond` inside `while_loop`

`torch.onnx.export` writes loop bodies and the branches of `cond` as functions in the domain `pkg.torch.__subgraph__`, and inlines them at
the end. A function that calls another one has to import a version of that domain. The loop body and the model import different versions, so
the inliner raises this error.
"""

import torch
from torch import nn
from torch._higher_order_ops import while_loop

from exportlab.errors.known import Claim, Fix, KnownError
from exportlab.exporters import export

Turn = tuple[torch.Tensor, torch.Tensor]


class Turned(nn.Module):
    def turn(self, i: torch.Tensor, x: torch.Tensor) -> Turn:
        return i + 1, torch.cond(x.sum() > 0, lambda x: x - 1, lambda x: x * 0.5 + 1, (x,))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return while_loop(lambda i, x: i < 6, self.turn, (torch.zeros((), dtype=torch.int64), x))[1]


SAMPLES = [(torch.linspace(-1, 2, rows * 3).reshape(rows, 3),) for rows in (4, 7, 1, 0)]
ROWS = ({0: "rows"},)


def breaks() -> Claim:
    return export("dynamo", Turned(), SAMPLES[0], dynamic_shapes=ROWS), Turned(), SAMPLES


class ByWhere(Turned):
    def turn(self, i: torch.Tensor, x: torch.Tensor) -> Turn:
        return i + 1, torch.where(x.sum() > 0, x - 1, x * 0.5 + 1)


def where() -> Claim:
    """Use `torch.where` inside the loop. Each iteration then computes both branches."""
    return export("dynamo", ByWhere(), SAMPLES[0], dynamic_shapes=ROWS), Turned(), SAMPLES


def to_onnx() -> Claim:
    """Use `to_onnx`. It writes loop bodies and branches as subgraphs of `Loop` and `If`, without functions."""
    return export("to_onnx", Turned(), SAMPLES[0], dynamic_shapes=ROWS), Turned(), SAMPLES


ERROR = KnownError(
    stage="translation",
    message=r"Opset mismatch when inlining function 'pkg\.torch\.__subgraph__::\w+'",
    breaks=breaks,
    fixes=(Fix("change the model", where), Fix("another exporter", to_onnx)),
)
