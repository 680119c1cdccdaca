"""conflicts between user-specified ranges and inferred ranges: an LSTM or GRU exports the first time, but not the second

The exporter registers a decomposition of `aten.lstm` that loops in the graph, for as long as it captures, so that the time can move. torch
keeps in a cache which kernel an operator has, and registering does not clear it. A capture of such a layer before, be it that of the export
before this one, has left the usual kernel there, which loops in Python. So the first export in a process gives an `LSTM`, and the next one
finds the length of the example.
"""

import torch
from torch import nn

from exportlab.errors.known import Claim, Fix, KnownError
from exportlab.exporters import export


class Recurrent(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.lstm = nn.LSTM(3, 2, batch_first=True)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.lstm(x)[0]


SAMPLES = [(torch.arange(6.0 * steps).reshape(2, steps, 3).sin(),) for steps in (6, 9, 1)]
STEPS = ({1: "steps"},)


def breaks() -> Claim:
    export("dynamo", Recurrent(), SAMPLES[0], dynamic_shapes=STEPS)
    return export("dynamo", Recurrent(), SAMPLES[0], dynamic_shapes=STEPS), Recurrent(), SAMPLES


def cleared() -> Claim:
    """Clear the cache before each export: `torch.ops.aten.lstm.input._dispatch_cache.clear()`, and `aten.gru.input` for a GRU."""
    torch.ops.aten.lstm.input._dispatch_cache.clear()
    return export("dynamo", Recurrent(), SAMPLES[0], dynamic_shapes=STEPS), Recurrent(), SAMPLES


def torchscript() -> Claim:
    """The older exporter, `dynamo=False`, writes ONNX's `LSTM` every time."""
    return export("torchscript", Recurrent(), SAMPLES[0], dynamic_shapes=STEPS), Recurrent(), SAMPLES


ERROR = KnownError(
    stage="capture",
    message=r"user-specified ranges and inferred ranges [^\n]*\n[^\n]* static shape of \d+ for dimension [^\n]*\.shape\[1\]",
    breaks=breaks,
    op="lstm|gru|rnn|LSTM|GRU|RNN",
    fixes=(Fix("change the call", cleared), Fix("another exporter", torchscript)),
    threads=("pytorch/pytorch#193192", "pytorch/pytorch#191855"),
)
