"""Unusual outputs of `forward`: inputs, constants, numbers, one tensor twice."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from exportlab.cases import Declaration, case
from exportlab.specs import tensor


@case(dims={"batch": (4, 7, 1, 0)}, topics=("signature", "outputs"))
def identity() -> Declaration:
    """The model returns its input: does the exported model have an input and an output with two names?"""
    return nn.Identity(), (tensor("batch", 3),)


@case(dims={"batch": (4, 7, 1, 0)}, topics=("signature", "outputs"))
def input_among_outputs() -> Declaration:
    """An input is returned unchanged next to a new tensor: does it keep its name and position?"""

    class Kept(nn.Module):
        def forward(self, x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
            return x - y, x

    return Kept(), (tensor("batch", 3), tensor("batch", 3))


@case(dims={"batch": (4, 7, 1, 0)}, topics=("signature", "outputs"))
def inputs_swapped() -> Declaration:
    """Two inputs are returned in swapped order: is each output right?"""

    class Swapped(nn.Module):
        def forward(self, x: Tensor, y: Tensor) -> tuple[Tensor, Tensor]:
            return y, x

    return Swapped(), (tensor("batch", 3), tensor("batch", 2))


@case(dims={"batch": (4, 7, 1, 0)}, topics=("signature", "outputs"))
def output_twice() -> Declaration:
    """One tensor is returned twice, with another between: are there three outputs?"""

    class Twice(nn.Module):
        def forward(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
            y = x * 2
            return y, y + 1, y

    return Twice(), (tensor("batch", 3),)


@case(dims={"batch": (4, 7, 1, 0)}, topics=("signature", "outputs", "views"))
def output_and_its_view() -> Declaration:
    """One output is a view of another, and a third is a view of an input: are they independent tensors?"""

    class Viewed(nn.Module):
        def forward(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
            y = x * 2
            return y, y[:, 1:], x.t()

    return Viewed(), (tensor("batch", 3),)


@case(dims={"batch": (4, 7, 1, 0)}, topics=("signature", "outputs", "Python values"))
def numbers_among_outputs() -> Declaration:
    """An int, a float, a bool and None are returned between tensors: do the tensors keep their positions?"""

    class Numbered(nn.Module):
        def forward(self, x: Tensor) -> tuple[object, ...]:
            return 3, x * 2, 0.5, None, True, x - 1

    return Numbered(), (tensor("batch", 3),)


@case(dims={"batch": (4, 7, 1, 0)}, topics=("signature", "outputs", "Python values", "silence"))
def size_among_outputs() -> Declaration:
    """The model returns its number of rows: is it specialised to the example?"""

    class Counted(nn.Module):
        def forward(self, x: Tensor) -> tuple[Tensor, int]:
            return x * 2, x.shape[0]

    return Counted(), (tensor("batch", 3),)


@case(topics=("signature", "outputs", "Python values", "silence"))
def number_taken_from_a_tensor() -> Declaration:
    """`x.max().item()` is returned: is it specialised to the example?"""

    class Peak(nn.Module):
        def forward(self, x: Tensor) -> tuple[Tensor, float]:
            return x * 2, x.max().item()

    return Peak(), (tensor(4, 3),)


@case(dims={"batch": (4, 7, 1, 0)}, topics=("signature", "outputs", "constants"))
def constants_among_outputs() -> Declaration:
    """A parameter, a buffer and a new constant are returned: can they be outputs of a graph?"""

    class Constants(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.weight = nn.Parameter(torch.randn(3))
            self.register_buffer("table", torch.arange(4))

        def forward(self, x: Tensor) -> tuple[Tensor, ...]:
            return self.weight, x * self.weight, self.table, torch.ones(2)

    return Constants(), (tensor("batch", 3),)


@case(topics=("signature", "outputs", "constants"))
def no_inputs() -> Declaration:
    """The model has no inputs: can it be exported?"""

    class Table(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.weight = nn.Parameter(torch.randn(4, 3))

        def forward(self) -> Tensor:
            return self.weight.softmax(-1)

    return Table(), ()


@case(topics=("signature", "outputs", "Python values"))
def only_numbers() -> Declaration:
    """The model takes an int and a float but no tensor: are they inputs, or is everything constant?"""

    class Ramp(nn.Module):
        def forward(self, count: int, step: float) -> Tensor:
            return torch.arange(count) * step

    return Ramp(), (5, 0.25)


@case(dims={"batch": (4, 7, 1, 0)}, topics=("signature", "outputs"))
def one_of_a_tuple() -> Declaration:
    """The model returns a tuple with one tensor: is it still a tuple?"""

    class Wrapped(nn.Module):
        def forward(self, x: Tensor) -> tuple[Tensor]:
            return (x * 2,)

    return Wrapped(), (tensor("batch", 3),)


@case(dims={"batch": (4, 7, 1, 0)}, topics=("signature", "outputs", "silence"))
def nothing_depends_on_the_input() -> Declaration:
    """The output has the shape of the input but not its values: is the shape dynamic?"""

    class Zeros(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            return torch.zeros_like(x) + 0.5

    return Zeros(), (tensor("batch", 3),)
