"""Lengths that depend on data."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from exportlab.cases import Declaration, case
from exportlab.specs import flags, integers, tensor


@case(dims={"batch": (4, 7, 1, 0)}, topics=("data-dependent shapes",))
def positions_of_positives() -> Declaration:
    """`nonzero` returns a row per match: may the result have any length?"""

    class Positives(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            return (x > 0).nonzero()

    return Positives(), (tensor("batch", 3),)


@case(dims={"batch": (6, 9, 1, 0)}, topics=("data-dependent shapes", "masks"))
def rows_above_zero() -> Declaration:
    """Rows selected by a mask pass through a layer: does it accept any number of rows, even zero?"""

    class Selected(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.linear = nn.Linear(3, 2)

        def forward(self, x: Tensor) -> Tensor:
            return self.linear(x[x.sum(1) > 0])

    return Selected(), (tensor("batch", 3),)


@case(dims={"batch": (6, 9, 1, 0)}, topics=("data-dependent shapes", "masks"))
def selected_and_put_back() -> Declaration:
    """Selected rows are changed and written back by the same mask: do both sizes agree?"""

    class Changed(nn.Module):
        def forward(self, x: Tensor, mask: Tensor) -> Tensor:
            result = x.clone()
            result[mask] = x[mask].cumsum(0)
            return result

    return Changed(), (tensor("batch", 3), flags("batch"))


@case(dims={"batch": (6, 9, 1, 0)}, topics=("data-dependent shapes", "silence"))
def divided_by_the_number_found() -> Declaration:
    """The number of selected rows is used as a number: is it computed again for other values?"""

    class PerFound(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            return x / (x[x > 0].shape[0] + 1)

    return PerFound(), (tensor("batch", 3),)


@case(dims={"batch": (4, 7, 1, 0)}, topics=("data-dependent shapes",))
def length_from_item() -> Declaration:
    """An input gives the length of a new tensor: is it read at run time?"""

    class Repeated(nn.Module):
        def forward(self, x: Tensor, times: Tensor) -> Tensor:
            return torch.ones(times.item(), 3) * x.sum(0)

    return Repeated(), (tensor("batch", 3), integers(low=1, high=6))


@case(dims={"width": (8, 11, 1, 0)}, topics=("data-dependent shapes",))
def first_n_unchecked() -> Declaration:
    """`x[:, :n]` with an unchecked `n` from an input: is the slice clamped as in eager?"""

    class FirstN(nn.Module):
        def forward(self, x: Tensor, n: Tensor) -> Tensor:
            return x[:, : n.item()] * 2

    return FirstN(), (tensor(2, "width"), integers(low=-3, high=12))


@case(dims={"batch": (4, 7, 1, 0)}, topics=("data-dependent shapes",))
def rows_repeated_by_counts() -> Declaration:
    """`repeat_interleave` with counts, some zero: is the output length their sum?"""

    class Repeated(nn.Module):
        def forward(self, x: Tensor, counts: Tensor) -> Tensor:
            return x.repeat_interleave(counts, dim=0) * 2

    return Repeated(), (tensor("batch", 3), integers("batch", high=4))


@case(dims={"tokens": (9, 12, 1)}, topics=("data-dependent shapes", "sorting"))
def unique_tokens() -> Declaration:
    """`unique` with inverse and counts: is the number of values right, and are they sorted?"""

    class Unique(nn.Module):
        def forward(self, tokens: Tensor) -> tuple[Tensor, ...]:
            return torch.unique(tokens, return_inverse=True, return_counts=True)

    return Unique(), (integers("tokens", high=5),)


@case(dims={"tokens": (9, 12, 1)}, topics=("data-dependent shapes",))
def runs_of_tokens() -> Declaration:
    """Repeated tokens are merged and blanks removed, as in CTC decoding: is the result right?"""

    class Collapsed(nn.Module):
        def forward(self, tokens: Tensor) -> Tensor:
            kept = torch.unique_consecutive(tokens)
            return kept[kept != 0]

    return Collapsed(), (integers("tokens", high=3),)


@case(dims={"width": (6, 9, 1)}, topics=("data-dependent shapes", "ragged"))
def ragged_rows() -> Declaration:
    """Rows are cut to their own lengths, by a list from a tensor, and padded again: is the final length right?"""

    class Ragged(nn.Module):
        def forward(self, x: Tensor, lengths: Tensor) -> Tensor:
            rows = [row[:length] for row, length in zip(x, lengths.tolist(), strict=True)]
            return nn.utils.rnn.pad_sequence(rows, batch_first=True, padding_value=-1.0)

    return Ragged(), (tensor(3, "width"), integers(3, low=1, high=5))


@case(dims={"width": (6, 9, 1, 0)}, topics=("data-dependent shapes", "ragged", "rewritten"))
def ragged_rows_by_mask() -> Declaration:
    """The same with `where` at full width: does every exporter accept it?"""

    class Masked(nn.Module):
        def forward(self, x: Tensor, lengths: Tensor) -> Tensor:
            return x.where(torch.arange(x.shape[1]) < lengths[:, None], -1.0)

    return Masked(), (tensor(3, "width"), integers(3, low=1, high=5))


@case(dims={"rest": (6, 9, 1, 0)}, topics=("data-dependent shapes", "ragged"))
def split_by_lengths() -> Declaration:
    """Sequences are concatenated, and a tensor gives their lengths: can `split` use run-time sizes?"""

    class Sums(nn.Module):
        def forward(self, head: Tensor, rest: Tensor, lengths: Tensor) -> Tensor:
            x = torch.cat([head, rest])
            first, second = lengths.tolist()
            parts = x.split([first, second, x.shape[0] - first - second])
            return torch.stack([part.sum(0) for part in parts])

    return Sums(), (tensor(6, 3), tensor("rest", 3), integers(2, low=1, high=4))


@case(dims={"batch": (4, 7, 1)}, topics=("data-dependent shapes", "masks"))
def arange_to_the_longest() -> Declaration:
    """A mask is as wide as the longest length: is it computed for the current call?"""

    class MaskOf(nn.Module):
        def forward(self, lengths: Tensor) -> Tensor:
            return torch.arange(lengths.max().item()) < lengths[:, None]

    return MaskOf(), (integers("batch", low=1, high=9),)


@case(dims={"batch": (4, 7, 1, 0)}, topics=("data-dependent shapes", "silence"))
def bins_counted() -> Declaration:
    """`bincount` has as many bins as the largest value requires: is it dynamic in the exported model?"""

    class Counted(nn.Module):
        def forward(self, values: Tensor) -> Tensor:
            return torch.bincount(values)

    return Counted(), (integers("batch", high=9),)


@case(dims={"batch": (4, 7, 1)}, topics=("data-dependent shapes",))
def classes_as_many_as_seen() -> Declaration:
    """`one_hot` without a number of classes uses the largest value: is the width that of the example?"""

    class OneHot(nn.Module):
        def forward(self, values: Tensor) -> Tensor:
            return nn.functional.one_hot(values)

    return OneHot(), (integers("batch", high=9),)
