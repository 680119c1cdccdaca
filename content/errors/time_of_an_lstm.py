"""FrozenDimension: "time" was asked to be dynamic but is the constant 6: sequence length of nn.LSTM or nn.GRU

torch.export decomposes an LSTM into its steps, in Python, so the number of steps in the example becomes fixed.
`to_onnx(capture="torch.export")` raises this error. torch.export itself reports that your code specialised the dimension.
`torch.onnx.export` replaces the decomposition with one that loops in the graph, so the sequence length stays dynamic.
"""

import torch
from torch import nn
from torch._higher_order_ops.scan import scan
from torch.nn.functional import linear

from exportlab.errors.known import Claim, Fix, KnownError
from exportlab.exporters import export


class Recurrent(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.lstm = nn.LSTM(3, 5, batch_first=True)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.lstm(x)[0]


SAMPLES = [(torch.linspace(-1, 1, rows * time * 3).reshape(rows, time, 3),) for rows, time in ((4, 6), (3, 9), (2, 1))]
MOVING = ({0: "rows", 1: "time"},)


def breaks() -> Claim:
    return export("to_onnx", Recurrent(), SAMPLES[0], dynamic_shapes=MOVING, capture="torch.export"), Recurrent(), SAMPLES


class Scanned(Recurrent):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        w_x, w_h, b_x, b_h = self.lstm.all_weights[0]

        def step(state: tuple[torch.Tensor, torch.Tensor], row: torch.Tensor) -> tuple[tuple[torch.Tensor, torch.Tensor], torch.Tensor]:
            h, c = state
            i, f, g, o = (linear(row, w_x, b_x) + linear(h, w_h, b_h)).chunk(4, dim=1)
            c = f.sigmoid() * c + i.sigmoid() * g.tanh()
            h = o.sigmoid() * c.tanh()
            return (h, c), h.clone()

        start = x.new_zeros(x.shape[0], self.lstm.hidden_size)
        _, outputs = scan(step, (start, start.clone()), x.transpose(0, 1))
        return outputs.transpose(0, 1)


def scanned() -> Claim:
    """Write one step and repeat it with `scan`, using the weights of the LSTM. It becomes a `Scan` or a `Loop` for any length."""
    return export("to_onnx", Scanned(), SAMPLES[0], dynamic_shapes=MOVING), Recurrent(), SAMPLES


def torch_onnx() -> Claim:
    """Use `torch.onnx.export`. It writes an `LSTM` for any length. If this process captured such a layer before, clear PyTorch's cache
    first.
    """
    torch.ops.aten.lstm.input._dispatch_cache.clear()
    return export("dynamo", Recurrent(), SAMPLES[0], dynamic_shapes=MOVING), Recurrent(), SAMPLES


def to_onnx() -> Claim:
    """Use `to_onnx` with its default capture. It keeps the LSTM whole and writes an ONNX `LSTM`."""
    return export("to_onnx", Recurrent(), SAMPLES[0], dynamic_shapes=MOVING), Recurrent(), SAMPLES


def torchscript() -> Claim:
    """Use the legacy exporter (`dynamo=False`). It keeps the LSTM whole too."""
    return export("torchscript", Recurrent(), SAMPLES[0], dynamic_shapes=MOVING), Recurrent(), SAMPLES


ERROR = KnownError(
    stage="capture",
    message=r"FrozenDimension: [^\n]* was asked to be dynamic but is the constant \d+ after [^\n]*accept_ranges=",
    breaks=breaks,
    op="lstm|gru|rnn|LSTM|GRU|RNN",
    fixes=(
        Fix("change the model", scanned),
        Fix("another exporter", torch_onnx),
        Fix("another exporter", to_onnx),
        Fix("another exporter", torchscript),
    ),
    threads=("pytorch/pytorch#126339", "pytorch/executorch#5176", "pytorch/pytorch#191855"),
)
