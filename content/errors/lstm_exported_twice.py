"""conflicts between user-specified ranges and inferred ranges: nn.LSTM or nn.GRU exports once, but not a second time

While it captures, `torch.onnx.export` registers a decomposition of `aten.lstm` that loops in the graph, so the time dimension stays
dynamic. PyTorch caches the kernel of each operator, and registering the decomposition doesn't clear this cache. Any earlier capture of such
a layer leaves the default kernel in the cache, and this kernel loops in Python. As a result, the first export in a process writes an ONNX
`LSTM`, but the next one specialises the sequence length.
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
    """Clear the dispatch cache before each export. Call `torch.ops.aten.lstm.input._dispatch_cache.clear()`, or use `aten.gru.input` for a
    GRU.
    """
    torch.ops.aten.lstm.input._dispatch_cache.clear()
    return export("dynamo", Recurrent(), SAMPLES[0], dynamic_shapes=STEPS), Recurrent(), SAMPLES


def torchscript() -> Claim:
    """Use the legacy exporter (`dynamo=False`). It writes an ONNX `LSTM` each time."""
    return export("torchscript", Recurrent(), SAMPLES[0], dynamic_shapes=STEPS), Recurrent(), SAMPLES


ERROR = KnownError(
    stage="capture",
    message=r"user-specified ranges and inferred ranges [^\n]*\n[^\n]* static shape of \d+ for dimension [^\n]*\.shape\[1\]",
    breaks=breaks,
    op="lstm|gru|rnn|LSTM|GRU|RNN",
    fixes=(Fix("change the call", cleared), Fix("another exporter", torchscript)),
    threads=("pytorch/pytorch#193192", "pytorch/pytorch#191855"),
)
