"""Algorithms that mix loops, branches and selections. Single loops are in loops, single branches in branches."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from exportlab.cases import Declaration, case
from exportlab.specs import integers, tensor


@case(dims={"batch": (4, 7, 1, 0)}, topics=("branches", "growth"))
def twelve_branches() -> Declaration:
    """Twelve branches on values, one after the other: does the exported model grow with each, or double?"""

    class Branches(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layers = nn.Sequential(*(nn.Sequential(nn.Linear(3, 3), nn.Tanh()) for _ in range(4)))

        def forward(self, x: Tensor) -> Tensor:
            for step in range(12):
                if x.sum() > 0.1 * step:  # noqa: SIM108 - what users write
                    x = x * 0.5 - 0.2
                else:
                    x = (x + 0.3).sin()
            return self.layers(x)

    return Branches(), (tensor("batch", 3),)


@case(dims={"rows": (4, 6, 1, 3), "columns": (5, 7, 1, 2)}, topics=("loops", "nested"))
def time_warping() -> Declaration:
    """Dynamic time warping loops over two dynamic lengths, one inside the other: does each follow its axis?"""

    class TimeWarping(nn.Module):
        def forward(self, x: Tensor, y: Tensor) -> Tensor:
            distance = (x[:, None] - y[None]).abs()
            cost = torch.full((x.shape[0] + 1, y.shape[0] + 1), 1e6)
            cost[0, 0] = 0
            for i in range(x.shape[0]):
                for j in range(y.shape[0]):
                    before = torch.minimum(torch.minimum(cost[i, j + 1], cost[i + 1, j]), cost[i, j])
                    cost[i + 1, j + 1] = distance[i, j] + before
            return cost[-1, -1]

    return TimeWarping(), (tensor("rows"), tensor("columns"))


@case(dims={"steps": (6, 9, 1, 3)}, topics=("loops", "branches", "control flow"))
def loop_until_above() -> Declaration:
    """A loop over the steps ends with `break` once a sum of values is large: is the sum tested in each iteration?"""

    class UntilAbove(nn.Module):
        def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
            total, count = torch.zeros(3), torch.zeros((), dtype=torch.int64)
            for step in x:
                total = total + step.abs()
                count = count + 1
                if total.sum() > 6:
                    break
            return total, count

    return UntilAbove(), (tensor("steps", 3),)


@case(dims={"steps": (6, 9, 1, 3)}, topics=("loops", "branches", "control flow"))
def branch_in_a_loop() -> Declaration:
    """Each iteration of a loop over the steps takes one of two branches: is the branch decided each time?"""

    class Clipped(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.cell = nn.Linear(3, 3)

        def forward(self, x: Tensor) -> Tensor:
            state = torch.zeros(3)
            for step in x:
                state = torch.tanh(self.cell(state) + step)
                if state.sum() > 0:  # noqa: SIM108 - what users write
                    state = state * 0.5
                else:
                    state = state - 0.1
            return state

    return Clipped(), (tensor("steps", 3),)


@case(dims={"prompt": (4, 6, 1, 3)}, topics=("loops", "control flow", "generation"))
def beam_search() -> Declaration:
    """A Python `while` keeps the three best beams with `topk` until all have ended: is the search in one model?"""

    class BeamSearch(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.embedding, self.head = nn.Embedding(8, 6), nn.Linear(6, 8)

        def forward(self, prompt: Tensor) -> tuple[Tensor, Tensor]:
            states = self.embedding(prompt).mean(0).expand(3, 6)
            scores, tokens = torch.tensor([0.0, -1e4, -1e4]), torch.zeros(3, 6, dtype=torch.int64)
            last, step = prompt[-1].expand(3), torch.zeros((), dtype=torch.int64)
            while (step < 6) & (last != 0).any():
                states = torch.tanh(states * 0.5 + self.embedding(last))
                candidates = (scores[:, None] + self.head(states).log_softmax(1)).flatten()
                scores, chosen = candidates.topk(3)
                beams, last = chosen // 8, chosen % 8
                states, tokens = states[beams], torch.where(torch.arange(6) == step, last[:, None], tokens[beams])
                step = step + 1
            return tokens, scores

    return BeamSearch(), (integers("prompt", low=1, high=8),)
