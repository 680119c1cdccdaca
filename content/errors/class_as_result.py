"""Found <class '…'> in output, which is not a known type: `forward` returns an object of your own class

The outputs of a graph are tensors. A tuple, a list or a dict is taken apart and put together again; a class of yours is not, unless torch
has been told how. This is the same question as for an argument of such a class, asked at the other end and in other words.
"""

from dataclasses import dataclass

import torch
from torch import nn

from exportlab.errors.known import Claim, Fix, KnownError
from exportlab.exporters import export


@dataclass
class Moments:
    mean: torch.Tensor
    spread: torch.Tensor


class Measured(nn.Module):
    result: type[Moments] = Moments

    def forward(self, x: torch.Tensor) -> Moments:
        return self.result(x.mean(1), x.amax(1) - x.amin(1))


SAMPLES = [(torch.linspace(-1, 1, rows * 3).reshape(rows, 3),) for rows in (4, 7, 1)]
ROWS = ({0: "rows"},)


def breaks() -> Claim:
    return export("dynamo", Measured(), SAMPLES[0], dynamic_shapes=ROWS), Measured(), SAMPLES


class AsDict(nn.Module):
    def __init__(self, module: nn.Module) -> None:
        super().__init__()
        self.module = module

    def forward(self, x: torch.Tensor) -> dict[str, torch.Tensor]:
        return vars(self.module(x))


def as_dict() -> Claim:
    """Export a module around yours that returns a dict or a tuple. Whoever runs the file gets tensors in any case."""
    return export("dynamo", AsDict(Measured()), SAMPLES[0], dynamic_shapes=ROWS), AsDict(Measured()), SAMPLES


def registered() -> Claim:
    """Register the class: then what stands for the file in Python gives back the object."""

    @dataclass
    class KnownMoments(Moments):
        pass

    torch.export.register_dataclass(KnownMoments)
    module = Measured()
    module.result = KnownMoments
    return export("dynamo", module, SAMPLES[0], dynamic_shapes=ROWS), module, SAMPLES


ERROR = KnownError(
    stage="capture",
    message=r"Found <class '.*?'> in output, which is not a known type",
    breaks=breaks,
    fixes=(Fix("change the model", as_dict), Fix("change the call", registered)),
    threads=("pytorch/pytorch#106160", "pytorch/pytorch#109152"),
)
