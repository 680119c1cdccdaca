"""What the model keeps in `self` between two calls is lost: a cache built with `torch.cat` starts over

An attribute that is no buffer belongs to Python. The capture runs the model once: it sees the cache of that one call, empty, and what is
assigned afterwards is nobody's output. torch.export loses it in the same way.
"""

import torch
from torch import nn

from exportlab.errors.known import Claim, Fix, KnownError
from exportlab.exporters import export


class Remembering(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.seen: torch.Tensor | None = None

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.seen = x if self.seen is None else torch.cat([self.seen, x])
        return self.seen


SAMPLES = [(torch.ones(rows, 3),) for rows in (4, 7, 1)]
ROWS = ({0: "rows"},)


def breaks() -> Claim:
    return export("dynamo", Remembering(), SAMPLES[0], dynamic_shapes=ROWS), Remembering(), SAMPLES


class InAndOut(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.model = Remembering()

    def forward(self, x: torch.Tensor, seen: torch.Tensor) -> torch.Tensor:
        self.model.seen = seen
        found = self.model(x)
        self.model.seen = None
        return found


def in_and_out() -> Claim:
    """Make the cache an argument and a result: wrapped like this, the model is left as it is. An empty one has size 0."""
    samples = [(x, torch.zeros(rows, 3)) for rows, (x,) in zip((2, 4, 0), SAMPLES, strict=True)]
    shapes = ({0: "rows"}, {0: "seen"})
    return export("dynamo", InAndOut(), samples[0], dynamic_shapes=shapes), InAndOut(), samples


ERROR = KnownError(
    stage="silent",
    message=r"^called twice: output\S*: shape \[[\d, ]+\] where eager has",
    check="called twice",
    breaks=breaks,
    fixes=(Fix("change the model", in_and_out),),
    threads=("pytorch/pytorch#130820", "pytorch/pytorch#135233"),
    kin=r"is mutated in the forward method",
    advice="register the tensor as a buffer: self.register_buffer(…)",
)
