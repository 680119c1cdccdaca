"""Branches on data or shapes. Loops are in loops, and what `torch.cond` accepts is in conds."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from exportlab.cases import Declaration, case
from exportlab.specs import flags, integers, tensor


@case(dims={"batch": (6, 9, 3, 1, 0)}, topics=("branches", "silence"))
def branch_on_batch() -> Declaration:
    """A different formula above four rows: does the export keep only the branch of its example?"""

    class BranchOnBatch(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            return x * 2 if x.shape[0] > 4 else x * 3

    return BranchOnBatch(), (tensor("batch", 3),)


@case(dims={"batch": (4, 7, 1, 0)}, topics=("branches",))
def branch_on_value() -> Declaration:
    """A Python `if` on a run-time value: which exporters refuse it, and which lose the other branch?"""

    class BranchOnValue(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            return x + 1 if x.sum() > 0 else x - 1

    return BranchOnValue(), (tensor("batch", 3),)


@case(dims={"batch": (4, 7, 1, 0)}, topics=("branches", "control flow"))
def cond_on_value() -> Declaration:
    """The same branch with `torch.cond`: are both branches in the exported model?"""

    class CondOnValue(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            return torch.cond(x.sum() > 0, lambda x: x + 1, lambda x: x - 1, (x,))

    return CondOnValue(), (tensor("batch", 3),)


@case(dims={"batch": (4, 7, 1, 0)}, topics=("branches", "silence"))
def padded_to_even() -> Declaration:
    """An odd last row is doubled before rows are paired: does the exported model still test for an odd size?"""

    class Pairs(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            if x.shape[0] % 2:
                x = torch.cat([x, x[-1:]])
            return x.reshape(x.shape[0] // 2, 2, 3).sum(1)

    return Pairs(), (tensor("batch", 3),)


@case(dims={"rows": (4, 7, 1, 3), "others": (5, 7, 1, 0)}, topics=("branches", "silence"))
def branch_on_equal_sizes() -> Declaration:
    """Equal lengths are added, others concatenated: what if the example has two lengths and the next call one?"""

    class AddedOrJoined(nn.Module):
        def forward(self, x: Tensor, y: Tensor) -> Tensor:
            return x + y if x.shape[0] == y.shape[0] else torch.cat([x, y])

    return AddedOrJoined(), (tensor("rows", 3), tensor("others", 3))


@case(dims={"batch": (4, 7, 1, 0)}, topics=("branches", "silence"))
def single_row_as_it_is() -> Declaration:
    """A single row is not centred: is a batch of 1, which exporters specialise, handled as in the model?"""

    class Centred(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            return x if x.shape[0] == 1 else x - x.mean(0)

    return Centred(), (tensor("batch", 3),)


@case(dims={"rows": (4, 7, 1, 3), "others": (5, 2, 1, 6)}, topics=("branches", "silence"))
def longer_of_two() -> Declaration:
    """Python's `max` of two sizes is a branch too: is the result right when the other one is longer?"""

    class PaddedSum(nn.Module):
        def forward(self, x: Tensor, y: Tensor) -> Tensor:
            length = max(x.shape[0], y.shape[0])
            padded = [torch.cat([t, t.new_ones(length - t.shape[0])]) for t in (x, y)]
            return padded[0] - padded[1]

    return PaddedSum(), (tensor("rows"), tensor("others"))


@case(dims={"batch": (4, 7, 1, 0)}, topics=("branches", "silence"))
def at_most_five_rows() -> Declaration:
    """`min(5, size)` limits how many rows are divided by their count: is the limit applied above five?"""

    class FirstFive(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            kept = min(5, x.shape[0])
            return x[:kept] / max(kept, 1)

    return FirstFive(), (tensor("batch", 3),)


@case(dims={"batch": (4, 7, 1, 0)}, topics=("branches",))
def branch_on_item() -> Declaration:
    """A branch on `item()` of an input: is it kept, refused or lost?"""

    class Clipped(nn.Module):
        def forward(self, x: Tensor, limit: Tensor) -> Tensor:
            number = limit.item()
            return x.clamp(max=number) if number > 0 else x

    return Clipped(), (tensor("batch", 3), tensor())


@case(dims={"batch": (4, 7, 1, 0)}, topics=("branches",))
def branch_on_any() -> Declaration:
    """Values are shifted only if any is far below zero: is `any()` in an `if` exported or refused?"""

    class Shifted(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            if (x < -1.5).any():
                x = x - x.min()
            return x * 2

    return Shifted(), (tensor("batch", 3),)


@case(dims={"batch": (4, 7, 1, 0)}, topics=("branches", "masks"))
def mask_dropped_if_all_true() -> Declaration:
    """A shortcut skips a mask that hides nothing: may an exporter use it, or must it leave it out?"""

    class Softmax(nn.Module):
        def forward(self, scores: Tensor, mask: Tensor) -> Tensor:
            if not mask.all():
                scores = scores.masked_fill(~mask, -100)
            return scores.softmax(-1)

    return Softmax(), (tensor("batch", 3), flags("batch", 3))


@case(dims={"batch": (4, 7, 1, 0)}, topics=("branches",))
def fallback_on_nan() -> Declaration:
    """If the root of a negative sum is NaN, the input is returned unchanged: is this test in the exported model?"""

    class Scaled(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            root = x.sum().sqrt()
            return x if torch.isnan(root) else x * root

    return Scaled(), (tensor("batch", 3),)


@case(dims={"batch": (4, 7, 1, 0)}, topics=("branches", "signature"))
def switch_as_input() -> Declaration:
    """A boolean input switches the formula: does the exported model contain the switch?"""

    class Switched(nn.Module):
        def forward(self, x: Tensor, double: Tensor) -> Tensor:
            return x * 2 if double else x - 1

    return Switched(), (tensor("batch", 3), flags())


@case(dims={"batch": (4, 7, 1, 0)}, topics=("branches",))
def layer_by_number() -> Declaration:
    """An input selects a layer from a list: can a list be indexed with a run-time value?"""

    class Chosen(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layers = nn.ModuleList(nn.Linear(3, 3) for _ in range(4))

        def forward(self, x: Tensor, number: Tensor) -> Tensor:
            return self.layers[int(number)](x)

    return Chosen(), (tensor("batch", 3), integers(high=4))


@case(dims={"batch": (4, 7, 1, 0)}, topics=("branches", "silence"))
def try_to_test_a_value() -> Declaration:
    """A test of a value is inside `try`: does a tracing error select the `except` branch?"""

    class Cautious(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            try:
                scale = 2 if x.sum() > 0 else 3
            except RuntimeError:
                scale = 5
            return x * scale

    return Cautious(), (tensor("batch", 3),)


@case(dims={"batch": (4, 7, 1, 0)}, topics=("branches", "early exit"))
def early_exit() -> Declaration:
    """A model returns after the first layer that is confident enough: are the other layers exported?"""

    class EarlyExit(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layers = nn.ModuleList(nn.Linear(3, 3) for _ in range(3))

        def forward(self, x: Tensor) -> Tensor:
            for layer in self.layers:
                x = layer(x)
                if x.abs().sum() < 4:
                    return x
            return x * 2

    return EarlyExit(), (tensor("batch", 3),)


@case(dims={"batch": (4, 7, 1, 0)}, topics=("branches", "rewritten"))
def where_on_value() -> Declaration:
    """The branch rewritten with `torch.where`, which computes both sides: does every exporter accept it?"""

    class WhereOnValue(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            return torch.where(x.sum() > 0, x + 1, x - 1)

    return WhereOnValue(), (tensor("batch", 3),)


@case(dims={"batch": (4, 7, 1, 0)}, topics=("branches", "checks"))
def assert_on_value() -> Declaration:
    """An `assert` on values: is it kept, removed, or does it stop the export?"""

    class Asserted(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            assert torch.isfinite(x).all(), "only finite numbers"
            return x * 2

    return Asserted(), (tensor("batch", 3),)


@case(dims={"batch": (4, 7, 1, 0)}, topics=("branches", "checks", "rewritten"))
def check_skipped_in_export() -> Declaration:
    """The same check behind `torch.compiler.is_exporting()`: does the export succeed without it?"""

    class Checked(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            if not torch.compiler.is_exporting() and not torch.isfinite(x).all():
                raise ValueError("only finite numbers")
            return x * 2

    return Checked(), (tensor("batch", 3),)


@case(dims={"width": (8, 11, 5, 1)}, topics=("branches", "checks", "data-dependent shapes"))
def first_n_after_check() -> Declaration:
    """`torch._check` guarantees that a length from an input fits: is that enough for a slice?"""

    class FirstN(nn.Module):
        def forward(self, x: Tensor, n: Tensor) -> Tensor:
            length = n.item()
            torch._check(length >= 0)
            torch._check(length <= x.shape[1])
            return x[:, :length] * 2

    return FirstN(), (tensor(2, "width"), integers(high=2))


@case(dims={"width": (5, 8, 1, 0)}, topics=("branches", "data-dependent shapes"))
def padded_if_needed() -> Declaration:
    """Pad only if an input requires it: is a refusal justified for a test that changes nothing?"""

    class PaddedIfNeeded(nn.Module):
        def forward(self, x: Tensor, missing: Tensor) -> Tensor:
            n = missing.item()
            if n > 0:
                x = F.pad(x, (0, n), value=1.0)
            return x.cumsum(1)

    return PaddedIfNeeded(), (tensor(2, "width"), integers(high=4))


@case(dims={"width": (5, 8, 1, 0)}, topics=("branches", "data-dependent shapes", "rewritten"))
def padded_always() -> Declaration:
    """The same without the test, because padding by zero changes nothing: is it exported correctly?"""

    class PaddedAlways(nn.Module):
        def forward(self, x: Tensor, missing: Tensor) -> Tensor:
            n = missing.item()
            torch._check(n >= 0)
            return F.pad(x, (0, n), value=1.0).cumsum(1)

    return PaddedAlways(), (tensor(2, "width"), integers(high=4))


@case(dims={"rows": (4, 7, 1, 12), "others": (5, 8, 1, 5)}, topics=("branches", "silence"))
def one_longer_by_seven() -> Declaration:
    """A test is true only for few pairs of sizes, such as 12 and 5 rows: is its branch in the exported model?"""

    class LongerBySeven(nn.Module):
        def forward(self, x: Tensor, y: Tensor) -> Tensor:
            if x.shape[0] == y.shape[0] + 7:
                return x.sum() + y.sum()
            return x.sum() - y.sum()

    return LongerBySeven(), (tensor("rows", 3), tensor("others", 3))
