"""What a call leaves behind in the module, and the next one finds. Not here: caches that go in and out, statistics of norms."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from exportlab.cases import Declaration, case
from exportlab.specs import integers, tensor


@case(dims={"batch": (4, 7, 1, 0)}, topics=("mutation", "attributes"))
def kept_as_attribute() -> Declaration:
    """`self.hidden = …` in forward, for others to look at: does an attribute that is only written stop the export?"""

    class Kept(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            self.hidden = x * 2
            return self.hidden + 1

    return Kept(), (tensor("batch", 3),)


@case(dims={"batch": (4, 7, 1, 0)}, topics=("mutation", "state", "attributes", "silence"))
def attribute_of_the_last_call() -> Declaration:
    """An attribute, no buffer, holds the mean of the call before: which call does the file compare with?"""

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
    """A Python list gets longer with each call: what does a graph make of it?"""

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
    """The calls are counted in a Python integer: whose count is in the file?"""

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
    """The buffer is put together with the input and kept: may state have another size after each call?"""

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
    """A running mean by hand is updated before it is used: is it that of the call before, or of the export?"""

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
    """Each call writes its key at its position into a buffer: does the second call find what the first one wrote?"""

    class Cached(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("keys", torch.zeros(2, 8, 4))

        def forward(self, key: Tensor, position: Tensor) -> Tensor:
            found = self.keys.sum(1)
            self.keys[:, position] = key
            return found + torch.einsum("bsd,bd->bs", self.keys, key[:, 0]).softmax(-1)[:, :4]

    return Cached(), (tensor(2, 1, 4), integers(1, high=8))
