"""Expected all tensors to be on the same device, but found at least two devices: a tensor that isn't moved by `model.to(device)`

`model.to(device)` moves parameters and buffers. A tensor in an ordinary attribute or a list stays on its device, and so does one that
`forward` makes without `device=`. Eager mode fails in the same way, so run the model there first. The reproducer needs no GPU: its second
device is `meta`, whose tensors have shapes but no values.
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
    """Register the tensor as a buffer. `model.to` moves it, and `state_dict` contains it."""
    return export("dynamo", Buffered().to("cpu"), SAMPLES[0], dynamic_shapes=ROWS), Shifted("cpu"), SAMPLES


class MadeWhereTheInputIs(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x + torch.ones(3, device=x.device)


def device_of_the_input() -> Claim:
    """Pass `device=x.device` if `forward` makes the tensor."""
    return export("dynamo", MadeWhereTheInputIs(), SAMPLES[0], dynamic_shapes=ROWS), Shifted("cpu"), SAMPLES


def on_the_processor() -> Claim:
    """Move the model and the example to the CPU before the export. Call `.cpu()` on both. ONNX models don't contain devices."""
    return export("dynamo", Shifted("cpu").cpu(), SAMPLES[0], dynamic_shapes=ROWS), Shifted("cpu"), SAMPLES


ERROR = KnownError(
    stage="capture",
    message=r"Expected all tensors to be on the same device, but found at least two devices, [\w:]+ and [\w:]+!"
    r"|Tensor on device [\w:]+ is not on the expected device [\w:]+!",
    breaks=breaks,
    fixes=(Fix("change the model", buffer), Fix("change the model", device_of_the_input), Fix("change the call", on_the_processor)),
    threads=("pytorch/pytorch#102947", "pytorch/pytorch#154093", "pytorch/pytorch#72175"),
)
