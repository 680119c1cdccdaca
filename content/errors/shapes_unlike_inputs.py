"""Detected mismatch between the structure of `inputs` and `dynamic_shapes`: an argument is a list, a dict or a cache

`dynamic_shapes` needs the same structure as the arguments: a list of entries for a list of tensors, and a dict with the same keys for a
dict. A static tensor gets `None`, and so does a number. The message names the first position that differs. A registered cache is a list of
lists.
"""

import torch
from torch import nn

from exportlab.errors.known import Claim, Fix, KnownError
from exportlab.exporters import export


class Summed(nn.Module):
    def forward(self, by: dict[str, torch.Tensor], tensors: list[torch.Tensor]) -> torch.Tensor:
        return (tensors[0] + tensors[1]) * by["scale"]


def inputs(rows: int) -> tuple[dict[str, torch.Tensor], list[torch.Tensor]]:
    x = torch.linspace(-1, 1, rows * 3).reshape(rows, 3)
    return {"scale": torch.arange(3.0)}, [x, x.flip(1)]


SAMPLES = [inputs(4), inputs(7), inputs(1)]


def breaks() -> Claim:
    return export("dynamo", Summed(), SAMPLES[0], dynamic_shapes=(None, {0: "rows"})), Summed(), SAMPLES


def alike() -> Claim:
    """Write one entry for each tensor, in the same nesting as the arguments."""
    rows = {0: "rows"}
    return export("dynamo", Summed(), SAMPLES[0], dynamic_shapes=({"scale": None}, [rows, rows])), Summed(), SAMPLES


def by_tensor() -> Claim:
    """Use `torch.export.ShapesCollection`. It maps tensors to their dynamic dimensions, wherever they are in the arguments."""
    _, (x, y) = given = inputs(4)
    shapes = torch.export.ShapesCollection()
    shapes[x] = shapes[y] = {0: torch.export.Dim.DYNAMIC}
    return export("dynamo", Summed(), given, dynamic_shapes=shapes.dynamic_shapes(Summed(), given)), Summed(), SAMPLES


ERROR = KnownError(
    stage="capture",
    message=r"Detected mismatch between the structure of `inputs` and `dynamic_shapes`:",
    breaks=breaks,
    fixes=(Fix("change the call", alike), Fix("change the call", by_tensor)),
    threads=("pytorch/pytorch#132982", "pytorch/pytorch#172835"),
)
