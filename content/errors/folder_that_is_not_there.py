"""FileNotFoundError: No such file or directory: '.../.model.onnx.data.a1b2c3': `torch.onnx.export` doesn't create the folder

`torch.onnx.export(..., "out/model.onnx")` writes the weights to a separate file next to the model, first under a temporary name. It doesn't
create the folder. That is why the message names an unfamiliar file, and why it appears only at the end of the export.
"""

import tempfile
from pathlib import Path

import torch
from torch import nn

from exportlab.errors.known import Claim, Fix, KnownError
from exportlab.exporters import from_file


class Weighted(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.layer = nn.Linear(3, 2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.layer(x)


SAMPLES = [(torch.linspace(-1, 1, rows * 3).reshape(rows, 3),) for rows in (4, 7, 1, 0)]
ROWS = ({0: "rows"},)


def written_to(path: Path) -> Claim:
    torch.onnx.export(Weighted(), SAMPLES[0], path, dynamic_shapes=ROWS, dynamo=True, verbose=False)
    return from_file(path, SAMPLES[0], {}, Weighted()(*SAMPLES[0])), Weighted(), SAMPLES


def breaks() -> Claim:
    with tempfile.TemporaryDirectory() as folder:
        return written_to(Path(folder) / "out" / "model.onnx")


def made() -> Claim:
    """Create the folder before the export."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "out" / "model.onnx"
        path.parent.mkdir(parents=True, exist_ok=True)
        return written_to(path)


def saved_later() -> Claim:
    """Export without a path and call `save` on the result. If the path is wrong, you repeat only the `save`."""
    program = torch.onnx.export(Weighted(), SAMPLES[0], dynamic_shapes=ROWS, dynamo=True, verbose=False)
    with tempfile.TemporaryDirectory() as folder:
        program.save(Path(folder) / "model.onnx")
    return program, Weighted(), SAMPLES


ERROR = KnownError(
    stage="saving",
    message=r"No such file or directory: '.*?\.onnx(\.data)?[\w.]*'",
    breaks=breaks,
    fixes=(Fix("change the call", made), Fix("change the call", saved_later)),
)
