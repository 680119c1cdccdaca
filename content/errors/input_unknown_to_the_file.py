"""Invalid input name: mask, and input_names asked for more than the file has: an argument that the model does not use

The older exporter, `dynamo=False`, keeps the inputs that something reads. An argument that changes nothing is gone, with its name, and the
names after it stay with their own inputs. ONNX Runtime refuses a feed of that name.
"""

import torch
from torch import nn

from exportlab.errors.known import Claim, Fix, KnownError
from exportlab.exporters import export


class Doubled(nn.Module):
    def forward(self, x: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        return x * 2


SAMPLES = [(torch.ones(rows, 3), torch.ones(rows)) for rows in (4, 7, 1, 0)]
ROWS = ({0: "rows"}, {0: "rows"})


def breaks() -> Claim:
    exported = export("torchscript", Doubled(), SAMPLES[0], dynamic_shapes=ROWS)
    exported.session.run(None, {"x": SAMPLES[0][0].numpy(), "mask": SAMPLES[0][1].numpy()})
    return exported, Doubled(), SAMPLES


class WithoutMask(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.model = Doubled()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.model(x, x)


def left_out() -> Claim:
    """Leave the argument out of the export, and of what you feed: `session.get_inputs()` says what there is."""
    samples = [(x,) for x, _ in SAMPLES]
    return export("torchscript", WithoutMask(), samples[0], dynamic_shapes=ROWS[:1]), WithoutMask(), samples


def dynamo() -> Claim:
    """The newer exporter keeps every tensor that you gave as an input, read or not."""
    exported = export("dynamo", Doubled(), SAMPLES[0], dynamic_shapes=ROWS)
    exported.session.run(None, {"x": SAMPLES[0][0].numpy(), "mask": SAMPLES[0][1].numpy()})
    return exported, Doubled(), SAMPLES


ERROR = KnownError(
    stage="run",
    message=r"INVALID_ARGUMENT : Invalid (Feed Input Name|input name): ?\S+",
    breaks=breaks,
    fixes=(Fix("change the call", left_out), Fix("another exporter", dynamo)),
    threads=("pytorch/pytorch#104949", "microsoft/onnxruntime#6389", "pytorch/pytorch#95864"),
)
