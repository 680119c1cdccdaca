"""Dynamic shapes and computations with sizes. Branches and loops on sizes, and data-dependent lengths, are elsewhere."""

from __future__ import annotations

import math

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from exportlab.cases import Declaration, case
from exportlab.specs import tensor


@case(dims={"batch": (2, 3, 1, 4, 0), "seq": (5, 7, 1, 0, 3)}, topics=("dynamic shapes",))
def two_dims() -> Declaration:
    """Can two axes of one input be dynamic independently?"""

    class Scores(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            return x @ x.transpose(1, 2)

    return Scores(), (tensor("batch", "seq", 8),)


@case(dims={"batch": (4, 7, 1, 3), "width": (5, 6, 1, 0)}, topics=("dynamic shapes", "reshape"))
def flatten_by_size() -> Declaration:
    """Does `view` with a size read from the input follow that size?"""

    class Flattened(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            return x.view(x.shape[0], -1) * 2

    return Flattened(), (tensor("batch", 3, "width"),)


@case(dims={"rows": (4, 7, 5, 1, 0), "others": (4, 7, 1, 6, 1)}, topics=("dynamic shapes", "broadcasting"))
def broadcast_later() -> Declaration:
    """Two lengths are equal in the export: may one of them be 1 and broadcast later?"""

    class Sum(nn.Module):
        def forward(self, x: Tensor, y: Tensor) -> Tensor:
            return x + y

    return Sum(), (tensor("rows", 3), tensor("others", 3))


@case(dims={"batch": (6, 9, 1, 0)}, topics=("dynamic shapes", "silence"))
def half_of_the_rows() -> Declaration:
    """A size is converted to float and back: is the slice still the right length?"""

    class FirstHalf(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            return x[: int(x.shape[0] * 0.5)] * 2

    return FirstHalf(), (tensor("batch", 3),)


@case(dims={"batch": (2, 3, 1, 4, 0), "seq": (5, 8, 1, 0, 3)}, topics=("dynamic shapes",))
def positions() -> Declaration:
    """Is `arange` of a size computed at run time?"""

    class AddPositions(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            return x + torch.arange(x.shape[1], dtype=x.dtype)

    return AddPositions(), (tensor("batch", "seq"),)


@case(dims={"batch": (4, 7, 1, 0)}, topics=("dynamic shapes", "silence"))
def any_of_none() -> Declaration:
    """Without rows, no row is positive: does the exported model agree?"""

    class AnyPositive(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            return (x > 0).any()

    return AnyPositive(), (tensor("batch", 3),)


@case(dims={"width": (6, 9, 1)}, topics=("dynamic shapes", "reshape"))
def rows_by_second_size() -> Declaration:
    """`view(x.size(1), -1)` makes the second size the first: is the last one still inferred?"""

    class BySecond(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            return x.view(x.size(1), -1) * 2

    return BySecond(), (tensor(4, "width"),)


@case(dims={"batch": (6, 9, 1, 3, 0)}, topics=("dynamic shapes", "reshape", "silence"))
def constant_like_the_batch() -> Declaration:
    """A constant shape equals the example's batch size: is it mistaken for the batch?"""

    class SixRows(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            return x.reshape(6, -1) * 2

    return SixRows(), (tensor("batch", 12),)


@case(dims={"batch": (2, 3, 1, 0), "seq": (5, 7, 1, 4)}, topics=("dynamic shapes", "reshape"))
def flattened_and_back() -> Declaration:
    """Two axes are flattened by a product of sizes and restored: is the product computed at run time?"""

    class ThereAndBack(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            flat = x.view(x.shape[0] * x.shape[1], 3).cumsum(0)
            return flat.unflatten(0, (x.shape[0], x.shape[1]))

    return ThereAndBack(), (tensor("batch", "seq", 3),)


@case(dims={"batch": (5, 8, 1, 0)}, topics=("dynamic shapes", "silence"))
def upper_half_by_ceil() -> Declaration:
    """`math.ceil` of half the rows: is it rounded up at run time, or specialised?"""

    class UpperHalf(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            return x[: math.ceil(x.shape[0] / 2)] * 2

    return UpperHalf(), (tensor("batch", 3),)


@case(dims={"batch": (4, 7, 1, 0), "width": (5, 6, 1)}, topics=("dynamic shapes", "silence"))
def scaled_by_root_of_size() -> Declaration:
    """Attention's `/ math.sqrt(size)` with a dynamic size: is the root computed at run time?"""

    class Scaled(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            return x / math.sqrt(x.shape[1])

    return Scaled(), (tensor("batch", "width"),)


@case(dims={"batch": (4, 7, 1, 0)}, topics=("dynamic shapes", "silence"))
def mean_by_hand() -> Declaration:
    """A sum divided by an integer size: is the mean right, and NaN without rows?"""

    class Mean(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            return x.sum(0) / x.shape[0]

    return Mean(), (tensor("batch", 3),)


@case(dims={"batch": (6, 9, 1, 0)}, topics=("dynamic shapes",))
def halves_exchanged() -> Declaration:
    """The row count is halved by `//` and the halves are exchanged: is the odd row in the right half?"""

    class Exchanged(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            half = x.shape[0] // 2
            return torch.cat([x[half:], x[:half] * 2])

    return Exchanged(), (tensor("batch", 3),)


@case(dims={"batch": (6, 9, 1, 0)}, topics=("dynamic shapes",))
def middle_by_narrow() -> Declaration:
    """`narrow` from a quarter for half of the rows: are start and length computed at run time?"""

    class Middle(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            return x.narrow(0, x.shape[0] // 4, x.shape[0] // 2) * 2

    return Middle(), (tensor("batch", 3),)


@case(dims={"batch": (5, 8, 1, 3, 0)}, topics=("dynamic shapes", "silence"))
def last_three() -> Declaration:
    """`x[-3:]` of fewer than three rows returns all: is the output length still declared as three?"""

    class LastThree(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            return x[-3:] * 2

    return LastThree(), (tensor("batch", 3),)


@case(dims={"batch": (5, 8, 1, 0)}, topics=("dynamic shapes",))
def differences_of_neighbours() -> Declaration:
    """`x[1:] - x[:-1]` has one row less, but none for an empty input: does the export require two rows?"""

    class Differences(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            return x[1:] - x[:-1]

    return Differences(), (tensor("batch", 3),)


@case(dims={"rows": (4, 7, 1, 0), "others": (4, 7, 1, 0)}, topics=("dynamic shapes", "equal sizes"))
def two_sizes_forced_equal() -> Declaration:
    """Two inputs are concatenated side by side, so their rows must match: can two names be one size?"""

    class SideBySide(nn.Module):
        def forward(self, x: Tensor, y: Tensor) -> Tensor:
            return torch.cat([x, y], 1) * 2

    return SideBySide(), (tensor("rows", 3), tensor("others", 2))


@case(dims={"past": (3, 4, 1, 0), "seq": (2, 5, 1, 0)}, topics=("dynamic shapes", "equal sizes"))
def sum_of_two_lengths() -> Declaration:
    """A third input is as long as two others together: can its axis be declared dynamic?"""

    class Masked(nn.Module):
        def forward(self, past: Tensor, x: Tensor, mask: Tensor) -> Tensor:
            return torch.cat([past, x]) * mask[:, None]

    return Masked(), (tensor("past", 3), tensor("seq", 3), tensor("past+seq"))


@case(dims={"rows": (4, 7, 1, 3), "others": (5, 2, 1, 6)}, topics=("dynamic shapes", "rewritten"))
def shorter_of_two() -> Declaration:
    """The smaller of two sizes by `torch.sym_min`, without a branch: is it right when the other is smaller?"""

    class Shorter(nn.Module):
        def forward(self, x: Tensor, y: Tensor) -> Tensor:
            kept = torch.sym_min(x.shape[0], y.shape[0])
            return x[:kept] - y[:kept]

    return Shorter(), (tensor("rows", 3), tensor("others", 3))


@case(dims={"batch": (4, 7, 1, 0), "width": (5, 1)}, topics=("dynamic shapes", "broadcasting"))
def parameter_broadcast_later() -> Declaration:
    """Five weights match five columns, but could broadcast to one: may the axis still be dynamic?"""

    class Shifted(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.shift = nn.Parameter(torch.randn(5))

        def forward(self, x: Tensor) -> Tensor:
            return x + self.shift

    return Shifted(), (tensor("batch", "width"),)


@case(dims={"width": (5, 8, 1, 0)}, topics=("dynamic shapes", "silence"))
def squeezed_only_at_one() -> Declaration:
    """`squeeze` removes an axis of size 1: does it at a size other than the example's?"""

    class Squeezed(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            return x.squeeze(1) * 2

    return Squeezed(), (tensor(4, "width", 3),)


@case(dims={"batch": (2, 3, 1, 0), "seq": (5, 8, 1, 0)}, topics=("dynamic shapes", "masks"))
def causal_mask() -> Declaration:
    """A triangular mask as large as the sequence: is it built at run time?"""

    class Causal(nn.Module):
        def forward(self, scores: Tensor) -> Tensor:
            seq = scores.shape[1]
            allowed = torch.tril(torch.ones(seq, seq, dtype=torch.bool))
            return scores.masked_fill(~allowed, -100).softmax(-1)

    return Causal(), (tensor("batch", "seq", "seq"),)


@case(dims={"batch": (2, 3, 1, 0), "seq": (5, 8, 1, 0)}, topics=("dynamic shapes", "slices"))
def positions_from_a_table() -> Declaration:
    """A table of sixteen positions is cut to the sequence: does the export limit the length to below sixteen?"""

    class AddPositions(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("table", torch.randn(16, 4))

        def forward(self, x: Tensor) -> Tensor:
            return x + self.table[: x.shape[1]]

    return AddPositions(), (tensor("batch", "seq", 4),)


@case(dims={"batch": (2, 3, 1, 0), "width": (6, 9, 1, 8)}, topics=("dynamic shapes", "padding"))
def summed_in_fours() -> Declaration:
    """Padded to a multiple of four, then summed in fours: is the padding computed for each width?"""

    class InFours(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            padded = F.pad(x, (0, -x.shape[1] % 4), value=1.0)
            return padded.view(x.shape[0], padded.shape[1] // 4, 4).sum(-1)

    return InFours(), (tensor("batch", "width"),)


@case(dims={"batch": (2, 3, 1, 0), "width": (6, 9, 1)}, topics=("dynamic shapes", "windows"))
def windows_along_a_moving_axis() -> Declaration:
    """`unfold` creates a window per position: does their number follow the length?"""

    class MovingMean(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            return F.pad(x, (2, 0)).unfold(1, 3, 1).mean(-1)

    return MovingMean(), (tensor("batch", "width"),)


@case(dims={"width": (8, 11, 3)}, topics=("dynamic shapes", "bounds"))
def three_at_least() -> Declaration:
    """A convolution without padding needs three columns: is the axis refused because of an undeclared bound?"""
    return nn.Sequential(nn.Conv1d(2, 4, 3), nn.ReLU()), (tensor(2, 2, "width"),)


@case(dims={"width": (6, 9, 1, 0)}, topics=("dynamic shapes", "sorting"))
def top_half() -> Declaration:
    """The `k` of `topk` comes from a size: is it specialised to the example?"""

    class TopHalf(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            return x.topk(x.shape[1] // 2).values

    return TopHalf(), (tensor(4, "width"),)


@case(dims={"batch": (7, 9, 1, 2, 0)}, topics=("dynamic shapes", "containers"))
def thirds() -> Declaration:
    """`tensor_split` in three gives the first parts an extra row: is it right at the next size?"""

    class Thirds(nn.Module):
        def forward(self, x: Tensor) -> tuple[Tensor, ...]:
            return x.tensor_split(3)

    return Thirds(), (tensor("batch", 3),)


@case(dims={"batch": (5, 8, 1, 0)}, topics=("dynamic shapes", "containers"))
def split_at_half() -> Declaration:
    """`split` into computed sizes: may the second be the remainder?"""

    class Split(nn.Module):
        def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
            half = x.shape[0] // 2
            first, second = torch.split(x, [half, x.shape[0] - half])
            return first * 2, second * 3

    return Split(), (tensor("batch", 3),)


@case(dims={"batch": (4, 7, 1, 0)}, topics=("dynamic shapes", "silence"))
def sizes_as_a_tensor() -> Declaration:
    """Sizes become data through `torch.tensor`: are they read at run time?"""

    class Sizes(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            return x * torch.tensor([x.shape[0], x.shape[1], x.numel()])

    return Sizes(), (tensor("batch", 3),)


@case(dims={"width": (5, 8, 1, 0)}, topics=("dynamic shapes",))
def weighted_by_position() -> Declaration:
    """`linspace` over a size, where one step is only its start: do the steps follow the size?"""

    class Weighted(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            return x * torch.linspace(1, 2, x.shape[1])

    return Weighted(), (tensor(3, "width"),)
