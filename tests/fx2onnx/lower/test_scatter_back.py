"""Writes into a part of what an operator shows or hands on: the part is found where it lies in the memory of the owner."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch import Tensor, nn
from torch.export import Dim
from torch.nn import functional as F

from exportlab import verify
from fx2onnx import to_onnx
from fx2onnx.errors import UnsupportedOps

UNCHANGED: dict[str, Callable[[Tensor], Tensor]] = {
    "to its dtype": lambda y: y.to(y.dtype),
    "to its device": lambda y: y.to("cpu"),
    "to another's": lambda y: y.to(y * 1),
    "type as": lambda y: y.type_as(y * 1),
    "dropout": lambda y: F.dropout(y, training=False),
    "dropout of nothing": lambda y: F.dropout(y, 0.0, training=True),
    "dropout of a view": lambda y: F.dropout(y.view(-1, 3), training=False),
    "dropout twice": lambda y: F.dropout(F.dropout(y, training=False)[:], training=False),
    "contiguous": lambda y: y.contiguous(),
    "detach": lambda y: y.detach(),
    "positive": torch.positive,
    "float": lambda y: y.float(),
}


VIEWS: dict[str, Callable[[Tensor], Tensor]] = {
    "transposed by einsum": lambda y: torch.einsum("ij->ji", y),
    "as it is by einsum": lambda y: torch.einsum("ij->ij", y),
    "broadcast": lambda y: torch.broadcast_tensors(y, torch.ones(1, 3))[0],
}


class Writes(nn.Module):
    """Adds to every row but the first of what the function returns."""

    def __init__(self, function: Callable[[Tensor], Tensor]) -> None:
        super().__init__()
        self.function = function

    def forward(self, x: Tensor, further: Tensor) -> tuple[Tensor, Tensor]:
        y = x * 2
        part = self.function(y)
        part[1:] += further
        return part, y


@pytest.mark.parametrize("capture", ["run", "torch.export"])
@pytest.mark.parametrize("name", UNCHANGED)
def test_a_part_of_what_changes_nothing_is_written(name: str, capture: str) -> None:
    model, x, further = Writes(UNCHANGED[name]), torch.rand(4, 3), torch.rand(3)
    program = to_onnx(model, (x, further), dynamic_shapes=({0: Dim("rows", min=0)}, None), capture=capture)
    verify(program, model, [(x, further), (torch.rand(7, 3), further), (torch.rand(0, 3), further)]).check()


@pytest.mark.parametrize("dtype", [torch.float32, torch.int64])
@pytest.mark.parametrize("capture", ["run", "torch.export"])
@pytest.mark.parametrize("name", VIEWS)
def test_a_part_of_a_view_is_written(name: str, capture: str, dtype: torch.dtype) -> None:
    model, one = Writes(VIEWS[name]), torch.ones((), dtype=dtype)
    x, other = (torch.arange(3 * rows).reshape(rows, 3).to(dtype) for rows in (4, 7))
    program = to_onnx(model, (x, one), dynamic_shapes=({0: Dim("rows")}, None), capture=capture)
    verify(program, model, [(x, one), (other, one)]).check()


@pytest.mark.parametrize("capture", ["run", "torch.export"])
def test_a_write_into_windows_that_overlap_is_refused(capture: str) -> None:
    model = Writes(lambda y: y.unfold(1, 2, 1))
    with pytest.raises(UnsupportedOps, match="windows that overlap, so the result is not defined"):
        to_onnx(model, (torch.rand(4, 3), torch.ones(())), capture=capture)


class Resized(nn.Module):
    """Makes an empty tensor as large as its input, writes into it and into a part of it."""

    def __init__(self, rows: int) -> None:
        super().__init__()
        self.rows = rows

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        y = x.new_empty(self.rows, 3)
        y.resize_(x.shape).copy_(x)
        y[1:] *= 3
        return y, y.mT * 2


def test_an_empty_tensor_that_is_resized_is_written() -> None:
    model, x = Resized(0), torch.rand(4, 3)
    program = to_onnx(model, (x,), dynamic_shapes=({0: Dim("rows", min=0)},))
    verify(program, model, [(x,), (torch.rand(7, 3),), (torch.rand(1, 3),), (x[:0],)]).check()


def test_a_tensor_with_elements_is_not_resized() -> None:
    with pytest.raises(UnsupportedOps, match="only a tensor without elements"):
        to_onnx(Resized(2), (torch.rand(4, 3),), dynamic_shapes=({0: "rows"},))


RESULTS: dict[str, Callable[[Tensor], tuple[Tensor, ...]]] = {
    "sort": lambda y: torch.sort(y, -1),
    "topk": lambda y: torch.topk(y, 2),
    "max": lambda y: torch.max(y, 0),
    "a sort of a sort": lambda y: torch.sort(torch.sort(y, -1)[0], 0),
    "split": lambda y: torch.split(y, [1, 2], 1),
    "unbind": lambda y: torch.unbind(y, 1),
}


class WritesResult(nn.Module):
    """Adds to all but the first row of one of several results, and returns what it, the rest and a view of it show before and after."""

    def __init__(self, function: Callable[[Tensor], tuple[Tensor, ...]], which: int) -> None:
        super().__init__()
        self.function, self.which = function, which

    def forward(self, x: Tensor) -> tuple[Tensor, ...]:
        y = x * 2
        results = self.function(y)
        view = results[self.which].view_as(results[self.which])[..., :1]
        before = view + 1
        results[self.which][1:] += 3
        return (*results, view, before, y)


@pytest.mark.parametrize("capture", ["run", "torch.export"])
@pytest.mark.parametrize("which", [0, 1])
@pytest.mark.parametrize("name", RESULTS)
def test_a_part_of_one_of_several_results_is_written(name: str, which: int, capture: str) -> None:
    model = WritesResult(RESULTS[name], which)
    program = to_onnx(model, (torch.rand(4, 3),), dynamic_shapes=({0: Dim("rows", min=3)},), capture=capture)
    verify(program, model, [(torch.rand(rows, 3),) for rows in (3, 5, 7, 16, 17, 31)]).check()


class BallQuery(nn.Module):
    """The nearest points within a ball, as PointNet++ takes them: where there are too few, the first again."""

    def forward(self, points: Tensor, centres: Tensor) -> Tensor:
        count = points.shape[0]
        found = torch.arange(count).repeat(centres.shape[0], 1)
        found[torch.cdist(centres, points) > 0.5] = count
        found = found.sort(-1)[0][:, :3]
        first = found[:, :1].expand_as(found)
        absent = found == count
        found[absent] = first[absent]
        return found


def test_what_sort_returned_is_written_where_a_mask_says_so() -> None:
    def clouds(points: int, centres: int) -> tuple[Tensor, Tensor]:
        generator = torch.Generator().manual_seed(points)
        return torch.rand(points, 3, generator=generator), torch.rand(centres, 3, generator=generator)

    program = to_onnx(BallQuery(), clouds(9, 4), dynamic_shapes=({0: "points"}, {0: "centres"}))
    sizes = [(1, 1), (2, 3), (3, 2), (5, 1), (7, 16), (16, 7), (17, 31), (31, 17)]
    verify(program, BallQuery(), [clouds(*size) for size in sizes]).check()
