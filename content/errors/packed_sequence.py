"""zeros(): argument 'size' failed to unpack the object … got FakeTensor: `pack_padded_sequence` before nn.LSTM or nn.GRU

A packed sequence stores the steps of all sequences in one tensor. A second tensor has the number of sequences that are active at each step.
The LSTM uses the first of these numbers as the size of its initial state. The capture doesn't have values, so `zeros` gets a tensor as a
size.
"""

import torch
from torch import nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from exportlab.errors.known import Claim, Fix, KnownError
from exportlab.exporters import export


class Packed(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.lstm = nn.LSTM(3, 5, batch_first=True)

    def forward(self, x: torch.Tensor, lengths: torch.Tensor) -> torch.Tensor:
        packed = pack_padded_sequence(x, lengths, batch_first=True, enforce_sorted=False)
        output, _ = self.lstm(packed)
        return pad_packed_sequence(output, batch_first=True, total_length=x.shape[1])[0]


def steps(rows: int) -> torch.Tensor:
    return torch.linspace(-1, 1, rows * 18).reshape(rows, 6, 3)


SAMPLES = [
    (steps(4), torch.tensor([6, 2, 3, 1])),
    (steps(3), torch.tensor([6, 6, 2])),
    (steps(1), torch.tensor([4])),
]
ROWS = ({0: "rows"}, {0: "rows"})


def breaks() -> Claim:
    return export("dynamo", Packed(), SAMPLES[0], dynamic_shapes=ROWS), Packed(), SAMPLES


class Masked(Packed):
    def forward(self, x: torch.Tensor, lengths: torch.Tensor) -> torch.Tensor:
        output, _ = self.lstm(x)
        alive = torch.arange(x.shape[1]) < lengths[:, None]
        return output * alive[:, :, None]


def masked() -> Claim:
    """Run the layer on the padded input and mask the output. This is right for one direction only: a backward LSTM would read the padding
    first.
    """
    return export("dynamo", Masked(), SAMPLES[0], dynamic_shapes=ROWS), Packed(), SAMPLES


def to_onnx() -> Claim:
    """Use `to_onnx`. It passes the padded tensor and the lengths to ONNX's `LSTM`, which stops at these lengths. Bidirectional LSTMs are
    right too.
    """
    return export("to_onnx", Packed(), SAMPLES[0], dynamic_shapes=ROWS), Packed(), SAMPLES


def torchscript() -> Claim:
    """Use the legacy exporter (`dynamo=False`). It supports packed sequences, and writes the same `LSTM`."""
    return export("torchscript", Packed(), SAMPLES[0], dynamic_shapes=ROWS), Packed(), SAMPLES


ERROR = KnownError(
    stage="capture",
    message=r"zeros\(\): argument 'size' failed to unpack the object at pos \d+ with error \"type must be tuple of ints,but got FakeTensor",
    breaks=breaks,
    fixes=(Fix("change the model", masked), Fix("another exporter", to_onnx), Fix("another exporter", torchscript)),
    threads=("pytorch/pytorch#171978",),
)
