"""TypeError: missing a required argument, though it was given: a dict as the last argument of `torch.onnx.export`

`torch.onnx.export` has an old rule: a dict that stands last among `args` holds keyword arguments. So it unpacks yours, passes what it finds
by name, and `forward` misses the argument that the dict was. Where the keys happen to be names of parameters, nothing is raised, and
the model is exported for another call than yours.
"""

import torch
from torch import nn

from exportlab.errors.known import Claim, Fix, KnownError
from exportlab.exporters import export


class Moved(nn.Module):
    def forward(self, x: torch.Tensor, by: dict[str, torch.Tensor]) -> torch.Tensor:
        return x * by["scale"] + by["shift"]


def inputs(rows: int) -> tuple[torch.Tensor, dict[str, torch.Tensor]]:
    x = torch.linspace(-1, 1, rows * 3).reshape(rows, 3)
    return x, {"scale": torch.arange(3.0), "shift": x.flip(1)}


SAMPLES = [inputs(4), inputs(7), inputs(1)]
SHAPES = {"x": {0: "rows"}, "by": {"scale": None, "shift": {0: "rows"}}}


def breaks() -> Claim:
    return export("dynamo", Moved(), SAMPLES[0], dynamic_shapes=SHAPES), Moved(), SAMPLES


def by_name() -> Claim:
    """Pass the dict by name, in `kwargs`."""
    x, by = inputs(4)
    return export("dynamo", Moved(), (), {"x": x, "by": by}, dynamic_shapes=SHAPES), Moved(), [{"x": x, "by": by} for x, by in SAMPLES]


def empty_dict_behind() -> Claim:
    """Put an empty dict behind it: then that one holds the keyword arguments, none."""
    return torch.onnx.export(Moved(), (*inputs(4), {}), dynamic_shapes=SHAPES, dynamo=True, verbose=False), Moved(), SAMPLES


def to_onnx() -> Claim:
    """`to_onnx` leaves a dict what it is. So does `torch.export`."""
    return export("to_onnx", Moved(), SAMPLES[0], dynamic_shapes=SHAPES), Moved(), SAMPLES


ERROR = KnownError(
    stage="capture",
    message=r"TypeError: missing a required argument: '\w+'",
    breaks=breaks,
    fixes=(Fix("change the call", by_name), Fix("change the call", empty_dict_behind), Fix("another exporter", to_onnx)),
    threads=("pytorch/pytorch#47367", "pytorch/pytorch#110439"),
)
