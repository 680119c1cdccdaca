"""MutationError: the model changes a buffer, and an ONNX model keeps no state between calls

A counter, a running mean or a KV cache writes to a buffer, as in `self.seen.add_(…)`, and the next call reads the new value. An ONNX model
is a function of its inputs and doesn't keep state between calls. `to_onnx` raises this error. `torch.onnx.export` writes a model that
computes each call like the first one. The caller has to keep the state and pass it as an input and an output.
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
    """Pass the state as an input and return it as an output. The caller keeps it. This works with all exporters and runtimes."""
    samples = [(x, torch.arange(3.0)) for (x,) in SAMPLES]
    return export("dynamo", StateGiven(), samples[0], dynamic_shapes=(*ROWS, None)), StateGiven(), samples


def further_output() -> Claim:
    """Pass `mutations="outputs"` to `to_onnx`. The buffer becomes an input, and its new value an output named after it. The model doesn't
    change.
    """
    return export("to_onnx", Summing(), SAMPLES[0], dynamic_shapes=ROWS, mutations="outputs"), Summing(), SAMPLES


ERROR = KnownError(
    stage="translation",
    message=r"MutationError: the model changes .*, and (?:a file|an ONNX model) keeps no state between calls",
    breaks=breaks,
    fixes=(Fix("change the model", given_and_returned), Fix("change the call", further_output)),
    threads=("pytorch/pytorch#135233", "pytorch/pytorch#114406"),
    kin=r"keeps no state between calls",
    advice='return the new state as an output; or use to_onnx(…, mutations="outputs")',
)
