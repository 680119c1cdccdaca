"""indices element out of data bounds: a token that is not in the vocabulary

`Gather` looks rows up in a table, and was given a number that is none of them: mostly a token of another tokenizer, or -100, which marks
what a loss ignores. PyTorch raises as well, and earlier: it refuses negative numbers too. ONNX Runtime takes -1 for the last row, without
an error.
"""

import numpy
import torch
from torch import nn

from exportlab.errors.known import Claim, Fix, KnownError
from exportlab.exporters import export


class Lookup(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.table = nn.Embedding(5, 2)

    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        return self.table(tokens)


SAMPLES = [(torch.arange(rows) % 5,) for rows in (4, 7, 1, 0)]
ROWS = ({0: "rows"},)
TOKENS = numpy.array([0, 3, 7, -100])


def breaks() -> Claim:
    exported = export("dynamo", Lookup(), SAMPLES[0], dynamic_shapes=ROWS)
    exported.session.run(None, {"tokens": TOKENS})
    return exported, Lookup(), SAMPLES


def replaced() -> Claim:
    """Look at what you feed: replace what is not in the vocabulary, before the call, by the token for that, here 0."""
    exported = export("dynamo", Lookup(), SAMPLES[0], dynamic_shapes=ROWS)
    exported.session.run(None, {"tokens": numpy.where((TOKENS >= 0) & (TOKENS < 5), TOKENS, 0)})
    return exported, Lookup(), SAMPLES


class Forgiving(Lookup):
    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        known = (tokens >= 0) & (tokens < self.table.num_embeddings)
        return super().forward(torch.where(known, tokens, 0))


def forgiving() -> Claim:
    """Or have the model replace them. It hides that somebody feeds it what it does not know."""
    exported = export("dynamo", Forgiving(), SAMPLES[0], dynamic_shapes=ROWS)
    exported.session.run(None, {"tokens": TOKENS})
    return exported, Lookup(), SAMPLES


ERROR = KnownError(
    stage="run",
    message=r"indices element out of data bounds, idx=-?\d+ must be within the inclusive range \[",
    breaks=breaks,
    fixes=(Fix("change the model", forgiving), Fix("change the call", replaced)),
    threads=("microsoft/onnxruntime#2080", "microsoft/onnxruntime#28311", "onnx/onnx#2179"),
)
