"""Weights and constants: shared, transposed, computed, empty, or kept outside parameters. State that changes is elsewhere."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn
from torch.nn.utils import parametrizations, parametrize

from exportlab.cases import Declaration, case
from exportlab.specs import integers, tensor


@case(dims={"batch": (3, 7, 1, 0), "seq": (5, 4, 1, 2)}, topics=("weights", "shared weights"))
def tied_embedding() -> Declaration:
    """Embedding and head share a parameter: is it stored once?"""

    class Tied(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.embedding = nn.Embedding(10, 4)
            self.head = nn.Linear(4, 10, bias=False)
            self.head.weight = self.embedding.weight

        def forward(self, ids: Tensor) -> Tensor:
            return self.head(self.embedding(ids).tanh())

    return Tied(), (integers("batch", "seq"),)


@case(dims={"batch": (4, 7, 1, 0)}, topics=("weights", "shared weights", "hierarchy"))
def one_module_two_names() -> Declaration:
    """One submodule has two names: which name does its weight get, and how often is it stored?"""

    class TwoNames(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.encoder = nn.Linear(3, 3)
            self.decoder = self.encoder

        def forward(self, x: Tensor) -> Tensor:
            return self.decoder(self.encoder(x).relu())

    return TwoNames(), (tensor("batch", 3),)


@case(dims={"batch": (4, 7, 1, 0)}, topics=("weights", "shared weights", "views"))
def weight_and_its_transpose() -> Declaration:
    """A decoder multiplies by the transpose of its encoder's weight: do both use the same numbers?"""

    class Autoencoder(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.weight = nn.Parameter(torch.randn(3, 5))

        def forward(self, x: Tensor) -> Tensor:
            return (x @ self.weight).tanh() @ self.weight.T

    return Autoencoder(), (tensor("batch", 3),)


@case(dims={"batch": (4, 7, 1, 0)}, topics=("weights", "views", "silence"))
def weights_with_strides() -> Declaration:
    """A parameter is transposed in memory, a buffer repeats one row: is the data stored in logical order?"""

    class Strided(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.weight = nn.Parameter(torch.randn(5, 3).t())
            self.register_buffer("repeated", torch.randn(1, 5).expand(2, 5))

        def forward(self, x: Tensor) -> Tensor:
            return (x @ self.weight)[:, None] * self.repeated

    return Strided(), (tensor("batch", 3),)


@case(dims={"batch": (4, 7, 1, 0)}, topics=("weights", "views", "silence"))
def weights_in_one_storage() -> Declaration:
    """Two parameters are slices of one storage: is each stored correctly?"""

    class Sliced(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            block = torch.randn(6, 3)
            self.first, self.second = nn.Parameter(block[:2]), nn.Parameter(block[2:, :2])

        def forward(self, x: Tensor) -> Tensor:
            return torch.cat([x @ self.first.t(), x[:, :2] @ self.second.t()], 1)

    return Sliced(), (tensor("batch", 3),)


@case(dims={"batch": (4, 7, 1, 0)}, topics=("weights", "shared weights", "silence"))
def equal_but_not_shared() -> Declaration:
    """Two parameters have equal values, a third has them in another shape: is each used as itself?"""

    class Equal(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.row = nn.Parameter(torch.ones(1, 3))
            self.other = nn.Parameter(torch.ones(1, 3))
            self.column = nn.Parameter(torch.ones(3, 1))

        def forward(self, x: Tensor) -> Tensor:
            return (x @ self.column) * self.row + self.other

    return Equal(), (tensor("batch", 3),)


@case(dims={"batch": (4, 7, 1, 0)}, topics=("weights", "constants"))
def buffer_not_saved() -> Declaration:
    """A non-persistent buffer isn't in the state dict: is it in the exported model?"""

    class NotSaved(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("scale", torch.randn(3), persistent=False)

        def forward(self, x: Tensor) -> Tensor:
            return x * self.scale

    return NotSaved(), (tensor("batch", 3),)


@case(dims={"batch": (4, 7, 1, 0)}, topics=("weights", "constants"))
def tensors_that_are_no_buffers() -> Declaration:
    """Tensors in plain attributes, in a list and in a dict: are they found?"""

    class Plain(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.scale = torch.randn(3)
            self.shifts = [torch.randn(3), torch.randn(3)]
            self.tables = {"last": torch.randn(3)}

        def forward(self, x: Tensor) -> Tensor:
            return (x * self.scale + self.shifts[0] - self.shifts[1]) * self.tables["last"]

    return Plain(), (tensor("batch", 3),)


@case(dims={"batch": (4, 7, 1, 0)}, topics=("weights", "constants"))
def constants_made_in_forward() -> Declaration:
    """`torch.tensor`, `torch.arange` and `torch.eye` in `forward`: are they constants of the right dtype?"""

    class Constants(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            weights = torch.tensor([0.5, 2.0, -1.0])
            return (x * weights) @ torch.eye(3) + torch.arange(3) / 2

    return Constants(), (tensor("batch", 3),)


@case(dims={"batch": (4, 7, 1, 0)}, topics=("weights", "constants"))
def constants_at_the_edge() -> Declaration:
    """A buffer contains infinities, NaN, minus zero and subnormal numbers: are they stored exactly?"""

    class Edges(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("edges", torch.tensor([math.inf, -math.inf, math.nan, -0.0, 1e-45, 3.4e38]), persistent=False)

        def forward(self, x: Tensor) -> Tensor:
            return torch.where(x > 0, self.edges, 1 / self.edges)

    return Edges(), (tensor("batch", 6),)


@case(dims={"batch": (4, 7, 1, 0)}, topics=("weights", "empty"))
def empty_parameter() -> Declaration:
    """A parameter has no rows: is an empty weight allowed, and does `cat` handle it?"""

    class Empty(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.prompt = nn.Parameter(torch.empty(0, 3))

        def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
            return torch.cat([self.prompt, x]) * 2, x @ self.prompt.t()

    return Empty(), (tensor("batch", 3),)


@case(dims={"batch": (4, 7, 1, 0)}, topics=("weights",))
def weights_without_axes() -> Declaration:
    """A parameter and an integer buffer without axes: do they keep dtype and shape?"""

    class Single(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.temperature = nn.Parameter(torch.tensor(0.7))
            self.register_buffer("steps", torch.tensor(12))

        def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
            return x / self.temperature, self.steps + 1

    return Single(), (tensor("batch", 3),)


@case(dims={"batch": (4, 7, 1, 0)}, topics=("weights", "hierarchy"))
def weights_in_lists() -> Declaration:
    """Parameters in a `ParameterList` and a `ParameterDict`: is each found?"""

    class Kept(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.scales = nn.ParameterList([nn.Parameter(torch.randn(3)) for _ in range(2)])
            self.shifts = nn.ParameterDict({"b": nn.Parameter(torch.randn(3)), "a": nn.Parameter(torch.randn(3))})

        def forward(self, x: Tensor) -> Tensor:
            return (x * self.scales[0] + self.shifts["a"]) * self.scales[1] - self.shifts["b"]

    return Kept(), (tensor("batch", 3),)


@case(dims={"batch": (4, 7, 1, 0)}, topics=("weights", "parametrization"))
def weight_norm() -> Declaration:
    """A weight is computed from length and direction at each call: can it be captured?"""
    return parametrizations.weight_norm(nn.Linear(3, 4)), (tensor("batch", 3),)


@case(dims={"batch": (4, 7, 1, 0)}, topics=("weights", "parametrization"))
def spectral_norm() -> Declaration:
    """A weight is divided by its largest singular value, estimated in buffers: do the buffers stay unchanged?"""
    return parametrizations.spectral_norm(nn.Linear(3, 4)), (tensor("batch", 3),)


class Symmetric(nn.Module):
    """Mirrors the upper triangle."""

    def forward(self, x: Tensor) -> Tensor:
        """Return the symmetric matrix."""
        return x.triu() + x.triu(1).mT


@case(dims={"batch": (4, 7, 1, 0)}, topics=("weights", "parametrization"))
def symmetric_weight() -> Declaration:
    """A custom parametrization makes a weight symmetric: is `register_parametrization` exported?"""
    linear = nn.Linear(3, 3)
    parametrize.register_parametrization(linear, "weight", Symmetric())
    return linear, (tensor("batch", 3),)


@case(dims={"batch": (4, 7, 1, 0)}, topics=("weights", "dtypes"))
def double_buffer() -> Declaration:
    """A float64 buffer in a float32 model, with and without axes: is the result promoted as in eager?"""

    class Double(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("scale", torch.randn(3, dtype=torch.float64))
            self.register_buffer("shift", torch.tensor(1 / 3, dtype=torch.float64))

        def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
            return x * self.scale, x + self.shift

    return Double(), (tensor("batch", 3),)


@case(dims={"batch": (4, 7, 1, 0)}, topics=("weights", "dtypes"))
def weights_in_eight_bits() -> Declaration:
    """Int8 weights are multiplied by their scales at each call: do they stay small, and is the result right?"""

    class Dequantized(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("weight", torch.randint(-128, 128, (4, 3), dtype=torch.int8))
            self.register_buffer("scales", torch.rand(4, 1, dtype=torch.float16))

        def forward(self, x: Tensor) -> Tensor:
            return nn.functional.linear(x, self.weight.to(x.dtype) * self.scales.to(x.dtype))

    return Dequantized(), (tensor("batch", 3),)


@case(dims={"batch": (4, 7, 1, 12)}, topics=("weights", "constants", "silence"))
def table_made_at_the_first_call() -> Declaration:
    """A table of positions is rebuilt when it is too short: does it grow after the export?"""

    class Positions(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.table = torch.empty(0)

        def forward(self, x: Tensor) -> Tensor:
            if len(self.table) < len(x):
                self.table = torch.arange(len(x)) / 2
            return x + self.table[: len(x), None]

    return Positions(), (tensor("batch", 3),)
