"""Found <class '…'> in output, which is not a known type: `forward` returns an object of your own class

The outputs of a graph are tensors. torch.export flattens tuples, lists and dicts, but not your own classes unless you register them. An
argument of such a class fails for the same reason, with a different message.
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
    """Export a wrapper module that returns a dict or a tuple. The ONNX model returns tensors in any case."""
    return export("dynamo", AsDict(Measured()), SAMPLES[0], dynamic_shapes=ROWS), AsDict(Measured()), SAMPLES


def registered() -> Claim:
    """Register the class with `torch.export.register_dataclass`. In Python, the exported model then returns an object of this class."""

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
