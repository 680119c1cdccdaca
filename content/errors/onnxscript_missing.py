"""ModuleNotFoundError: No module named 'onnxscript', raised by `torch.onnx.export`: PyTorch doesn't install this package

`torch.onnx.export` needs the package onnxscript to write ONNX operators, but it isn't a dependency of torch. The legacy exporter
(`dynamo=False`) doesn't need it. The code below starts a Python process that can't import the package.
"""

import subprocess
import sys

import torch
from torch import nn

from exportlab.errors.known import Claim, Fix, KnownError
from exportlab.exporters import export

WITHOUT = """
import sys, torch

class Hidden:
    def find_spec(self, name, path=None, target=None):
        if name == "onnxscript":
            raise ModuleNotFoundError("No module named 'onnxscript'")

sys.meta_path.insert(0, Hidden())
torch.onnx.export(torch.nn.Linear(3, 2), (torch.ones(4, 3),))
"""
torch.manual_seed(0)
MODEL = nn.Linear(3, 2)
SAMPLES = [(torch.linspace(-1, 1, rows * 3).reshape(rows, 3),) for rows in (4, 7, 1)]
ROWS = ({0: "rows"},)


def breaks() -> Claim:
    done = subprocess.run([sys.executable, "-c", WITHOUT], capture_output=True, text=True, check=False)
    raise ModuleNotFoundError(done.stderr.strip().splitlines()[-1].partition(": ")[2])


def installed() -> Claim:
    """Install the package with `pip install onnxscript`. Nothing else changes."""
    return export("dynamo", MODEL, SAMPLES[0], dynamic_shapes=ROWS), MODEL, SAMPLES


def older() -> Claim:
    """Use the legacy exporter (`dynamo=False`) if you can't install packages. It traces the model, which can lose branches and loops
    without an exception.
    """
    return export("torchscript", MODEL, SAMPLES[0], dynamic_shapes=ROWS), MODEL, SAMPLES


ERROR = KnownError(
    stage="translation",
    message=r"No module named '?onnxscript'?",
    breaks=breaks,
    fixes=(Fix("change the call", installed), Fix("another exporter", older)),
    threads=("pytorch/pytorch#103764", "ultralytics/ultralytics#20348"),
)
