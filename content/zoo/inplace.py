"""Writing into tensors: a copy, a part of it, an input."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from exportlab.cases import Declaration, case
from exportlab.specs import integers, tensor


@case(dims={"batch": (4, 7, 1, 0)}, topics=("mutation", "indexing"))
def index_update() -> Declaration:
    """Does `x[..., index] = update` on a copy write to the columns of the run-time index?"""

    class IndexUpdate(nn.Module):
        def forward(self, x: Tensor, index: Tensor, update: Tensor) -> Tensor:
            copied = x.clone()
            copied[..., index] = update
            return copied

    return IndexUpdate(), (tensor("batch", 3, 8), integers(1, high=8), tensor("batch", 3, 1))


@case(dims={"batch": (4, 7, 1, 0)}, topics=("mutation", "indexing"))
def masked_set() -> Declaration:
    """Does `x[mask] = value` compute the mask at run time?"""

    class MaskedSet(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            copied = x.clone()
            copied[copied < 0] = 0.5
            return copied

    return MaskedSet(), (tensor("batch", 5),)


@case(dims={"batch": (4, 7, 1, 0)}, topics=("mutation", "state", "silence"))
def counter() -> Declaration:
    """A buffer counts the calls: does an exported model keep the count between calls?"""

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
    """A slice is a view: does `add_` on it change the original tensor?"""

    class SliceAdd(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            copied = x.clone()
            copied[1:, :2].add_(10)
            return copied

    return SliceAdd(), (tensor("batch", 3),)


@case(dims={"batch": (4, 7, 1, 0)}, topics=("mutation", "inputs"))
def input_added_to() -> Declaration:
    """`x.add_(1)` changes the caller's tensor: is it refused, or computed without changing the input?"""

    class AddedTo(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            x.add_(1)
            return x * 2

    return AddedTo(), (tensor("batch", 3),)


@case(dims={"batch": (4, 7, 1, 0)}, topics=("mutation", "inputs"))
def first_layer_in_place() -> Declaration:
    """A first layer `ReLU(inplace=True)` changes the input: does it stop the export of a common model?"""
    return nn.Sequential(nn.ReLU(inplace=True), nn.Linear(3, 2)), (tensor("batch", 3),)


@case(dims={"batch": (4, 7, 1, 0)}, topics=("mutation", "inputs", "views"))
def column_of_an_input_cleared() -> Declaration:
    """A view of an input is zeroed before the whole input is used: does the exported model include the change?"""

    class Cleared(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            x[:, 0].zero_()
            return x.cumsum(1)

    return Cleared(), (tensor("batch", 3),)


@case(dims={"batch": (4, 7, 1, 0)}, topics=("mutation", "indexing"))
def accumulated_by_index() -> Declaration:
    """`index_put_` with `accumulate` and a repeated row: are both contributions added?"""

    class Accumulated(nn.Module):
        def forward(self, rows: Tensor, x: Tensor) -> Tensor:
            return torch.ones(5, 3).index_put_((rows,), x, accumulate=True)

    return Accumulated(), (integers("batch", high=5), tensor("batch", 3))


@case(dims={"batch": (5, 8, 1, 0)}, topics=("mutation", "views"))
def view_of_a_view() -> Declaration:
    """A slice of a strided slice is multiplied: are exactly those elements changed?"""

    class ViewOfAView(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            copied = x.clone()
            copied[1:][:, ::2].mul_(10)
            return copied

    return ViewOfAView(), (tensor("batch", 5),)


@case(dims={"batch": (4, 7, 1, 0)}, topics=("mutation", "views"))
def transposed_view() -> Declaration:
    """Writing a row of the transpose writes a column: is the result in the right orientation?"""

    class Transposed(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            copied = x.clone()
            copied.t()[1] = 5
            return copied

    return Transposed(), (tensor("batch", 3),)


@case(dims={"batch": (4, 7, 1, 0)}, topics=("mutation", "views", "silence"))
def read_through_another_view() -> Declaration:
    """A flat view is read after the matrix is written: does it contain the new values?"""

    class ReadLater(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            copied = x.clone()
            flat = copied.view(-1)
            copied[:, 0] = 7
            return flat * 2

    return ReadLater(), (tensor("batch", 3),)


@case(dims={"batch": (4, 7, 1, 0)}, topics=("mutation", "views", "silence"))
def columns_swapped_by_views() -> Declaration:
    """`x[:, 0], x[:, 1] = x[:, 1], x[:, 0]` doesn't swap in eager, because the operands are views: does the export swap?"""

    class Swapped(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            copied = x.clone()
            copied[:, 0], copied[:, 1] = copied[:, 1], copied[:, 0]
            return copied

    return Swapped(), (tensor("batch", 3),)


@case(dims={"batch": (4, 7, 1, 0)}, topics=("mutation", "views"))
def chunk_activated() -> Declaration:
    """An in-place activation on one of two chunks: is the other half unchanged?"""

    class HalfActivated(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            copied = x.clone()
            first, _ = copied.chunk(2, dim=1)
            first.sigmoid_()
            return copied

    return HalfActivated(), (tensor("batch", 6),)


@case(dims={"batch": (4, 7, 1, 0)}, topics=("mutation", "views"))
def diagonal_written() -> Declaration:
    """A diagonal is a view too: does adding to it change the matrix?"""

    class OnDiagonal(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            copied = x.clone()
            copied.diagonal(dim1=1, dim2=2).add_(10)
            return copied

    return OnDiagonal(), (tensor("batch", 3, 3),)


@case(dims={"batch": (4, 7, 1, 0)}, topics=("mutation", "activations", "silence"))
def residual_overwritten() -> Declaration:
    """An in-place activation changes the residual that is added later: is the changed value added?"""

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
    """`kept = y; y += 1` changes both names: does `kept` change in the exported model?"""

    class TwoNames(nn.Module):
        def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
            y = x * 2
            kept = y
            y += 1
            return kept.exp(), y

    return TwoNames(), (tensor("batch", 3),)


@case(dims={"batch": (4, 7, 1, 0)}, topics=("mutation", "aliasing", "silence"))
def detached_and_added_to() -> Declaration:
    """`detach()` shares memory: does adding to the result change the original tensor?"""

    class Detached(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            copied = x.clone()
            copied.detach().add_(1)
            return copied

    return Detached(), (tensor("batch", 3),)


@case(dims={"batch": (4, 7, 1, 0)}, topics=("mutation", "aliasing", "silence"))
def added_to_after_dropout() -> Declaration:
    """In evaluation mode, dropout returns its input: does adding to its result change the other output?"""

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
    """`y.to(y.dtype)` is `y`: does adding to some of its rows change exactly those of `y`?"""

    class OfTheSameType(nn.Module):
        def forward(self, x: Tensor, further: Tensor) -> tuple[Tensor, Tensor]:
            y = x * 2
            same = y.to(x.dtype)
            same[1:] += further
            return same, y

    return OfTheSameType(), (tensor("batch", 3), tensor(3))


@case(dims={"batch": (4, 7, 1, 0)}, topics=("mutation", "aliasing", "silence"))
def changed_through_data() -> Declaration:
    """The same write through `.data`, as in older code: is it exported?"""

    class ThroughData(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            copied = x.clone()
            copied.data.mul_(2)
            return copied + 1

    return ThroughData(), (tensor("batch", 3),)


@case(dims={"batch": (4, 7, 1, 0)}, topics=("mutation", "out"))
def into_an_output_argument() -> Declaration:
    """`out=` writes into a column of an existing tensor: are the results in it?"""

    class IntoOut(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            result = torch.ones(x.shape[0], 2)
            torch.add(x, 1, out=result[:, 1])
            return result

    return IntoOut(), (tensor("batch"),)


@case(dims={"batch": (4, 7, 1, 0)}, topics=("mutation", "dtypes"))
def copied_into_integers() -> Declaration:
    """`copy_` casts to the target's dtype and broadcasts: does the exported model too?"""

    class Copied(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            counts = torch.zeros(x.shape[0], 3, dtype=torch.int64)
            return counts.copy_(x[:, :1] * 10)

    return Copied(), (tensor("batch", 3),)


@case(dims={"batch": (4, 7, 1, 0)}, topics=("mutation",))
def filled_zeroed_and_set() -> Declaration:
    """`fill_`, `zero_`, `masked_fill_` and a strided write in sequence: is the order kept?"""

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
    """`expand` repeats one column four times, and `fill_` writes through it: does the column change?"""

    class Filled(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            copied = x.clone()
            copied[:, :1].expand(-1, 4).fill_(2)
            return copied

    return Filled(), (tensor("batch", 3),)


@case(dims={"batch": (4, 7, 1, 0)}, topics=("mutation", "resize"))
def resized_from_nothing() -> Declaration:
    """An empty tensor is resized and written: may a tensor change its size?"""

    class Resized(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            return x.new_empty(0).resize_(x.shape).copy_(x) * 2

    return Resized(), (tensor("batch", 3),)
