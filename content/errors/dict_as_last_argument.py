"""TypeError: missing a required argument: `torch.onnx.export` with a dict as the last positional argument

`torch.onnx.export` interprets a dict at the end of `args` as keyword arguments. It unpacks your dict and passes its entries by name, so the
argument of `forward` that should be the dict is missing. If the keys happen to be parameter names, the export succeeds, but for a different
call.
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
    """Pass the dict by name in `kwargs`."""
    x, by = inputs(4)
    return export("dynamo", Moved(), (), {"x": x, "by": by}, dynamic_shapes=SHAPES), Moved(), [{"x": x, "by": by} for x, by in SAMPLES]


def empty_dict_behind() -> Claim:
    """Add an empty dict at the end of `args`. `torch.onnx.export` then reads the keyword arguments from this one."""
    return torch.onnx.export(Moved(), (*inputs(4), {}), dynamic_shapes=SHAPES, dynamo=True, verbose=False), Moved(), SAMPLES


def to_onnx() -> Claim:
    """Use `torch.export` or `to_onnx`. Both pass the dict as it is."""
    return export("to_onnx", Moved(), SAMPLES[0], dynamic_shapes=SHAPES), Moved(), SAMPLES


ERROR = KnownError(
    stage="capture",
    message=r"TypeError: missing a required argument: '\w+'",
    breaks=breaks,
    fixes=(Fix("change the call", by_name), Fix("change the call", empty_dict_behind), Fix("another exporter", to_onnx)),
    threads=("pytorch/pytorch#47367", "pytorch/pytorch#110439"),
)
