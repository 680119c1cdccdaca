"""INVALID_ARGUMENT: Invalid input name: mask: an argument that the model doesn't use, with `dynamo=False`

The legacy exporter (`dynamo=False`) keeps only inputs that a node reads. It removes an unused argument and its name in `input_names`. The
other names keep their inputs. ONNX Runtime rejects a feed with the removed name.
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
    """Leave the argument out of the export and the feed. `session.get_inputs()` lists the inputs of the model."""
    samples = [(x,) for x, _ in SAMPLES]
    return export("torchscript", WithoutMask(), samples[0], dynamic_shapes=ROWS[:1]), WithoutMask(), samples


def dynamo() -> Claim:
    """Use `dynamo=True`. It keeps all tensors as inputs, including unused ones."""
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
