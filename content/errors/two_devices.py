"""Expected all tensors to be on the same device, but found at least two devices: a tensor that did not move with the model

`model.to(device)` moves parameters and buffers. A tensor kept as a plain attribute, in a list, or made in `forward` without `device=` stays
where it was made. Eager fails in the same way, so look there first. The model below shows it on a machine without a GPU: its second device
is `meta`, which has shapes and no values.
"""

import torch
from torch import nn

from exportlab.errors.known import Claim, Fix, KnownError
from exportlab.exporters import export


class Shifted(nn.Module):
    def __init__(self, device: str) -> None:
        super().__init__()
        self.shift = torch.ones(3, device=device)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + self.shift


SAMPLES = [(torch.linspace(-1, 1, rows * 3).reshape(rows, 3),) for rows in (4, 7, 1)]
ROWS = ({0: "rows"},)


def breaks() -> Claim:
    return export("torch.export", Shifted("meta"), SAMPLES[0], dynamic_shapes=ROWS), Shifted("cpu"), SAMPLES


class Buffered(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("shift", torch.ones(3))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + self.shift


def buffer() -> Claim:
    """Make it a buffer: it moves with the model, and it is stored with it."""
    return export("dynamo", Buffered().to("cpu"), SAMPLES[0], dynamic_shapes=ROWS), Shifted("cpu"), SAMPLES


class MadeWhereTheInputIs(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + torch.ones(3, device=x.device)


def device_of_the_input() -> Claim:
    """Say `device=x.device` where `forward` makes a tensor."""
    return export("dynamo", MadeWhereTheInputIs(), SAMPLES[0], dynamic_shapes=ROWS), Shifted("cpu"), SAMPLES


def on_the_processor() -> Claim:
    """Move everything to the processor before the export: `model.cpu()` and the example too. A file does not name devices."""
    return export("dynamo", Shifted("cpu").cpu(), SAMPLES[0], dynamic_shapes=ROWS), Shifted("cpu"), SAMPLES


ERROR = KnownError(
    stage="capture",
    message=r"Expected all tensors to be on the same device, but found at least two devices, [\w:]+ and [\w:]+!"
    r"|Tensor on device [\w:]+ is not on the expected device [\w:]+!",
    breaks=breaks,
    fixes=(Fix("change the model", buffer), Fix("change the model", device_of_the_input), Fix("change the call", on_the_processor)),
    threads=("pytorch/pytorch#102947", "pytorch/pytorch#154093", "pytorch/pytorch#72175"),
)
