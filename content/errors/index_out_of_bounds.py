"""indices element out of data bounds: a token that is not in the vocabulary

`Gather` looks up rows of a table, and an index is outside the table. It is usually a token from another tokenizer, or -100, which marks
positions that a loss ignores. PyTorch rejects such an index too, and all negative ones. ONNX Runtime accepts -1 and returns the last row.
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
    """Replace unknown tokens before the call, here by token 0."""
    exported = export("dynamo", Lookup(), SAMPLES[0], dynamic_shapes=ROWS)
    exported.session.run(None, {"tokens": numpy.where((TOKENS >= 0) & (TOKENS < 5), TOKENS, 0)})
    return exported, Lookup(), SAMPLES


class Forgiving(Lookup):
    def forward(self, tokens: torch.Tensor) -> torch.Tensor:
        known = (tokens >= 0) & (tokens < self.table.num_embeddings)
        return super().forward(torch.where(known, tokens, 0))


def forgiving() -> Claim:
    """Replace unknown tokens in the model. Callers then don't notice that their input was wrong."""
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
