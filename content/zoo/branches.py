"""Where the data or its shape decides what is computed. Not here: loops, nor what `torch.cond` takes (conds)."""

from __future__ import annotations

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from exportlab.cases import Declaration, case
from exportlab.specs import flags, integers, tensor


@case(dims={"batch": (6, 9, 3, 1, 0)}, topics=("branches", "silence"))
def branch_on_batch() -> Declaration:
    """Another formula above four rows: does the export keep the branch of its example?"""

    class BranchOnBatch(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            return x * 2 if x.shape[0] > 4 else x * 3

    return BranchOnBatch(), (tensor("batch", 3),)


@case(dims={"batch": (4, 7, 1, 0)}, topics=("branches",))
def branch_on_value() -> Declaration:
    """A Python `if` on a value that only exists at run time: who refuses, and who forgets the other branch?"""

    class BranchOnValue(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            return x + 1 if x.sum() > 0 else x - 1

    return BranchOnValue(), (tensor("batch", 3),)


@case(dims={"batch": (4, 7, 1, 0)}, topics=("branches", "control flow"))
def cond_on_value() -> Declaration:
    """The same branch as `torch.cond`: are both sides in the file?"""

    class CondOnValue(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            return torch.cond(x.sum() > 0, lambda x: x + 1, lambda x: x - 1, (x,))

    return CondOnValue(), (tensor("batch", 3),)


@case(dims={"batch": (4, 7, 1, 0)}, topics=("branches", "silence"))
def padded_to_even() -> Declaration:
    """An odd row is doubled before rows are paired: is the test for evenness still there afterwards?"""

    class Pairs(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            if x.shape[0] % 2:
                x = torch.cat([x, x[-1:]])
            return x.reshape(x.shape[0] // 2, 2, 3).sum(1)

    return Pairs(), (tensor("batch", 3),)


@case(dims={"rows": (4, 7, 1, 3), "others": (5, 7, 1, 0)}, topics=("branches", "silence"))
def branch_on_equal_sizes() -> Declaration:
    """Added when of one length, else put end to end: what if the example has two lengths and the next call one?"""

    class AddedOrJoined(nn.Module):
        def forward(self, x: Tensor, y: Tensor) -> Tensor:
            return x + y if x.shape[0] == y.shape[0] else torch.cat([x, y])

    return AddedOrJoined(), (tensor("rows", 3), tensor("others", 3))


@case(dims={"batch": (4, 7, 1, 0)}, topics=("branches", "silence"))
def single_row_as_it_is() -> Declaration:
    """A single row is not centred: is a batch of 1, which exporters treat as special, treated as the model says?"""

    class Centred(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            return x if x.shape[0] == 1 else x - x.mean(0)

    return Centred(), (tensor("batch", 3),)


@case(dims={"rows": (4, 7, 1, 3), "others": (5, 2, 1, 6)}, topics=("branches", "silence"))
def longer_of_two() -> Declaration:
    """Python's `max` of two sizes is a branch too: is the longer one still the longer one?"""

    class PaddedSum(nn.Module):
        def forward(self, x: Tensor, y: Tensor) -> Tensor:
            length = max(x.shape[0], y.shape[0])
            padded = [torch.cat([t, t.new_ones(length - t.shape[0])]) for t in (x, y)]
            return padded[0] - padded[1]

    return PaddedSum(), (tensor("rows"), tensor("others"))


@case(dims={"batch": (4, 7, 1, 0)}, topics=("branches", "silence"))
def at_most_five_rows() -> Declaration:
    """`min(5, size)` decides how many rows are divided by their number: does the cut begin above five?"""

    class FirstFive(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            kept = min(5, x.shape[0])
            return x[:kept] / max(kept, 1)

    return FirstFive(), (tensor("batch", 3),)


@case(dims={"batch": (4, 7, 1, 0)}, topics=("branches",))
def branch_on_item() -> Declaration:
    """`item()` makes a Python number of an input: is the test of it kept, refused or forgotten?"""

    class Clipped(nn.Module):
        def forward(self, x: Tensor, limit: Tensor) -> Tensor:
            number = limit.item()
            return x.clamp(max=number) if number > 0 else x

    return Clipped(), (tensor("batch", 3), tensor())


@case(dims={"batch": (4, 7, 1, 0)}, topics=("branches",))
def branch_on_any() -> Declaration:
    """Shifted only if any value is far below zero: is `any()` in an `if` noticed?"""

    class Shifted(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            if (x < -1.5).any():
                x = x - x.min()
            return x * 2

    return Shifted(), (tensor("batch", 3),)


@case(dims={"batch": (4, 7, 1, 0)}, topics=("branches", "masks"))
def mask_dropped_if_all_true() -> Declaration:
    """The shortcut for a mask that masks nothing: may an export take it, or must it forgo it?"""

    class Softmax(nn.Module):
        def forward(self, scores: Tensor, mask: Tensor) -> Tensor:
            if not mask.all():
                scores = scores.masked_fill(~mask, -100)
            return scores.softmax(-1)

    return Softmax(), (tensor("batch", 3), flags("batch", 3))


@case(dims={"batch": (4, 7, 1, 0)}, topics=("branches",))
def fallback_on_nan() -> Declaration:
    """The root of a negative sum is not a number, and then the input is left alone: does the export look?"""

    class Scaled(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            root = x.sum().sqrt()
            return x if torch.isnan(root) else x * root

    return Scaled(), (tensor("batch", 3),)


@case(dims={"batch": (4, 7, 1, 0)}, topics=("branches", "signature"))
def switch_as_input() -> Declaration:
    """A boolean tensor among the inputs switches: does the file have a switch?"""

    class Switched(nn.Module):
        def forward(self, x: Tensor, double: Tensor) -> Tensor:
            return x * 2 if double else x - 1

    return Switched(), (tensor("batch", 3), flags())


@case(dims={"batch": (4, 7, 1, 0)}, topics=("branches",))
def layer_by_number() -> Declaration:
    """An input says which layer of a list is called: can a list be indexed with what is only known later?"""

    class Chosen(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.layers = nn.ModuleList(nn.Linear(3, 3) for _ in range(4))

        def forward(self, x: Tensor, number: Tensor) -> Tensor:
            return self.layers[int(number)](x)

    return Chosen(), (tensor("batch", 3), integers(high=4))


@case(dims={"batch": (4, 7, 1, 0)}, topics=("branches", "silence"))
def try_to_test_a_value() -> Declaration:
    """The test of a value stands in a `try`: does the error of the tracing choose the branch in `except`?"""

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
    """A model returns after the first layer that is sure enough: what is exported of the others?"""

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
    """The branch rewritten as `torch.where`, which computes both sides: does every exporter take it?"""

    class WhereOnValue(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            return torch.where(x.sum() > 0, x + 1, x - 1)

    return WhereOnValue(), (tensor("batch", 3),)


@case(dims={"batch": (4, 7, 1, 0)}, topics=("branches", "checks"))
def assert_on_value() -> Declaration:
    """An `assert` about values: is it kept, is it left out, or does it stop the export?"""

    class Asserted(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            assert torch.isfinite(x).all(), "only finite numbers"
            return x * 2

    return Asserted(), (tensor("batch", 3),)


@case(dims={"batch": (4, 7, 1, 0)}, topics=("branches", "checks", "rewritten"))
def check_skipped_in_export() -> Declaration:
    """The same check behind `torch.compiler.is_exporting()`: does the export pass without it?"""

    class Checked(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            if not torch.compiler.is_exporting() and not torch.isfinite(x).all():
                raise ValueError("only finite numbers")
            return x * 2

    return Checked(), (tensor("batch", 3),)


@case(dims={"width": (8, 11, 5, 1)}, topics=("branches", "checks", "data-dependent shapes"))
def first_n_after_check() -> Declaration:
    """`torch._check` promises that a length read from the input fits: is that enough to slice by it?"""

    class FirstN(nn.Module):
        def forward(self, x: Tensor, n: Tensor) -> Tensor:
            length = n.item()
            torch._check(length >= 0)
            torch._check(length <= x.shape[1])
            return x[:, :length] * 2

    return FirstN(), (tensor(2, "width"), integers(high=2))


@case(dims={"width": (5, 8, 1, 0)}, topics=("branches", "data-dependent shapes"))
def padded_if_needed() -> Declaration:
    """Padding only if an input asks for any: is a test that saves nothing worth a refusal?"""

    class PaddedIfNeeded(nn.Module):
        def forward(self, x: Tensor, missing: Tensor) -> Tensor:
            n = missing.item()
            if n > 0:
                x = F.pad(x, (0, n), value=1.0)
            return x.cumsum(1)

    return PaddedIfNeeded(), (tensor(2, "width"), integers(high=4))


@case(dims={"width": (5, 8, 1, 0)}, topics=("branches", "data-dependent shapes", "rewritten"))
def padded_always() -> Declaration:
    """The same without the test, since padding by zero changes nothing: does it export now, and pad by zero?"""

    class PaddedAlways(nn.Module):
        def forward(self, x: Tensor, missing: Tensor) -> Tensor:
            n = missing.item()
            torch._check(n >= 0)
            return F.pad(x, (0, n), value=1.0).cumsum(1)

    return PaddedAlways(), (tensor(2, "width"), integers(high=4))


@case(dims={"rows": (4, 7, 1, 12), "others": (5, 8, 1, 5)}, topics=("branches", "silence"))
def one_longer_by_seven() -> Declaration:
    """Few pairs of sizes meet a test, 12 rows and 5 others among them: is what it decides in the file at all?"""

    class LongerBySeven(nn.Module):
        def forward(self, x: Tensor, y: Tensor) -> Tensor:
            if x.shape[0] == y.shape[0] + 7:
                return x.sum() + y.sum()
            return x.sum() - y.sum()

    return LongerBySeven(), (tensor("rows", 3), tensor("others", 3))
