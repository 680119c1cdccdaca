"""Loops whose iterations test values, that a value ends, and that have loops inside: right at lengths and values that were never run."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.utils import _pytree as pytree

from exportlab import verify
from fx2onnx import to_onnx
from fx2onnx.structure.iteration_shapes import Shape, schedule
from fx2onnx.trace.refusal import TraceUnsupported

ONE = ({0: "rows"},)
TWO = ({0: "rows"}, {0: "others"})
BATCH = ({0: "batch", 1: "time"},)
SCALES = (0.1, 1.0, 5.0)


def either_way(x: Tensor) -> Tensor:
    h = torch.zeros(4)
    for row in x:
        h = h * 0.5 + row if row.sum() > 0 else h - row
    return h


def largest_row(x: Tensor) -> Any:
    best, at = x[0], torch.zeros((), dtype=torch.long)
    for t in range(x.shape[0]):
        if x[t].sum() > best.sum():
            best, at = x[t], at * 0 + t
    return best, at


def list_of_what_is_kept(x: Tensor) -> Tensor:
    h, out = torch.zeros(4), []
    for row in x:
        if row.sum() > 0:
            h = h * 0.5 + row
        out.append(h)
    return torch.stack(out)


def list_of_either(x: Tensor) -> Tensor:
    out = []
    for row in x:
        if row.sum() > 0:
            out.append(row * 2)
        else:
            out.append(row.sin())
    return torch.cat(out[::-1])


def exchanged(x: Tensor) -> Any:
    a, b = torch.zeros(4), torch.ones(4)
    for row in x:
        if row.sum() > 0:
            a, b = b, a + row
        else:
            b = b * 0.5
    return a, b


def two_tests(x: Tensor) -> Any:
    h, c = torch.zeros(4), torch.zeros(4)
    for row in x:
        if row.sum() > 0:
            h = h * 0.5 + row
        if h[0] > 0.3:
            c = c + h
    return h, c


def rows_changed(x: Tensor) -> Tensor:
    y = x.clone()
    for t in range(x.shape[0]):
        if y[t].sum() > 0:
            y[t] = y[t] * 2
    return y


def around_a_loop(x: Tensor) -> Tensor:
    h = torch.zeros(4)
    if x.sum() > 0:
        h = h + 1
    for row in x:
        if row.sum() > 0:
            h = h * 0.5 + row
    return h * 2 if h.sum() > 0 else h - 1


def until_enough(x: Tensor) -> Tensor:
    h = torch.zeros(4)
    for row in x:
        h = h + row
        if h.sum() > 2:
            break
    return h


def until_a_row(x: Tensor) -> Any:
    h, n = torch.zeros(4), torch.zeros(())
    for row in x:
        if row.sum() > 2:
            h = h * 10
            break
        if row[0] > 0:
            n = n + 1
        h = h + row
    return h * 2, n


def bound_inside(x: Tensor) -> Tensor:
    h = torch.zeros(4)
    for row in x:
        h = torch.tanh(h + row)
        out = h * 2
        if out.sum() > 1:
            break
    return out


def best_path(x: Tensor) -> Any:
    steps = torch.arange(16.0).reshape(4, 4) / 8
    score, back = x[0], []
    for t in range(1, x.shape[0]):
        score, best = (score[:, None] + steps + x[t][None]).max(0)
        back.append(best)
    return score, torch.stack(back)


def while_either_way(x: Tensor) -> Tensor:
    h = x.sum(0)
    while h.abs().sum() > 1:
        h = h * 0.5 if h[0] > 0 else h * 0.3 + 0.01
    return h


def while_not_all(x: Tensor) -> Tensor:
    done = x[:, 0] < 0
    while not done.all():
        x = x - 0.2
        done = done | (x[:, 0] < 0.1)
    return x


def while_in_while(x: Tensor) -> Any:
    h, n = x.sum(0), torch.zeros(())
    while h.abs().sum() > 1:
        h = h * 0.9
        while h[0] > 0.5:
            h, n = h * torch.tensor([0.5, 1, 1, 1]), n + 1
    return h, n


def while_in_for(x: Tensor) -> Tensor:
    out = []
    for row in x:
        while row.abs().sum() > 1:
            row = row * 0.7
        out.append(row)
    return torch.stack(out)


def for_in_while(x: Tensor) -> Tensor:
    h = x.sum(0)
    while h.abs().sum() > 1:
        for row in x:
            h = h * 0.9 + row * 0.01
        h = h * 0.5
    return h


OF_ONE: dict[Callable[[Tensor], Any], int] = {  # and how many loops the file has
    **dict.fromkeys((either_way, largest_row, list_of_what_is_kept, list_of_either, exchanged, two_tests, rows_changed), 1),
    **dict.fromkeys((until_enough, until_a_row, bound_inside, best_path, while_either_way, while_not_all), 1),
    **dict.fromkeys((around_a_loop, while_in_while, while_in_for, for_in_while), 2),
}


class Of(nn.Module):
    """A function."""

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__()
        self.function = function

    def forward(self, x: Tensor) -> Any:
        return self.function(x)


class OfTwo(Of):
    """A function of two tensors."""

    def forward(self, x: Tensor, y: Tensor) -> Any:  # type: ignore[override]
        return self.function(x, y)


def is_right(program: Any, module: Of, arguments: tuple[Tensor, ...]) -> bool:
    """Whether a file gives what eager does, where that gives anything."""
    try:
        wanted = pytree.tree_leaves(module.function(*(value.clone() for value in arguments)))
    except (RuntimeError, IndexError, ValueError, UnboundLocalError):
        return True
    return all(torch.allclose(torch.as_tensor(a), b, rtol=1e-3, atol=1e-4) for a, b in zip(program(*arguments), wanted, strict=True))


def loops_in(program: Any) -> int:
    """Count the loops of a file."""
    return sum(node.op_type == "Loop" for node in program.model.graph.all_nodes())


@pytest.mark.parametrize("function", OF_ONE, ids=lambda function: function.__name__)
def test_a_loop_over_rows_is_right_whichever_way_it_goes(function: Callable[[Tensor], Any]) -> None:
    torch.manual_seed(0)
    module = Of(function)
    program = to_onnx(module, (torch.randn(5, 4),), dynamic_shapes=ONE, capture="run")
    assert loops_in(program) == OF_ONE[function]
    for rows in (1, 2, 5, 9, 30, 0):
        for scale in SCALES:
            assert is_right(program, module, (torch.randn(rows, 4) * scale,)), (rows, scale)


def warped(x: Tensor, y: Tensor) -> Tensor:
    """Dynamic time warping."""
    n, m = x.shape[0], y.shape[0]
    costs = x.new_full((n + 1, m + 1), float("inf"))
    costs[0, 0] = 0
    for i in range(n):
        for j in range(m):
            least = torch.minimum(torch.minimum(costs[i, j + 1], costs[i + 1, j]), costs[i, j])
            costs[i + 1, j + 1] = (x[i] - y[j]).abs().sum() + least
    return costs[n, m]


def either_way_in_both(x: Tensor, y: Tensor) -> Tensor:
    h = torch.zeros(3)
    for a in x:
        for b in y:
            h = h * 0.9 + a if (a * b).sum() > 0 else h * 0.8 - b
    return h


def until_enough_of_each(x: Tensor, y: Tensor) -> Tensor:
    h = torch.zeros(3)
    for a in x:
        for b in y:
            h = h * 0.9 + a * b
            if h.sum() > 1:
                break
    return h


@pytest.mark.parametrize("function", [warped, either_way_in_both, until_enough_of_each], ids=lambda function: function.__name__)
def test_a_loop_in_a_loop_over_another_length_is_right(function: Callable[..., Any]) -> None:
    torch.manual_seed(0)
    module = OfTwo(function)
    program = to_onnx(module, (torch.randn(5, 3), torch.randn(7, 3)), dynamic_shapes=TWO, capture="run")
    assert loops_in(program) == 2
    samples = [(torch.randn(n, 3), torch.randn(m, 3)) for n, m in ((1, 1), (1, 4), (6, 1), (2, 3), (9, 13), (20, 11))]
    verify(program, module, samples).check()


def over_batch_and_time(x: Tensor) -> Tensor:
    out = []
    for b in range(x.shape[0]):
        h, steps = torch.zeros(4), []
        for t in range(x.shape[1]):
            h = torch.tanh(h * 0.5 + x[b, t])
            steps.append(h)
        out.append(torch.stack(steps))
    return torch.stack(out)


def the_inner_loop_on_one_side(x: Tensor) -> Tensor:
    h = torch.zeros(4)
    for b in range(x.shape[0]):
        if x[b].sum() > 0:
            for t in range(x.shape[1]):
                h = h * 0.9 + x[b, t]
        else:
            h = h - 1
    return h


@pytest.mark.parametrize("function", [over_batch_and_time, the_inner_loop_on_one_side], ids=lambda function: function.__name__)
def test_a_loop_over_time_in_one_over_the_batch_is_right(function: Callable[..., Any]) -> None:
    torch.manual_seed(0)
    module = Of(function)
    program = to_onnx(module, (torch.randn(3, 5, 4),), dynamic_shapes=BATCH, capture="run")
    assert loops_in(program) == 2
    verify(program, module, [(torch.randn(b, t, 4),) for b, t in ((1, 1), (2, 1), (1, 6), (4, 9), (7, 3))]).check()


class Beam(nn.Module):
    """Beam search into a buffer of a fixed size, until all beams have ended."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(1)
        self.embed, self.cell, self.out = nn.Embedding(7, 5), nn.GRUCell(5, 5), nn.Linear(5, 7)

    def forward(self, h: Tensor) -> Any:
        batch, beams, limit = h.shape[0], 3, 12
        h, tokens = h.repeat_interleave(beams, 0), torch.zeros(batch, beams, limit, dtype=torch.long)
        scores = torch.full((batch, beams), -1e9)
        scores[:, 0] = 0
        last, done = torch.zeros(batch, beams, dtype=torch.long), torch.zeros(batch, beams, dtype=torch.bool)
        at = torch.zeros((), dtype=torch.long)
        while ((~done).any() & (at < limit)).item():
            h = self.cell(self.embed(last.reshape(-1)), h)
            likely = torch.log_softmax(self.out(h), -1).reshape(batch, beams, -1)
            stop = torch.full_like(likely, -1e9)
            stop[:, :, 1] = 0
            scores, best = (scores[:, :, None] + torch.where(done[:, :, None], stop, likely)).reshape(batch, -1).topk(beams, 1)
            beam, last = best // 7, best % 7
            done = done.gather(1, beam) | (last == 1) | (scores < -9)
            h = h.reshape(batch, beams, -1).gather(1, beam[:, :, None].expand(-1, -1, 5)).reshape(batch * beams, -1)
            tokens = tokens.gather(1, beam[:, :, None].expand(-1, -1, limit))
            tokens = torch.where(torch.arange(limit) == at, last[:, :, None], tokens)
            at = at + 1
        return tokens, scores, at


def test_a_beam_search_is_right_for_other_batches() -> None:
    module = Beam().eval()
    program = to_onnx(module, (torch.randn(4, 5),), dynamic_shapes=({0: "batch"},), capture="run")
    assert loops_in(program) == 1
    samples = [(torch.randn(batch, 5) * scale,) for batch in (1, 2, 9) for scale in (0.1, 1, 20)]
    assert len({int(module(*sample)[2]) for sample in samples}) > 1, "all end after as many steps"
    verify(program, module, samples).check()


@pytest.mark.parametrize("function", [two_tests, either_way], ids=lambda function: function.__name__)
def test_a_file_has_as_many_nodes_whatever_the_length_of_the_example(function: Callable[..., Any]) -> None:
    files = [to_onnx(Of(function), (torch.randn(rows, 4),), dynamic_shapes=ONE, capture="run") for rows in (5, 40)]
    assert len({sum(1 for _ in program.model.graph.all_nodes()) for program in files}) == 1


def a_list_of_some(x: Tensor) -> Tensor:
    out = [x[0]]
    for row in x:
        if row.sum() > 0:
            out.append(row)
    return torch.stack(out)


def a_flag(x: Tensor) -> Tensor:
    h, is_late = torch.zeros(4), False
    for row in x:
        if row.sum() > 0:
            is_late = True
        h = h + row * (2 if is_late else 1)
    return h


def found_or_not(x: Tensor) -> Tensor:
    found = None
    for row in x:
        if row.sum() > 2:
            found = row * 2
            break
    return x.sum(0) if found is None else found


def one_of_two(x: Tensor) -> Tensor:
    a, b = torch.zeros(4), torch.ones(4)
    for row in x:
        a = b = a + row
        if a.sum() > 3:
            break
    return b


def list_until_enough(x: Tensor) -> Tensor:
    out = [x[0]]
    for row in x:
        out.append(row)
        if row.sum() > 2:
            break
    return torch.stack(out)


def four_tests(x: Tensor) -> Tensor:
    h = torch.zeros(4)
    for row in x:
        for k in range(4):
            if row[k] > 0:
                h = h + k
    return h


def as_many_as_before(x: Tensor) -> Tensor:
    h = torch.zeros(4)
    for i in range(x.shape[0]):
        for j in range(i + 1):
            h = h * 0.5 + x[j]
    return h


REFUSED = {
    a_list_of_some: "hold the same tensor where it is read, but not always",
    a_flag: "`is_late` is a Python number that changes",
    found_or_not: "Python number|differ between runs",
    one_of_two: "hold the same tensor where it is read, but not always",
    list_until_enough: "differ",
    four_tests: "iterations of the loop at .* take more than 4 paths",
    as_many_as_before: "too few iterations|changes with the outer loop",
}


@pytest.mark.parametrize("function", REFUSED, ids=lambda function: function.__name__)
def test_what_a_loop_cannot_be_is_refused_with_the_reason(function: Callable[..., Any]) -> None:
    torch.manual_seed(0)
    with pytest.raises(TraceUnsupported, match=REFUSED[function]):
        to_onnx(Of(function), (torch.randn(5, 4),), dynamic_shapes=ONE, capture="run")


def test_each_shape_of_an_iteration_follows_each_in_a_run() -> None:
    shapes = [Shape((False,)), Shape((True, False)), Shape((True, True))]
    kept = schedule([*shapes, Shape((False, True), leaves=True)])
    assert {*pairwise(kept[:-1])} == {(one, other) for one in shapes for other in shapes}
    assert kept[-4:-1] == (shapes[0],) * 3
    assert kept[-1].leaves
