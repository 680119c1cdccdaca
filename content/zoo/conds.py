"""Common contents of `torch.cond` branches. Python branches are in branches, and loops with a `cond` in loops."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from exportlab.cases import Declaration, case
from exportlab.specs import tensor


@case(dims={"batch": (4, 7, 1, 0)}, topics=("cond", "early exit", "control flow"))
def early_exit_by_cond() -> Declaration:
    """An early exit with `torch.cond` after each layer: are later layers skipped, and are the results equal?"""

    class EarlyExit(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layers = nn.ModuleList(nn.Linear(3, 3) for _ in range(3))

        def forward(self, x: Tensor) -> Tensor:
            return self.after(0, self.layers[0](x))

        def after(self, i: int, x: Tensor) -> Tensor:
            if i == 2:
                return torch.where(x.abs().sum() < 4, x, x * 2)
            return torch.cond(x.abs().sum() < 4, lambda x: x.clone(), lambda x: self.after(i + 1, self.layers[i + 1](x)), (x,))

    return EarlyExit(), (tensor("batch", 3),)


@case(dims={"batch": (4, 7, 1, 0)}, topics=("cond", "control flow"))
def cond_closing_over_things() -> Declaration:
    """The branches use an input and a parameter that are not operands: are they found?"""

    class Closing(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.scale = nn.Parameter(torch.randn(3))

        def forward(self, x: Tensor, y: Tensor) -> Tensor:
            return torch.cond(x.sum() > 0, lambda x: x * self.scale, lambda x: x - y, (x,))

    return Closing(), (tensor("batch", 3), tensor("batch", 3))


@case(dims={"batch": (4, 7, 1, 0)}, topics=("cond", "control flow"))
def cond_with_a_layer() -> Declaration:
    """Only one branch has a layer: where are its weights in the exported model?"""

    class MaybeLinear(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.linear = nn.Linear(3, 3)

        def forward(self, x: Tensor) -> Tensor:
            return torch.cond(x.sum() > 0, self.linear, lambda x: x * 2, (x,))

    return MaybeLinear(), (tensor("batch", 3),)


@case(dims={"batch": (4, 7, 1, 0)}, topics=("cond", "control flow"))
def cond_in_cond() -> Declaration:
    """A branch contains another branch: are all three paths in the exported model?"""

    class ThreeWays(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            return torch.cond(x.sum() > 2, lambda x: x + 1, self.otherwise, (x,))

        def otherwise(self, x: Tensor) -> Tensor:
            return torch.cond(x.sum() < -2, lambda x: x - 1, lambda x: x * 10, (x,))

    return ThreeWays(), (tensor("batch", 3),)


@case(dims={"batch": (4, 7, 1, 0)}, topics=("cond", "control flow", "aliasing"))
def cond_with_an_identity() -> Declaration:
    """One branch returns its operand unchanged: may an output be an input?"""

    class MaybeDoubled(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            return torch.cond(x.sum() > 0, lambda x: x * 2, lambda x: x, (x,))

    return MaybeDoubled(), (tensor("batch", 3),)


@case(dims={"batch": (4, 7, 1, 0)}, topics=("cond", "control flow"))
def cond_with_three_results() -> Declaration:
    """Branches return a float matrix, an integer vector and a boolean: are the three outputs in order?"""

    class Three(nn.Module):
        def forward(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
            return torch.cond(x.sum() > 0, self.upwards, self.downwards, (x,))

        def upwards(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
            return x + 1, x.argmax(1), (x > 2).any()

        def downwards(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
            return x - 1, x.argmin(1), (x < 2).all()

    return Three(), (tensor("batch", 3),)


@case(dims={"batch": (4, 7, 1, 2)}, topics=("cond", "control flow", "dynamic shapes"))
def cond_with_results_of_two_lengths() -> Declaration:
    """One branch keeps one row, the other all but one: does the result have its own dynamic length?"""

    class Cut(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            return torch.cond(x.sum() > 0, lambda x: x[:1] * 2, lambda x: x[1:] * 3, (x,))

    return Cut(), (tensor("batch", 3),)


@case(dims={"batch": (4, 7, 1, 0)}, topics=("cond", "control flow", "containers"))
def cond_of_dicts() -> Declaration:
    """Branches take and return a dict: does each value keep its key?"""

    class Dicts(nn.Module):
        def forward(self, x: Tensor, y: Tensor) -> dict[str, Tensor]:
            return torch.cond(x.sum() > y.sum(), self.first, self.second, ({"y": y, "x": x},))

        def first(self, given: dict[str, Tensor]) -> dict[str, Tensor]:
            return {"total": given["x"] + given["y"], "difference": given["x"] - given["y"]}

        def second(self, given: dict[str, Tensor]) -> dict[str, Tensor]:
            return {"total": given["x"] * 2, "difference": given["y"] * 3}

    return Dicts(), (tensor("batch", 3), tensor("batch", 3))


@case(dims={"batch": (6, 9, 3, 1, 0)}, topics=("cond", "control flow", "dynamic shapes"))
def cond_on_batch() -> Declaration:
    """The branch on the batch with `torch.cond`: is it decided at run time or during the export?"""

    class CondOnBatch(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            return torch.cond(x.shape[0] > 4, lambda x: x * 2, lambda x: x * 3, (x,))

    return CondOnBatch(), (tensor("batch", 3),)
