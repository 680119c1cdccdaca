"""MutationError: the model changes a buffer, and a file keeps no state between calls

A counter, a running mean, a cache for past keys and values: `self.seen.add_(…)` writes to a buffer, and the next call finds what the last
one left. An ONNX file is a function of its inputs, and cannot. `to_onnx` refuses such a model; the official exporter writes a file that
answers every call like the first. What can be done is to hand the state to the caller: an input more, and an output more.
"""

import torch
from torch import nn

from exportlab.errors.known import Claim, Fix, KnownError
from exportlab.exporters import export


class Summing(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("seen", torch.zeros(3))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.seen.add_(x.sum(0))
        return x + self.seen


SAMPLES = [(torch.linspace(-1, 2, rows * 3).reshape(rows, 3),) for rows in (4, 7, 1, 0)]
ROWS = ({0: "rows"},)


def breaks() -> Claim:
    return export("to_onnx", Summing(), SAMPLES[0], dynamic_shapes=ROWS), Summing(), SAMPLES


class StateGiven(nn.Module):
    def forward(self, x: torch.Tensor, seen: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        seen = seen + x.sum(0)
        return x + seen, seen


def given_and_returned() -> Claim:
    """Write the state as an argument and a result, and keep it outside. It works with every exporter and every runtime."""
    samples = [(x, torch.arange(3.0)) for (x,) in SAMPLES]
    return export("dynamo", StateGiven(), samples[0], dynamic_shapes=(*ROWS, None)), StateGiven(), samples


def further_output() -> Claim:
    """`mutations="outputs"` does so with the model as it is: the buffer becomes an input, its new value an output named after it."""
    return export("to_onnx", Summing(), SAMPLES[0], dynamic_shapes=ROWS, mutations="outputs"), Summing(), SAMPLES


ERROR = KnownError(
    stage="translation",
    message=r"MutationError: the model changes .*, and a file keeps no state between calls",
    breaks=breaks,
    fixes=(Fix("change the model", given_and_returned), Fix("change the call", further_output)),
    threads=("pytorch/pytorch#135233", "pytorch/pytorch#114406"),
    kin=r"keeps no state between calls",
    advice='return the new state as an output; or to_onnx(…, mutations="outputs"), which does that',
)
