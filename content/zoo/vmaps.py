"""One function applied along an axis: `scan`, `map`, `associative_scan`, `vmap`. Python loops and `while_loop` are in loops."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch._higher_order_ops.associative_scan import associative_scan
from torch._higher_order_ops.map import map as map_rows
from torch._higher_order_ops.scan import scan

from exportlab.cases import Declaration, case
from exportlab.specs import flags, tensor


@case(dims={"time": (5, 8, 1)}, topics=("scan", "control flow"))
def scan_two_carries() -> Declaration:
    """A mean and a variance are carried through a scan: are they kept apart?"""

    class Running(nn.Module):
        def step(self, carried: tuple[Tensor, Tensor], row: Tensor) -> tuple[tuple[Tensor, Tensor], Tensor]:
            mean, spread = carried
            moved = mean * 0.9 + row * 0.1
            return (moved, spread * 0.5 + (row - moved) ** 2), row - mean

        def forward(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
            (mean, spread), differences = scan(self.step, (torch.zeros(3), torch.ones(3)), x)
            return mean, spread, differences

    return Running(), (tensor("time", 3),)


@case(dims={"time": (5, 8, 1)}, topics=("scan", "control flow"))
def scan_backwards() -> Declaration:
    """Discounted sums from last to first row: is the order of rows and results right?"""

    class Returns(nn.Module):
        def forward(self, rewards: Tensor) -> Tensor:
            return scan(lambda total, row: (total * 0.9 + row, total * 0.9 + row), torch.zeros(3), rewards, reverse=True)[1]

    return Returns(), (tensor("time", 3),)


@case(dims={"time": (5, 8, 1), "batch": (3, 4, 1, 2)}, topics=("scan", "control flow", "recurrent"))
def scan_with_layers() -> Declaration:
    """A recurrent cell over time, with layers from the enclosing module: are weights found and stored once?"""

    class Recurrent(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inward, self.onward = nn.Linear(4, 5), nn.Linear(5, 5, bias=False)

        def step(self, state: Tensor, row: Tensor) -> tuple[Tensor, Tensor]:
            state = torch.tanh(self.inward(row) + self.onward(state))
            return state, state * 2

        def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
            return scan(self.step, x.new_zeros(x.shape[1], 5), x)

    return Recurrent(), (tensor("time", "batch", 4),)


@case(dims={"time": (5, 8, 1)}, topics=("scan", "control flow"))
def scan_of_columns() -> Declaration:
    """A scan over the second axis with three outputs of three dtypes: are they stacked along the right axis?"""

    class Columns(nn.Module):
        def forward(self, x: Tensor) -> tuple[Tensor, tuple[Tensor, Tensor, Tensor]]:
            return scan(self.step, torch.zeros(3), x, dim=1)

        def step(self, total: Tensor, column: Tensor) -> tuple[Tensor, tuple[Tensor, Tensor, Tensor]]:
            total = total + column
            return total, (total * 2, total > 0, total.argmax())

    return Columns(), (tensor(3, "time"),)


@case(dims={"time": (5, 8, 1)}, topics=("scan", "control flow", "silence"))
def scan_reads_its_start() -> Declaration:
    """The body of a `scan` reads the initial tensor: is it still the initial value, not the state?"""

    class FromStart(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("start", torch.randn(3))

        def forward(self, x: Tensor) -> Tensor:
            return scan(lambda state, row: (state * 0.5 + self.start, state + row), self.start, x)[1]

    return FromStart(), (tensor("time", 3),)


@case(dims={"batch": (4, 7, 1)}, topics=("map", "control flow"))
def mapped_rows() -> Declaration:
    """`map` calls a function with a layer for each row: is the body exported once?"""

    class Mapped(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.linear = nn.Linear(3, 2)

        def forward(self, x: Tensor, shift: Tensor) -> Tensor:
            return map_rows(lambda row, shift: self.linear(row - row.mean()) + shift, x, shift)

    return Mapped(), (tensor("batch", 3), tensor(2))


@case(dims={"batch": (4, 7, 1)}, topics=("map", "control flow"))
def branch_for_each_row() -> Declaration:
    """A `cond` inside a `map`: does each row choose its own branch?"""

    class EachRow(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            return map_rows(lambda row: torch.cond(row.sum() > 0, torch.exp, lambda row: row - 1, (row,)), x)

    return EachRow(), (tensor("batch", 3),)


@case(dims={"time": (5, 8, 1)}, topics=("scan", "control flow"))
def associative_products() -> Declaration:
    """A linear recurrence by `associative_scan` of pairs, as in state space models: is the order right?"""

    class LinearRecurrence(nn.Module):
        def joined(self, left: tuple[Tensor, Tensor], right: tuple[Tensor, Tensor]) -> tuple[Tensor, Tensor]:
            return left[0] * right[0], left[1] * right[0] + right[1]

        def forward(self, decay: Tensor, x: Tensor) -> Tensor:
            return associative_scan(self.joined, (decay, x), dim=0, combine_mode="generic")[1]

    return LinearRecurrence(), (tensor("time", 3), tensor("time", 3))


@case(dims={"batch": (4, 7, 1)}, topics=("vmap",))
def vmap_of_a_product() -> Declaration:
    """A function of two vectors, mapped over rows of two matrices: which operator does the product become?"""

    class Products(nn.Module):
        def forward(self, x: Tensor, y: Tensor) -> Tensor:
            return torch.vmap(lambda a, b: torch.dot(a, b) / (1 + a.norm()))(x, y)

    return Products(), (tensor("batch", 3), tensor("batch", 3))


@case(dims={"batch": (4, 7, 1, 0)}, topics=("vmap",))
def vmap_of_other_axes() -> Declaration:
    """`vmap` over the second axis of one input, not over the other, with the output axis last: is it right?"""

    class OtherAxes(nn.Module):
        def forward(self, x: Tensor, matrix: Tensor) -> Tensor:
            return torch.vmap(torch.mv, in_dims=(None, 1), out_dims=1)(matrix, x).softmax(0)

    return OtherAxes(), (tensor(3, "batch"), tensor(2, 3))


@case(dims={"rows": (4, 7, 1, 3), "others": (5, 2, 1, 6)}, topics=("vmap", "dynamic shapes"))
def vmap_in_vmap() -> Declaration:
    """All distances between two sets of points by two `vmap`s: are both axes dynamic?"""

    class Distances(nn.Module):
        def forward(self, x: Tensor, y: Tensor) -> Tensor:
            return torch.vmap(lambda a: torch.vmap(lambda b: (a - b).abs().sum() * a[0])(y))(x)

    return Distances(), (tensor("rows", 3), tensor("others", 3))


@case(dims={"batch": (4, 7, 1, 0)}, topics=("vmap", "layers"))
def vmap_of_a_module() -> Declaration:
    """A module for one row, mapped over rows with shared weights: is it exported for a batch?"""

    class ByRow(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.row = nn.Sequential(nn.Linear(3, 4), nn.LayerNorm(4), nn.Linear(4, 2))

        def forward(self, x: Tensor) -> Tensor:
            return torch.vmap(self.row)(x)

    return ByRow(), (tensor("batch", 3),)


@case(dims={"batch": (4, 7, 1, 0)}, topics=("vmap", "layers"))
def vmap_with_dropout_off() -> Declaration:
    """Dropout in evaluation mode inside `vmap` with a randomness setting: is it removed?"""

    class Dropped(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.row = nn.Sequential(nn.Linear(3, 4), nn.Dropout(0.5), nn.ReLU())

        def forward(self, x: Tensor) -> Tensor:
            return torch.vmap(self.row, randomness="different")(x)

    return Dropped(), (tensor("batch", 3),)


@case(dims={"batch": (4, 7, 1, 0)}, topics=("vmap", "layers"))
def ensemble() -> Declaration:
    """Three models as one: stacked weights and `functional_call` under `vmap`. Are the stacked weights stored?"""

    class Ensemble(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.members = nn.ModuleList(nn.Linear(3, 2) for _ in range(3))

        def forward(self, x: Tensor) -> Tensor:
            weights, buffers = torch.func.stack_module_state(list(self.members))
            called = torch.vmap(lambda w, b: torch.func.functional_call(self.members[0], (w, b), (x,)))
            return called(weights, buffers).std(0)

    return Ensemble(), (tensor("batch", 3),)


@case(dims={"batch": (2, 3, 1), "seq": (5, 7, 1)}, topics=("vmap", "masks"))
def mask_by_four_vmaps() -> Declaration:
    """An attention mask from a rule per position by four `vmap`s, as in transformers: is it right at every size?"""

    class Masks(nn.Module):
        def forward(self, scores: Tensor, padding: Tensor) -> Tensor:
            def allowed(b: Tensor, h: Tensor, q: Tensor, k: Tensor) -> Tensor:
                return (k <= q) & padding[b, k]

            axes = [torch.arange(size) for size in scores.shape]
            for position in (3, 2, 1, 0):
                allowed = torch.vmap(allowed, in_dims=tuple(0 if i == position else None for i in range(4)))
            return scores.masked_fill(~allowed(*axes), -100).softmax(-1)

    return Masks(), (tensor("batch", 2, "seq", "seq"), flags("batch", "seq"))


@case(dims={"batch": (4, 7, 1)}, topics=("vmap", "silence"))
def vmap_in_chunks() -> Declaration:
    """`vmap` in chunks of two rows to save memory: does the number of chunks follow the batch?"""

    class Chunked(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            return torch.vmap(lambda row: row.cumsum(0) * row.max(), chunk_size=2)(x)

    return Chunked(), (tensor("batch", 3),)
