"""State in `self` is lost between calls: a cache built with `torch.cat` starts empty each time

An attribute that isn't a buffer is ordinary Python state. The capture runs the model once, with an empty cache. The value that this call
assigns isn't an output of the graph, so the exported model drops it. torch.export drops it too.
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
    """Pass the cache as an input and return it as an output. With this wrapper the model doesn't change. An empty cache has size 0."""
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
