"""ValueError: Initializer 'val_0' is already registered, but it is not the same object: a weight or buffer is named `val_0`

`torch.onnx.export` names intermediate values `val_0`, `val_1` and so on. Weights and buffers keep their names from the model. If one of
them has such a name, two values in the graph have the same name. The error appears when the optimiser turns a constant into a weight and
registers it under its name.
"""

import torch
from torch import nn

from exportlab.errors.known import Claim, Fix, KnownError
from exportlab.exporters import export


class Shifted(nn.Module):
    def __init__(self, *names: str) -> None:
        super().__init__()
        for i, name in enumerate(names):
            self.register_buffer(name, torch.full((3,), float(i)))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        for shift in self.buffers():
            x = x.roll(1, 1)[:, -3:] * 2 + shift
        return x


NAMES = [f"val_{i}" for i in range(5)]
SAMPLES = [(torch.linspace(-1, 1, rows * 3).reshape(rows, 3),) for rows in (4, 7, 1, 0)]
ROWS = ({0: "rows"},)


def breaks() -> Claim:
    return export("dynamo", Shifted(*NAMES), SAMPLES[0], dynamic_shapes=ROWS), Shifted(*NAMES), SAMPLES


def renamed() -> Claim:
    """Rename the weights and buffers. If you load a checkpoint saved under the old names, rename its keys too."""
    other = Shifted(*(f"shift_{i}" for i in range(5)))
    return export("dynamo", other, SAMPLES[0], dynamic_shapes=ROWS), Shifted(*NAMES), SAMPLES


class Held(nn.Module):
    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.model(x)


def held() -> Claim:
    """Export a wrapper module that contains the model. Every name then has the path as a prefix: `model.val_3`."""
    return export("dynamo", Held(Shifted(*NAMES)), SAMPLES[0], dynamic_shapes=ROWS), Shifted(*NAMES), SAMPLES


def to_onnx() -> Claim:
    """Use `to_onnx`. It gives every value a different name."""
    return export("to_onnx", Shifted(*NAMES), SAMPLES[0], dynamic_shapes=ROWS), Shifted(*NAMES), SAMPLES


ERROR = KnownError(
    stage="optimiser",
    message=r"Initializer 'val_\d+' is already registered, but it is not the same object",
    breaks=breaks,
    fixes=(Fix("change the model", renamed), Fix("change the model", held), Fix("another exporter", to_onnx)),
    threads=("pytorch/pytorch#168211",),
)
