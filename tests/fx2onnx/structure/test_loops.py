"""A Python loop whose turns follow a size becomes one `Loop`, right at lengths that were never run, or is refused with the line."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from exportlab import to_onnx
from fx2onnx.errors import FrozenDimension
from fx2onnx.trace.refusal import TraceUnsupported

ROWS = ({0: "rows"},)
LENGTHS = (1, 2, 7, 100)
HERE = r"\S*test_loops\.py:\d+ in "
Forward = Callable[[Any, Tensor], Any]


class Model(nn.Module):
    """Layers that a function may use."""

    def __init__(self, function: Forward) -> None:
        super().__init__()
        self.function = function
        self.cell = nn.LSTMCell(4, 5)
        self.layer = nn.Linear(4, 4)
        self.share = nn.Parameter(torch.tensor(0.7))
        self.calls = 0

    def forward(self, x: Tensor) -> Any:
        return self.function(self, x)


def each_row(m: Any, x: Tensor) -> Tensor:
    out = []
    for row in x:
        out.append(torch.sin(row) + row)
    return torch.stack(out)


def cell_by_hand(m: Any, x: Tensor) -> Any:
    h, c = x.new_zeros(1, 5), x.new_zeros(1, 5)
    out = []
    for t in range(x.shape[0]):
        h, c = m.cell(x[t : t + 1], (h, c))
        out.append(h)
    return torch.cat(out), c


def average_over_time(m: Any, x: Tensor) -> Tensor:
    x = x.T
    state, out = torch.zeros_like(x[:, 0]), []
    for t in range(x.shape[1]):
        state = state * m.share + x[:, t] * (1 - m.share)
        out.append(state.unsqueeze(1))
    return torch.cat(out, 1) * 2


def rows_changed(m: Any, x: Tensor) -> Tensor:
    y = m.layer(x)
    for i in range(x.shape[0]):
        y[i] += torch.sin(y[i])
    return y


def rows_written(m: Any, x: Tensor) -> Any:
    out, h = torch.zeros_like(x), x.new_zeros(4)
    for t in range(x.shape[0]):
        h = torch.tanh(h + x[t])
        out[t] = h
    return out, h


def backwards(m: Any, x: Tensor) -> Tensor:
    h, out = torch.zeros(4), []
    for t in range(x.shape[0] - 1, -1, -1):
        h = h * 0.5 + x[t]
        out.append(h)
    out.reverse()
    return torch.stack(out)


def first_turn_another(m: Any, x: Tensor) -> Any:
    h = None
    for row in x:
        h = row if h is None else h + row * 2
    return h


def one_after_the_other(m: Any, x: Tensor) -> Any:
    y, h = torch.stack([row.sin() for row in x]), torch.zeros(4)
    for k in range(3):
        h = h + k
    for t in range(y.shape[0]):
        h = h * 0.5 + y[t]
    return h, y


def together(m: Any, x: Tensor) -> Tensor:
    h = torch.zeros(4)
    for i, (a, b) in zip(range(x.shape[0]), zip(x, x * 2, strict=True), strict=True):
        h = h * a + b * i
    return h


def layers_in_a_turn(m: Any, x: Tensor) -> Tensor:
    h = torch.zeros(4)
    for row in x:
        for k in range(3):
            h = h * 0.5 + m.layer(row) * k
    return h


def generated(m: Any, x: Tensor) -> Tensor:
    def states() -> Iterator[Tensor]:
        h = torch.zeros(4)
        for row in x:
            h = h + row * torch.tensor(2.0)
            yield h

    return torch.stack(list(states()), 1)


def beside_others(m: Any, x: Tensor) -> Any:
    out = [row * 2 for row in x]
    return torch.stack([x[0], *out, x[-1]]), torch.cat(out[::-1]), torch.stack(out[1:] + out)


def last_value(m: Any, x: Tensor) -> Tensor:
    for row in x:
        y = row * 2
    return y


def lists_and_lengths(m: Any, x: Tensor) -> Tensor:
    out = [row * i for i, row in enumerate(x)]
    return torch.stack(out).sum(0) / len(out)


def two_sizes(m: Any, x: Tensor) -> Tensor:
    return torch.stack([x[t] * x.shape[0] + torch.softmax(x @ x[t], 0) @ x for t in reversed(range(x.shape[0] // 2 + 1))])


def turns_back(m: Any, x: Tensor) -> Tensor:
    a, b = torch.zeros(4), torch.ones(4)
    for row in x:
        a, b = b, a + b * row
    return b


TAKEN: dict[str, Forward] = {
    "for row in x": each_row,
    "a cell by hand": cell_by_hand,
    "an average over time": average_over_time,
    "rows changed in place": rows_changed,
    "rows written one by one": rows_written,
    "backwards": backwards,
    "the first turn is another": first_turn_another,
    "one after the other": one_after_the_other,
    "zip": together,
    "layers in a turn": layers_in_a_turn,
    "a generator": generated,
    "beside others in a list": beside_others,
    "the last value": last_value,
    "len and enumerate": lists_and_lengths,
    "a size in the turn": two_sizes,
    "the first turn read by itself": lambda m, x: torch.stack(out := [row * 2 for row in x]) + out[0],
    "sum of rows": lambda m, x: sum(row.cumsum(0) for row in x),
    "the row before": lambda m, x: torch.stack([x[t] - x[t - 1] for t in range(x.shape[0])]),
    "windows": lambda m, x: torch.stack([x[t : t + 1].mean(0) * (t % 3) for t in range(0, x.shape[0], 1)]),
    "every second": lambda m, x: torch.stack([x[t] / (t + 1) for t in range(0, x.shape[0], 2)]),
    "two turns back": turns_back,
    "unbind": lambda m, x: torch.stack([column * 0.9**t for t, column in enumerate(x.T.unbind(1))], dim=-1),
}


def counted(m: Any, x: Tensor) -> Tensor:
    out, seen = [], 0
    for row in x:
        out.append(row if seen > 500 else row * 2)
        seen += 1  # noqa: SIM113 - what is tested
    return torch.stack(out)


def counted_in_the_module(m: Any, x: Tensor) -> Tensor:
    m.calls, out = 0, []
    for row in x:
        m.calls += 1
        out.append(row if m.calls > 500 else row * 2)
    return torch.stack(out)


def left_early(m: Any, x: Tensor) -> Tensor:
    h = torch.zeros(4)
    for t in range(x.shape[0]):
        if t == 500:
            break
        h = h + x[t]
    return h


def left_at_once(m: Any, x: Tensor) -> Tensor:
    for row in x:  # noqa: B007 - it is read after the loop
        break
    return row * 1


def growing(m: Any, x: Tensor) -> Tensor:
    all_rows = x[:1]
    for t in range(1, x.shape[0]):
        all_rows = torch.cat([all_rows, x[t : t + 1] + all_rows[-1:]])
    return all_rows


def kept_and_changed(m: Any, x: Tensor) -> Any:
    h, out = torch.zeros(4), []
    for row in x:
        h = h + row
        out.append(h)
    h.add_(100)
    return torch.stack(out)


def views_kept(m: Any, x: Tensor) -> Tensor:
    y, out = x * 1, []
    for t in range(x.shape[0]):
        y[t] *= 2
        out.append(y[0])
    return torch.stack(out)


def views_changed_later(m: Any, x: Tensor) -> Tensor:
    y = x * 1
    out = [y[t] for t in range(x.shape[0])]
    y.add_(1)
    return torch.stack(out)


def read_by_another_view(m: Any, x: Tensor) -> Tensor:
    y = x * 1
    z = y.T
    for t in range(x.shape[0]):
        y[t] += z[:, 0]
    return y


def starts_in_what_is_written(m: Any, x: Tensor) -> Tensor:
    y = x * 1
    h = y[0]
    for t in range(x.shape[0]):
        y[t] += 1
        h = h * 0.5 + y[t]
    return h


def number_read_later(m: Any, x: Tensor) -> Tensor:
    h = torch.zeros(4)
    for t in range(x.shape[0]):
        h = h + x[t]
    return h * t


def layout_of_one_row(m: Any, x: Tensor) -> Tensor:
    y = torch.stack([row * 2 for row in x]).T
    return y + 1 if y.is_contiguous() else y


REFUSED: dict[str, tuple[Forward, str]] = {
    "a layout that one row has": (layout_of_one_row, "the loops of the model give a different result at .*= 1$"),
    "a counter of its own": (counted, "`seen` is a Python number that changes in each iteration.* at " + HERE),
    "a counter in the module": (counted_in_the_module, "`m.calls` is a Python number that changes in each iteration"),
    "a test far away": (
        lambda m, x: torch.stack([x[t] if t > 500 else x[t] * 2 for t in range(x.shape[0])]),
        "the iterations of a loop differ after the condition at " + HERE,
    ),
    "a test of enumerate": (
        lambda m, x: torch.stack([row if i > 500 else row * 2 for i, row in enumerate(x)]),
        "the iterations of a loop differ after the condition at " + HERE,
    ),
    "left at some number": (left_early, "after the condition at " + HERE),
    "left at once": (left_at_once, "the loop at .*" + HERE + ".* is left before its last iteration"),
    "every other turn": (
        lambda m, x: torch.stack([x[t] * 2 if t % 2 else x[t] for t in range(x.shape[0])]),
        "different operators than the previous one",
    ),
    "the last turn another": (
        lambda m, x: torch.stack([x[t] * 2 if t < x.shape[0] - 1 else x[t] for t in range(x.shape[0])]),
        "different operators than the previous one at " + HERE,
    ),
    "a table of numbers": (
        lambda m, x: sum(x[t] * [*map(float, range(200))][t] for t in range(x.shape[0])),
        "in one iteration|is specialised to",
    ),
    "a value that grows": (growing, "aten.cat.default is not called in iteration 4 as in the previous one"),
    "more and more rows": (lambda m, x: torch.stack([x[: t + 1].mean(0) for t in range(x.shape[0])]), "is not called in iteration"),
    "another number of turns in each turn": (
        lambda m, x: torch.stack([sum((x[j] for j in range(i + 1)), x[0]) for i in range(x.shape[0])]),
        "has too few iterations .1.",
    ),
    "a list changed after it": (kept_and_changed, "is written into after it, at " + HERE),
    "views of what it changes": (views_kept, "keeps a view of memory that it writes into"),
    "views of what is changed later": (views_changed_later, "is written into after it"),
    "read by another view": (read_by_another_view, "also reads through another view"),
    "a start in what it writes": (starts_in_what_is_written, "that a loop-carried value starts from"),
    "its number after it": (number_read_later, "the loop variable is read after its loop, at " + HERE),
    "the one before the last": (
        lambda m, x: [row * 2 for row in x][-2],
        "a value of one iteration is read after the loop",
    ),
    "another operator on a list": (
        lambda m, x: torch.dstack([row * 2 for row in x]),
        "aten.dstack.default reads a list filled by a loop at ",
    ),
}


@pytest.fixture
def x() -> Tensor:
    torch.manual_seed(0)
    return torch.rand(4, 4) + 0.1


def outputs(returned: Any) -> list[Tensor]:
    """What a call returns, as a file does."""
    return [torch.as_tensor(part) for part in (returned if isinstance(returned, tuple) else (returned,))]


@pytest.mark.parametrize("name", TAKEN)
def test_a_loop_is_right_at_lengths_never_run(name: str, x: Tensor) -> None:
    model = Model(TAKEN[name]).eval()
    program = to_onnx(model, (x,), dynamic_shapes=ROWS, capture="run")
    assert "Loop" in {node.op_type for node in program.model.graph}
    for rows in LENGTHS:
        given = torch.rand(rows, 4)
        with torch.no_grad():
            wanted = outputs(model(given.clone()))
        for found, own in zip(program(given), wanted, strict=True):
            torch.testing.assert_close(found, own, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", ["rows changed in place", "rows written one by one", "zip", "layers in a turn"])
def test_a_loop_without_any_turn_leaves_what_it_starts_from(name: str, x: Tensor) -> None:
    model = Model(TAKEN[name]).eval()
    program = to_onnx(model, (x,), dynamic_shapes=ROWS, capture="run")
    for found, own in zip(program(x[:0]), outputs(model(x[:0].clone())), strict=True):
        torch.testing.assert_close(found, own.detach())


def test_a_file_that_needs_a_turn_says_so_where_eager_does_not(x: Tensor) -> None:
    program = to_onnx(Model(TAKEN["sum of rows"]).eval(), (x,), dynamic_shapes=ROWS, capture="run")
    assert list(program.report.limits) == [
        "at rows = 0, which the model accepts, the exported model fails: "
        "the first iteration of a loop has no value to read, or a number has no value"
    ]
    with pytest.raises(Exception, match=r"out of|bounds|Gather"):
        program(x[:0])


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_rolled_up_is_refused_and_nothing_is_changed(name: str, x: Tensor) -> None:
    function, why = REFUSED[name]
    before = x.clone()
    with pytest.raises((TraceUnsupported, FrozenDimension), match=why):
        to_onnx(Model(function).eval(), (x,), dynamic_shapes=ROWS, capture="run")
    assert torch.equal(x, before)
    assert (range(3)[-1], len([1]), list(enumerate("a"))) == (2, 1, [(0, "a")])
    assert isinstance(range, type)


@pytest.mark.parametrize("name", ["for row in x", "rows changed in place", "layers in a turn"])
def test_a_loop_over_an_axis_that_stays_is_unrolled(name: str, x: Tensor) -> None:
    program = to_onnx(Model(TAKEN[name]).eval(), (x,), capture="run")
    assert "Loop" not in {node.op_type for node in program.model.graph}
