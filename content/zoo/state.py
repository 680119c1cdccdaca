"""State that a call leaves in the module for the next call. Caches and statistics of norms are elsewhere."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from exportlab.cases import Declaration, case
from exportlab.specs import integers, tensor


@case(dims={"batch": (4, 7, 1, 0)}, topics=("mutation", "attributes"))
def kept_as_attribute() -> Declaration:
    """`self.hidden = …` in forward, read only from outside: does a written attribute stop the export?"""

    class Kept(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            self.hidden = x * 2
            return self.hidden + 1

    return Kept(), (tensor("batch", 3),)


@case(dims={"batch": (4, 7, 1, 0)}, topics=("mutation", "state", "attributes", "silence"))
def attribute_of_the_last_call() -> Declaration:
    """An attribute that isn't a buffer stores the mean of the last call: which call does the export compare with?"""

    class SinceLast(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.last = torch.zeros(3)

        def forward(self, x: Tensor) -> Tensor:
            change = x - self.last
            self.last = x.sum(0)
            return change

    return SinceLast(), (tensor("batch", 3),)


@case(dims={"batch": (4, 7, 1, 0)}, topics=("mutation", "state", "silence"))
def calls_in_a_list() -> Declaration:
    """A Python list grows with each call: what does the captured graph contain?"""

    class Appending(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.sums: list[Tensor] = []

        def forward(self, x: Tensor) -> Tensor:
            self.sums.append(x.sum())
            return x + torch.stack(self.sums).sum()

    return Appending(), (tensor("batch", 3),)


@case(dims={"batch": (4, 7, 1, 0)}, topics=("mutation", "state", "silence"))
def calls_as_python_number() -> Declaration:
    """A Python integer counts the calls: which count is in the exported model?"""

    class Counted(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.calls = 0

        def forward(self, x: Tensor) -> Tensor:
            self.calls += 1
            return x * self.calls

    return Counted(), (tensor("batch", 3),)


@case(dims={"batch": (4, 7, 1, 0)}, topics=("mutation", "state", "silence"))
def cache_that_grows() -> Declaration:
    """A buffer is concatenated with the input and stored: may state change its size with each call?"""

    class Growing(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("seen", torch.zeros(1, 3))

        def forward(self, x: Tensor) -> Tensor:
            self.seen = torch.cat([self.seen, x])
            return self.seen.cumsum(0)

    return Growing(), (tensor("batch", 3),)


@case(dims={"batch": (4, 7, 1)}, topics=("mutation", "state", "silence"))
def moving_average() -> Declaration:
    """A manual running mean is updated before use: is it updated at each call or specialised?"""

    class Centred(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("mean", torch.ones(3))

        def forward(self, x: Tensor) -> Tensor:
            self.mean.mul_(0.9).add_(x.mean(0), alpha=0.1)
            return x - self.mean

    return Centred(), (tensor("batch", 3),)


@case(topics=("mutation", "state", "generation", "silence"))
def cache_written_at_a_position() -> Declaration:
    """Each call writes its key into a buffer at its position: does the second call read the first one's?"""

    class Cached(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("keys", torch.zeros(2, 8, 4))

        def forward(self, key: Tensor, position: Tensor) -> Tensor:
            found = self.keys.sum(1)
            self.keys[:, position] = key
            return found + torch.einsum("bsd,bd->bs", self.keys, key[:, 0]).softmax(-1)[:, :4]

    return Cached(), (tensor(2, 1, 4), integers(1, high=8))
