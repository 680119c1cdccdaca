"""Recurrent layers and loops over time, mostly with dynamic time. `scan` and `while_loop` are in loops."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn.utils import rnn

from exportlab.cases import Declaration, case
from exportlab.specs import flags, integers, tensor


@case(dims={"batch": (2, 5, 1, 3), "time": (6, 9, 1, 4)}, topics=("recurrent", "layers"))
def lstm_bidirectional() -> Declaration:
    """Two bidirectional layers, batch first: do outputs and both states follow another length?"""
    return nn.LSTM(4, 5, num_layers=2, bidirectional=True, batch_first=True), (tensor("batch", "time", 4),)


@case(dims={"batch": (2, 5, 1, 3)}, topics=("recurrent", "layers"))
def lstm_of_fixed_length() -> Declaration:
    """The same with static time: is there one operator per layer, or one per step?"""
    return nn.LSTM(4, 5, num_layers=2, bidirectional=True, batch_first=True), (tensor("batch", 6, 4),)


@case(dims={"time": (6, 9, 1, 4), "batch": (2, 5, 1, 3)}, topics=("recurrent", "layers"))
def gru_time_first() -> Declaration:
    """A GRU with time first: are the axes of input and state right?"""
    return nn.GRU(4, 5), (tensor("time", "batch", 4),)


@case(dims={"batch": (2, 5, 1, 3)}, topics=("recurrent", "layers"))
def rnn_with_relu() -> Declaration:
    """A plain RNN with ReLU and without bias: is the activation right?"""
    return nn.RNN(4, 5, num_layers=2, nonlinearity="relu", bias=False, dropout=0.5), (tensor(6, "batch", 4),)


@case(dims={"batch": (2, 5, 1, 3), "time": (6, 9, 1, 4)}, topics=("recurrent", "state"))
def lstm_state_in_and_out() -> Declaration:
    """State as input and output, so that a caller can continue: are both in the exported model?"""
    state = (tensor(2, "batch", 5), tensor(2, "batch", 5))
    return nn.LSTM(4, 5, num_layers=2, batch_first=True), (tensor("batch", "time", 4), state)


@case(dims={"batch": (2, 5, 1, 3)}, topics=("recurrent", "state"))
def gru_bidirectional_with_state() -> Declaration:
    """Four initial states, for two directions of two layers: does each reach its layer and direction?"""
    return nn.GRU(4, 5, num_layers=2, bidirectional=True, batch_first=True), (tensor("batch", 6, 4), tensor(4, "batch", 5))


@case(dims={"batch": (2, 5, 1, 3)}, topics=("recurrent", "layers"))
def lstm_projected() -> Declaration:
    """An LSTM with projections, whose states have different sizes: is there an operator for it?"""
    return nn.LSTM(4, 6, proj_size=3, batch_first=True), (tensor("batch", 6, 4),)


@case(dims={"time": (6, 9, 1, 4)}, topics=("recurrent", "layers"))
def lstm_unbatched() -> Declaration:
    """A sequence without a batch axis: do the results have no batch axis either?"""
    return nn.LSTM(4, 5, bidirectional=True), (tensor("time", 4),)


@case(dims={"batch": (2, 5, 1, 3), "time": (6, 9, 1, 4)}, topics=("recurrent", "dynamic shapes"))
def state_made_in_forward() -> Declaration:
    """The first state is zeros of size `x.shape[0]`, the last step is returned: does it follow the batch?"""

    class LastStep(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.gru, self.head = nn.GRU(4, 5, num_layers=2, batch_first=True), nn.Linear(5, 3)

        def forward(self, x: Tensor) -> Tensor:
            y, _ = self.gru(x, torch.zeros(2, x.shape[0], 5, dtype=x.dtype))
            return self.head(y[:, -1])

    return LastStep(), (tensor("batch", "time", 4),)


@case(dims={"batch": (2, 5, 1, 3)}, topics=("recurrent", "state", "mutation", "silence"))
def state_kept_in_buffers() -> Declaration:
    """The state of the last call is a buffer: does an exported model continue from it?"""

    class Streaming(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.cell = nn.GRUCell(4, 5)
            self.register_buffer("state", torch.zeros(1, 5))

        def forward(self, x: Tensor) -> Tensor:
            made = self.cell(x, self.state.expand(x.shape[0], -1))
            self.state.copy_(made[:1].detach())
            return made

    return Streaming(), (tensor("batch", 4),)


@case(dims={"batch": (3, 5, 1, 2)}, topics=("recurrent", "state"))
def cells_of_one_step() -> Declaration:
    """One step of three stacked cells with their states, for use in a caller's own loop."""

    class Step(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.lstm, self.gru, self.rnn = nn.LSTMCell(4, 5), nn.GRUCell(5, 5), nn.RNNCell(5, 5)

        def forward(self, x: Tensor, h: Tensor, c: Tensor) -> tuple[Tensor, Tensor, Tensor]:
            h, c = self.lstm(x, (h, c))
            return self.rnn(self.gru(h)), h, c

    return Step(), (tensor("batch", 4), tensor("batch", 5), tensor("batch", 5))


@case(dims={"batch": (2, 5, 1, 3), "time": (6, 9, 1, 4)}, topics=("recurrent", "loops", "silence"))
def lstm_cell_loop() -> Declaration:
    """A cell in a Python loop over dynamic time: is the length of the example specialised?"""

    class CellLoop(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.cell = nn.LSTMCell(4, 5)

        def forward(self, x: Tensor) -> Tensor:
            h = c = x.new_zeros(x.shape[1], 5)
            steps = []
            for row in x:
                h, c = self.cell(row, (h, c))
                steps.append(h)
            return torch.stack(steps)

    return CellLoop(), (tensor("time", "batch", 4),)


@case(dims={"batch": (2, 5, 1, 3)}, topics=("recurrent", "loops"))
def gru_by_hand() -> Declaration:
    """A GRU written out with gates over static time: is the loop unrolled, and are weights stored once?"""

    class ByHand(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.gates, self.made = nn.Linear(9, 10), nn.Linear(9, 5)

        def forward(self, x: Tensor) -> Tensor:
            h = torch.zeros(x.shape[0], 5)
            for row in x.unbind(1):
                reset, update = torch.sigmoid(self.gates(torch.cat([row, h], -1))).chunk(2, -1)
                h = torch.lerp(torch.tanh(self.made(torch.cat([row, reset * h], -1))), h, update)
            return h

    return ByHand(), (tensor("batch", 6, 4),)


@case(dims={"batch": (2, 5, 1, 3), "time": (6, 9, 1, 4)}, topics=("recurrent", "silence"))
def bidirectional_by_flip() -> Declaration:
    """The reverse direction as `lstm(x.flip(1)).flip(1)` with a mask: does it work at another length?"""

    class ByFlip(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.forwards, self.backwards = nn.LSTM(4, 5, batch_first=True), nn.LSTM(4, 5, batch_first=True)

        def forward(self, x: Tensor, mask: Tensor) -> Tensor:
            ahead, back = self.forwards(x)[0], self.backwards(x.flip(1))[0].flip(1)
            both = torch.cat([ahead, back], dim=-1)
            return both * mask.unsqueeze(-1).expand_as(both)

    return ByFlip(), (tensor("batch", "time", 4), flags("batch", "time"))


@case(dims={"batch": (3, 5, 1, 2), "time": (6, 9, 1, 4)}, topics=("recurrent", "indexing"))
def last_step_by_length() -> Declaration:
    """The output at the last step of each sequence, with lengths as input: is it gathered at run time?"""

    class ByLength(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.lstm = nn.LSTM(4, 5, batch_first=True)

        def forward(self, x: Tensor, lengths: Tensor) -> Tensor:
            y, _ = self.lstm(x)
            last = lengths.clamp(max=x.shape[1]) - 1
            return y[torch.arange(x.shape[0]), last]

    return ByLength(), (tensor("batch", "time", 4), integers("batch", low=1, high=6))


@case(dims={"batch": (3, 5, 1, 2), "time": (6, 9, 1, 4)}, topics=("recurrent", "data-dependent"))
def packed_sequence() -> Declaration:
    """Sequences of different lengths are packed and padded again: are the current lengths used?"""

    class Packed(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.lstm = nn.LSTM(4, 5, bidirectional=True, batch_first=True)

        def forward(self, x: Tensor, lengths: Tensor) -> tuple[Tensor, Tensor]:
            kept = lengths.clamp(max=x.shape[1])
            packed = rnn.pack_padded_sequence(x, kept, batch_first=True, enforce_sorted=False)
            y, (h, _) = self.lstm(packed)
            return rnn.pad_packed_sequence(y, batch_first=True, total_length=x.shape[1])[0], h

    return Packed(), (tensor("batch", "time", 4), integers("batch", low=1, high=7))


@case(dims={"batch": (2, 5, 1, 3), "time": (6, 9, 1, 4)}, topics=("recurrent", "layers"))
def speech_encoder() -> Declaration:
    """Convolutions halve dynamic time, and a GRU reads the result: do both agree on the length?"""

    class Encoder(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.conv, self.gru = nn.Conv1d(4, 6, 3, stride=2, padding=1), nn.GRU(6, 5, batch_first=True, bidirectional=True)

        def forward(self, x: Tensor) -> Tensor:
            short = self.conv(x.transpose(1, 2)).relu().transpose(1, 2)
            return self.gru(short)[0].log_softmax(-1)

    return Encoder(), (tensor("batch", "time", 4),)
