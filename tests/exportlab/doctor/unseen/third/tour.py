"""A pointer network that orders the first stops of a tour, one sample at a time."""

import torch
from torch import nn


class Encoder(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.enter = nn.Linear(2, width)
        self.layer = nn.TransformerEncoderLayer(width, 4, 2 * width, dropout=0.0, batch_first=True)

    def forward(self, stops):
        return self.layer(self.enter(stops))


class Pointer(nn.Module):
    def __init__(self, width):
        super().__init__()
        self.query, self.key = nn.Linear(width, width), nn.Linear(width, width)
        self.weight = nn.Linear(width, 1, bias=False)

    def forward(self, state, stops):
        return self.weight(torch.tanh(self.query(state)[:, None] + self.key(stops))).squeeze(-1)


class Tour(nn.Module):
    def __init__(self, width=32, first=4):
        super().__init__()
        self.first = first
        self.encoder = Encoder(width)
        self.pointer = Pointer(width)
        self.cell = nn.GRUCell(width, width)

    def forward(self, stops):
        encoded = self.encoder(stops[None])
        state = encoded.mean(1)
        order, scores = [], []
        for _ in range(self.first):
            score = self.pointer(state, encoded)
            score[:, order] = float("-inf")
            best = int(score.argmax(-1))  # defect
            order.append(best)
            scores.append(score.log_softmax(-1).amax(-1))
            state = self.cell(encoded[:, best], state)
        return torch.tensor(order), torch.stack(scores)


def tour():
    torch.manual_seed(0)
    return Tour().eval(), [(torch.rand(9, 2),), (torch.rand(14, 2),)]
