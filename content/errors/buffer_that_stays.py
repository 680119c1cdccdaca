"""A buffer that `forward` updates stays constant in the ONNX model: every call returns what the first call returned

An ONNX model is stateless: a call can't change what the next one reads. torch.export records that the model writes to the buffer, and
returns its new value as an additional output. `torch.onnx.export` drops this output. The buffer becomes a constant with its value at
export.
"""

import torch
from torch import nn

from exportlab.errors.known import Claim, Fix, KnownError
from exportlab.exporters import export


class Counter(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("calls", torch.zeros(()))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.calls.add_(1)
        return x + self.calls


SAMPLES = [(torch.ones(rows, 3),) for rows in (4, 7, 1, 0)]
ROWS = ({0: "rows"},)


def breaks() -> Claim:
    return export("dynamo", Counter(), SAMPLES[0], dynamic_shapes=ROWS), Counter(), SAMPLES


class InAndOut(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.counter = Counter()

    def forward(self, x: torch.Tensor, calls: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        self.counter.calls = calls.clone()
        return self.counter(x), self.counter.calls


def in_and_out() -> Claim:
    """Make the state an input and an output. The model itself doesn't change if you do this in a wrapper. The caller keeps the state
    between calls.
    """
    samples = [(x, torch.full((), float(calls))) for calls, (x,) in enumerate(SAMPLES)]
    return export("dynamo", InAndOut(), samples[0], dynamic_shapes=({0: "rows"}, {})), InAndOut(), samples


def to_onnx() -> Claim:
    """Use `to_onnx` with `mutations="outputs"`. It adds an input `calls` and an output `calls_new`: pass the output of one call to the
    next.
    """
    return export("to_onnx", Counter(), SAMPLES[0], dynamic_shapes=ROWS, mutations="outputs"), Counter(), SAMPLES


ERROR = KnownError(
    stage="silent",
    message=r"^called twice: output",
    check="called twice",
    breaks=breaks,
    fixes=(Fix("change the model", in_and_out), Fix("another exporter", to_onnx)),
    threads=("pytorch/pytorch#135233",),
)
