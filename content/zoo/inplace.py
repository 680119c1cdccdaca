"""Writing into tensors: a copy, a part of it, an input."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from exportlab.cases import Declaration, case
from exportlab.specs import integers, tensor


@case(dims={"batch": (4, 7, 1, 0)}, topics=("mutation", "indexing"))
def index_update() -> Declaration:
    """Does `x[..., index] = update` on a copy write the columns that the index names at run time?"""

    class IndexUpdate(nn.Module):
        def forward(self, x: Tensor, index: Tensor, update: Tensor) -> Tensor:
            copied = x.clone()
            copied[..., index] = update
            return copied

    return IndexUpdate(), (tensor("batch", 3, 8), integers(1, high=8), tensor("batch", 3, 1))


@case(dims={"batch": (4, 7, 1, 0)}, topics=("mutation", "indexing"))
def masked_set() -> Declaration:
    """Does `x[mask] = value` find another mask for other values?"""

    class MaskedSet(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            copied = x.clone()
            copied[copied < 0] = 0.5
            return copied

    return MaskedSet(), (tensor("batch", 5),)


@case(dims={"batch": (4, 7, 1, 0)}, topics=("mutation", "state", "silence"))
def counter() -> Declaration:
    """A buffer counts the calls: does an exported model remember the last one?"""

    class Counter(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("calls", torch.zeros(()))

        def forward(self, x: Tensor) -> Tensor:
            self.calls.add_(1)
            return x + self.calls

    return Counter(), (tensor("batch", 3),)


@case(dims={"batch": (4, 7, 1, 0)}, topics=("mutation", "views"))
def slice_add() -> Declaration:
    """A slice is a view: does `add_` on it reach the tensor it was taken from?"""

    class SliceAdd(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            copied = x.clone()
            copied[1:, :2].add_(10)
            return copied

    return SliceAdd(), (tensor("batch", 3),)


@case(dims={"batch": (4, 7, 1, 0)}, topics=("mutation", "inputs"))
def input_added_to() -> Declaration:
    """`x.add_(1)` changes the caller's tensor: refused, or computed without changing it?"""

    class AddedTo(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            x.add_(1)
            return x * 2

    return AddedTo(), (tensor("batch", 3),)


@case(dims={"batch": (4, 7, 1, 0)}, topics=("mutation", "inputs"))
def first_layer_in_place() -> Declaration:
    """`ReLU(inplace=True)` comes first and so clears part of the input: does that stop a model that few would change?"""
    return nn.Sequential(nn.ReLU(inplace=True), nn.Linear(3, 2)), (tensor("batch", 3),)


@case(dims={"batch": (4, 7, 1, 0)}, topics=("mutation", "inputs", "views"))
def column_of_an_input_cleared() -> Declaration:
    """A view of an input is set to zero before all of the input is used: is the change seen?"""

    class Cleared(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            x[:, 0].zero_()
            return x.cumsum(1)

    return Cleared(), (tensor("batch", 3),)


@case(dims={"batch": (4, 7, 1, 0)}, topics=("mutation", "indexing"))
def accumulated_by_index() -> Declaration:
    """`index_put_` with `accumulate` names rows twice: are both contributions there?"""

    class Accumulated(nn.Module):
        def forward(self, rows: Tensor, x: Tensor) -> Tensor:
            return torch.ones(5, 3).index_put_((rows,), x, accumulate=True)

    return Accumulated(), (integers("batch", high=5), tensor("batch", 3))


@case(dims={"batch": (5, 8, 1, 0)}, topics=("mutation", "views"))
def view_of_a_view() -> Declaration:
    """A slice of a slice with a step is multiplied: do exactly those elements change?"""

    class ViewOfAView(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            copied = x.clone()
            copied[1:][:, ::2].mul_(10)
            return copied

    return ViewOfAView(), (tensor("batch", 5),)


@case(dims={"batch": (4, 7, 1, 0)}, topics=("mutation", "views"))
def transposed_view() -> Declaration:
    """Writing a row of the transpose is writing a column: does it come back transposed?"""

    class Transposed(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            copied = x.clone()
            copied.t()[1] = 5
            return copied

    return Transposed(), (tensor("batch", 3),)


@case(dims={"batch": (4, 7, 1, 0)}, topics=("mutation", "views", "silence"))
def read_through_another_view() -> Declaration:
    """A flat view is taken, the matrix written, the flat view read: does it hold what was written after it?"""

    class ReadLater(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            copied = x.clone()
            flat = copied.view(-1)
            copied[:, 0] = 7
            return flat * 2

    return ReadLater(), (tensor("batch", 3),)


@case(dims={"batch": (4, 7, 1, 0)}, topics=("mutation", "views", "silence"))
def columns_swapped_by_views() -> Declaration:
    """`x[:, 0], x[:, 1] = x[:, 1], x[:, 0]` does not swap, as the first write is read: does the export swap?"""

    class Swapped(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            copied = x.clone()
            copied[:, 0], copied[:, 1] = copied[:, 1], copied[:, 0]
            return copied

    return Swapped(), (tensor("batch", 3),)


@case(dims={"batch": (4, 7, 1, 0)}, topics=("mutation", "views"))
def chunk_activated() -> Declaration:
    """An activation in place on one of two chunks: is the other half of the tensor as it was?"""

    class HalfActivated(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            copied = x.clone()
            first, _ = copied.chunk(2, dim=1)
            first.sigmoid_()
            return copied

    return HalfActivated(), (tensor("batch", 6),)


@case(dims={"batch": (4, 7, 1, 0)}, topics=("mutation", "views"))
def diagonal_written() -> Declaration:
    """A diagonal is a view too: does adding to it reach the matrix?"""

    class OnDiagonal(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            copied = x.clone()
            copied.diagonal(dim1=1, dim2=2).add_(10)
            return copied

    return OnDiagonal(), (tensor("batch", 3, 3),)


@case(dims={"batch": (4, 7, 1, 0)}, topics=("mutation", "activations", "silence"))
def residual_overwritten() -> Declaration:
    """The activation in place changes what the residual adds later: is it the changed value that is added?"""

    class Residual(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.linear, self.activation = nn.Linear(3, 3), nn.LeakyReLU(0.5, inplace=True)

        def forward(self, x: Tensor) -> Tensor:
            hidden = self.linear(x)
            return self.activation(hidden) + hidden

    return Residual(), (tensor("batch", 3),)


@case(dims={"batch": (4, 7, 1, 0)}, topics=("mutation", "aliasing", "silence"))
def added_to_under_two_names() -> Declaration:
    """`kept = y; y += 1` changes both names: does the kept one change in the file?"""

    class TwoNames(nn.Module):
        def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
            y = x * 2
            kept = y
            y += 1
            return kept.exp(), y

    return TwoNames(), (tensor("batch", 3),)


@case(dims={"batch": (4, 7, 1, 0)}, topics=("mutation", "aliasing", "silence"))
def detached_and_added_to() -> Declaration:
    """`detach()` shares its memory: does adding to it reach the tensor it was detached from?"""

    class Detached(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            copied = x.clone()
            copied.detach().add_(1)
            return copied

    return Detached(), (tensor("batch", 3),)


@case(dims={"batch": (4, 7, 1, 0)}, topics=("mutation", "aliasing", "silence"))
def added_to_after_dropout() -> Declaration:
    """Out of training, dropout returns its input itself: does adding to its result reach what is returned beside it?"""

    class AddedTo(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.project, self.drop = nn.Linear(3, 3), nn.Dropout(0.1)

        def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
            hidden = self.project(x)
            y = self.drop(hidden)
            y += x
            return y, hidden

    return AddedTo().eval(), (tensor("batch", 3),)


@case(dims={"batch": (4, 7, 1, 0)}, topics=("mutation", "aliasing", "dtypes"))
def part_of_a_cast_that_is_none() -> Declaration:
    """`y.to(y.dtype)` is `y`: does adding to some of its rows reach those of `y`, and no others?"""

    class OfTheSameType(nn.Module):
        def forward(self, x: Tensor, further: Tensor) -> tuple[Tensor, Tensor]:
            y = x * 2
            same = y.to(x.dtype)
            same[1:] += further
            return same, y

    return OfTheSameType(), (tensor("batch", 3), tensor(3))


@case(dims={"batch": (4, 7, 1, 0)}, topics=("mutation", "aliasing", "silence"))
def changed_through_data() -> Declaration:
    """The same through `.data`, as older code has it: is it seen?"""

    class ThroughData(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            copied = x.clone()
            copied.data.mul_(2)
            return copied + 1

    return ThroughData(), (tensor("batch", 3),)


@case(dims={"batch": (4, 7, 1, 0)}, topics=("mutation", "out"))
def into_an_output_argument() -> Declaration:
    """`out=` fills one column of a tensor made beforehand: are the results in it?"""

    class IntoOut(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            result = torch.ones(x.shape[0], 2)
            torch.add(x, 1, out=result[:, 1])
            return result

    return IntoOut(), (tensor("batch"),)


@case(dims={"batch": (4, 7, 1, 0)}, topics=("mutation", "dtypes"))
def copied_into_integers() -> Declaration:
    """`copy_` casts to the type of where it copies, and repeats what is too small: does the file?"""

    class Copied(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            counts = torch.zeros(x.shape[0], 3, dtype=torch.int64)
            return counts.copy_(x[:, :1] * 10)

    return Copied(), (tensor("batch", 3),)


@case(dims={"batch": (4, 7, 1, 0)}, topics=("mutation",))
def filled_zeroed_and_set() -> Declaration:
    """`fill_`, `zero_`, `masked_fill_` and a step, one after the other: is the order kept?"""

    class Sequence(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            copied = x.clone()
            copied[:, 1:].fill_(2)
            copied[::2].masked_fill_(copied[::2] < 0, -1)
            copied[:, 3].zero_()
            return copied

    return Sequence(), (tensor("batch", 5),)


@case(dims={"batch": (4, 7, 1, 0)}, topics=("mutation", "views", "broadcasting"))
def filled_through_an_expanded_view() -> Declaration:
    """`expand` shows one column four times, and `fill_` is allowed to write it: does the column change?"""

    class Filled(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            copied = x.clone()
            copied[:, :1].expand(-1, 4).fill_(2)
            return copied

    return Filled(), (tensor("batch", 3),)


@case(dims={"batch": (4, 7, 1, 0)}, topics=("mutation", "resize"))
def resized_from_nothing() -> Declaration:
    """An empty tensor is resized and then copied into: may a tensor change its size?"""

    class Resized(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            return x.new_empty(0).resize_(x.shape).copy_(x) * 2

    return Resized(), (tensor("batch", 3),)
