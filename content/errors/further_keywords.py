"""AssertionError: Must provide a tree_name when there might be a mismatch: `dynamic_shapes` for a `forward` with `**kwargs`

`**kwargs` is one parameter that contains many inputs. `torch.export` accepts `dynamic_shapes` with a `kwargs` level and traces the model.
Afterwards it compares `dynamic_shapes` with the inputs as you passed them, and these don't have a `kwargs` level. The structures don't
match, and the assertion is raised. If you omit the `kwargs` level, an earlier check fails.
"""

from typing import Any

import torch
from torch import nn

from exportlab.errors.known import Claim, Fix, KnownError
from exportlab.exporters import export
from exportlab.patches import keywords_named


class Shifted(nn.Module):
    def forward(self, x: torch.Tensor, **kwargs: torch.Tensor) -> torch.Tensor:
        return x * kwargs["scale"] + kwargs["shift"]


def inputs(rows: int) -> dict[str, torch.Tensor]:
    x = torch.linspace(-1, 1, rows * 3).reshape(rows, 3)
    return {"x": x, "scale": torch.arange(3.0), "shift": x.flip(1)}


SAMPLES = [inputs(4), inputs(7), inputs(1)]
SHAPES: dict[str, Any] = {"x": {0: "rows"}, "kwargs": {"scale": None, "shift": {0: "rows"}}}


def breaks() -> Claim:
    return export("dynamo", Shifted(), (), SAMPLES[0], dynamic_shapes=SHAPES), Shifted(), SAMPLES


class Named(Shifted):
    def forward(self, x: torch.Tensor, scale: torch.Tensor, shift: torch.Tensor) -> torch.Tensor:
        return super().forward(x, scale=scale, shift=shift)


def named() -> Claim:
    """Replace `**kwargs` by one parameter for each input. You can do this in a subclass or a wrapper module."""
    shapes = {"x": {0: "rows"}, "scale": None, "shift": {0: "rows"}}
    return export("dynamo", Named(), (), SAMPLES[0], dynamic_shapes=shapes), Shifted(), SAMPLES


def patched() -> Claim:
    """Export within `keywords_named` if you can't change the model. It makes the same change temporarily and returns matching shapes."""
    module = Shifted()
    with keywords_named(module, (), SAMPLES[0], SHAPES) as shapes:
        return export("dynamo", module, (), SAMPLES[0], dynamic_shapes=shapes), Shifted(), SAMPLES


def to_onnx() -> Claim:
    """Use `to_onnx`. It accepts these `dynamic_shapes`."""
    return export("to_onnx", Shifted(), (), SAMPLES[0], dynamic_shapes=SHAPES), Shifted(), SAMPLES


ERROR = KnownError(
    stage="capture",
    message=r"Must provide a tree_name when there might be a mismatch",
    breaks=breaks,
    fixes=(Fix("change the model", named), Fix("patch", patched), Fix("another exporter", to_onnx)),
    threads=("pytorch/pytorch#150022", "pytorch/pytorch#150371", "pytorch/pytorch#164313"),
)
