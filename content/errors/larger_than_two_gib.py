"""The 2 GiB limit of protobuf: a model with large weights does not fit into one file

An `.onnx` file is one protobuf message, and a message ends at 2 GiB: 536,870,911 weights of four bytes. `to_onnx` says so before it writes.
Other writers find out while they write, in words of their own: "The serialized model is larger than the 2GiB limit", "exceeds maximum
protobuf size of 2GB", or no more than "Failed to serialize proto". Above the limit the weights stand in a second file beside the first.
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
    """Exports, and writes the file into a folder."""
    model = Embedding(words)
    program = to_onnx(model, SAMPLES[0], dynamic_shapes=({0: "ids"},))
    with tempfile.TemporaryDirectory() as folder:
        program.save(Path(folder) / "model.onnx", **options)
        return from_file(Path(folder) / "model.onnx", SAMPLES[0], {}, model(*SAMPLES[0])), model, SAMPLES


def breaks() -> Claim:
    return saved(LARGE, external_data=False)


def weights_beside() -> Claim:
    """Leave `external_data` at its default, or ask for it: large weights then go to `model.onnx.data`, which has to move with the model.

    Here the table is small, so that this page is made in seconds.
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
