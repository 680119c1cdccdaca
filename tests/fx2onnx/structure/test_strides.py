"""Loops over an axis in steps, `range(0, n, step)`: parts are turns, but the last, which may be shorter and comes after them."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator

import pytest
import torch
from modules import Of

from exportlab import to_onnx, verify
from fx2onnx.errors import ToOnnxError

ROWS = ({0: "rows"},)
SIZES = (1, 2, 3, 4, 5, 6, 7, 9, 25, 99, 100, 101, 200, 301)
Step = Callable[[torch.Tensor], torch.Tensor]


def parts(x: torch.Tensor, step: int = 3) -> Iterator[torch.Tensor]:
    for i in range(0, len(x), step):
        yield x[i : i + step]


def state(x: torch.Tensor) -> torch.Tensor:
    """A part reads what the one before left, and its own length."""
    made, held = [], torch.zeros(x.shape[1])
    for part in parts(x):
        held = held * 0.5 + part.mean(0)
        made.append(part * held / part.shape[0])
    return torch.cat(made)


def ends(x: torch.Tensor) -> torch.Tensor:
    """Blocks are counted first, and each ends where the axis does."""
    blocks, made = (len(x) + 2) // 3, []
    for block in range(blocks):
        start = block * 3
        end = min(start + 3, len(x))
        made.append(x[start:end].cumsum(0) * (end - start))
    return torch.cat(made)


def rounded_up(x: torch.Tensor) -> torch.Tensor:
    return torch.cat([x[3 * block : 3 * block + 3].cumsum(0) for block in range(math.ceil(len(x) / 3))])


def in_place(x: torch.Tensor) -> torch.Tensor:
    made = torch.zeros_like(x)
    for i in range(0, len(x), 3):
        made[i : i + 3] = x[i : i + 3].softmax(0)
    return made


def padded(x: torch.Tensor) -> torch.Tensor:
    """The last part is filled up to the length of the others, by a test of its own."""
    made = []
    for part in parts(x):
        if part.shape[0] < 3:
            part = torch.nn.functional.pad(part, (0, 0, 0, 3 - part.shape[0]))
        made.append(part.sum(0))
    return torch.stack(made)


def a_loop_after_a_loop(x: torch.Tensor) -> torch.Tensor:
    x = torch.cat([part.cumsum(0) for part in parts(x)])
    return torch.cat([x[i : i + 4].softmax(0) for i in range(0, len(x), 4)])


def counted(x: torch.Tensor) -> torch.Tensor:
    for _ in range(0, len(x), 3):
        x = x + 1
    return x


def fewer_where_it_is_longer(x: torch.Tensor) -> torch.Tensor:
    for i in range(0, 40 - len(x), 8):
        x = x + i
    return x


TAKEN: dict[str, Step] = {
    "parts": lambda x: torch.cat([part.softmax(0) for part in parts(x)]),
    "as many turns at each size": lambda x: torch.stack([x * i for i in range(x.shape[0] + 3 - x.shape[0])]),
    "one below the other": lambda x: torch.vstack([part.softmax(0) for part in parts(x)]),
    "beside each other": lambda x: torch.hstack([part.softmax(0).T for part in parts(x)]),
    "rows below each other": lambda x: torch.vstack([row.cumsum(0) for row in x]),
    "columns": lambda x: torch.column_stack([row * 2 for row in x]),
    "numbers in a row": lambda x: torch.hstack([row.sum() for row in x]),
    "NaN": lambda x: torch.cat([part.masked_fill(part < 0, float("nan")) for part in parts(x)]),
    "a state": state,
    "ends": ends,
    "rounded up": rounded_up,
    "in place": in_place,
    "padded": padded,
    "counted": counted,
    "one after the other": a_loop_after_a_loop,
    "where it stands": lambda x: torch.cat([x[i : i + 3] * i for i in range(0, len(x), 3)]),
    "longer than the runs": lambda x: torch.cat([part.softmax(0) for part in parts(x, 100)]),
    "another begin": lambda x: torch.cat([x[:1], *(x[i : i + 3].cumsum(0) for i in range(1, len(x), 3))]),
}
REFUSED: dict[str, Step] = {
    "fewer where it is longer": fewer_where_it_is_longer,
    "windows that overlap": lambda x: torch.stack([x[i : i + 5].mean(0) for i in range(0, len(x), 3)]),
    "backwards": lambda x: torch.cat([x[max(i - 2, 0) : i + 1].cumsum(0) for i in range(len(x) - 1, -1, -3)]),
}


@pytest.mark.parametrize("name", TAKEN)
def test_parts_are_right_at_sizes_never_run(name: str) -> None:
    model, example = Of(TAKEN[name]).eval(), torch.randn(11, 2)
    program = to_onnx(model, (example,), dynamic_shapes=ROWS, capture="run")
    verify(program, model, [(example,), *((torch.randn(size, 2),) for size in SIZES)]).check()


def test_an_example_may_be_shorter_than_a_part() -> None:
    model = Of(TAKEN["longer than the runs"]).eval()
    program = to_onnx(model, (torch.randn(2, 2),), dynamic_shapes=ROWS, capture="run")
    verify(program, model, [(torch.randn(size, 2),) for size in SIZES]).check()


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_no_part_is_refused_with_its_line(name: str) -> None:
    with pytest.raises(ToOnnxError, match=r"test_strides\.py:\d+"):
        to_onnx(Of(REFUSED[name]).eval(), (torch.randn(11, 2),), dynamic_shapes=ROWS)
