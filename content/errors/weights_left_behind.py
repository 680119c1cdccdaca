"""External data path does not exist: the .onnx file was moved without its .onnx.data

If you pass a path, `torch.onnx.export` writes the weights to a second file next to the model, even if they are small. The model contains
the name of this file, and ONNX Runtime looks for it in the folder of the model. If you move or rename one file without the other, ONNX
Runtime can't load the model.
"""

import shutil
import tempfile
from pathlib import Path

import onnxruntime
import torch
from torch import nn

from exportlab.errors.known import Claim, Fix, KnownError
from exportlab.exporters import from_file


class Product(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.layer = nn.Linear(300, 2)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.layer(x)


SAMPLES = [(torch.linspace(-1, 1, 300).expand(rows, 300).contiguous(),) for rows in (4, 7, 1, 0)]
ROWS = ({0: "rows"},)


def moved(files: str, **options: bool) -> Claim:
    """Export to one folder, move these files to another, and load the model there."""
    with tempfile.TemporaryDirectory() as here, tempfile.TemporaryDirectory() as there:
        torch.onnx.export(Product(), SAMPLES[0], Path(here) / "model.onnx", dynamic_shapes=ROWS, verbose=False, **options)
        for file in Path(here).glob(files):
            shutil.move(file, there)
        onnxruntime.InferenceSession(Path(there) / "model.onnx", providers=["CPUExecutionProvider"])
        return from_file(Path(there) / "model.onnx", SAMPLES[0], {}, Product()(*SAMPLES[0])), Product(), SAMPLES


def breaks() -> Claim:
    return moved("*.onnx")


def in_one_file() -> Claim:
    """Write one file with `external_data=False`. It can't be larger than 2 GiB."""
    return moved("*.onnx", external_data=False)


def both() -> Claim:
    """Move both files, and don't rename the second one. The model contains its name. Use a separate folder for each model."""
    return moved("*")


ERROR = KnownError(
    stage="load",
    message=r"External data path does not exist: |should be stored in [^\n]+ but it doesn't exist or is not accessible",
    breaks=breaks,
    fixes=(Fix("change the call", in_one_file), Fix("change the call", both)),
    threads=("microsoft/onnxruntime#6696", "onnx/onnx#3157", "huggingface/sentence-transformers#3913"),
)
