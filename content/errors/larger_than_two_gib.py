"""Failed to serialize proto: the ONNX model is larger than the 2 GiB limit of protobuf

An `.onnx` file is one protobuf message, and a protobuf message can't be larger than 2 GiB. That is 536,870,911 float32 weights. `to_onnx`
checks the size before it writes. Other writers fail while they write. Their messages are "The serialized model is larger than the 2GiB
limit", "exceeds maximum protobuf size of 2GB" or "Failed to serialize proto". Above the limit, the weights have to be in a second file.
"""

import tempfile
from pathlib import Path

import torch
from torch import nn

from exportlab.errors.known import Claim, Fix, KnownError
from exportlab.exporters import from_file
from exportlab.exporters.to_onnx import to_onnx


class Embedding(nn.Module):
    def __init__(self, words: int) -> None:
        super().__init__()
        self.table = torch.linspace(-1, 1, 513).expand(words, 513)  # one row in memory, all of them in a file

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        return self.table[ids]


SAMPLES = [(torch.arange(count) % 8,) for count in (4, 7, 1)]
LARGE, SMALL = 2**20, 2**10  # words


def saved(words: int, **options: bool) -> Claim:
    """Export the model, and write it into a folder."""
    model = Embedding(words)
    program = to_onnx(model, SAMPLES[0], dynamic_shapes=({0: "ids"},))
    with tempfile.TemporaryDirectory() as folder:
        program.save(Path(folder) / "model.onnx", **options)
        return from_file(Path(folder) / "model.onnx", SAMPLES[0], {}, model(*SAMPLES[0])), model, SAMPLES


def breaks() -> Claim:
    return saved(LARGE, external_data=False)


def weights_beside() -> Claim:
    """Save the weights as external data. Leave `external_data` at its default, or pass `external_data=True`. Large weights then go to
    `model.onnx.data`, which you have to keep in the same folder as the model.

    The example uses a small table, so that this page builds in seconds.
    """
    return saved(SMALL, external_data=True)


ERROR = KnownError(
    stage="saving",
    message=r"one protobuf message, which ends at 2 GiB|larger than the 2 ?GiB limit|[Ee]xceeds? maximum protobuf size of 2GB"
    r"|EncodeError: Failed to serialize proto|protobuf of onnx model is too large",
    breaks=breaks,
    fixes=(Fix("change the call", weights_beside),),
    threads=("pytorch/pytorch#132205", "microsoft/onnxruntime#7840"),
)
