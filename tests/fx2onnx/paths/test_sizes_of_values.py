"""Sizes and numbers that values decide: a run has symbols for them, and the file is right where none, one or many are selected."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

import onnxruntime
import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.utils import _pytree as pytree

from fx2onnx import to_onnx
from fx2onnx.errors import CaptureError

HERE = r".*test_sizes_of_values\.py:\d+"
Function = Callable[[Any, Tensor, Tensor], Any]


class Of(nn.Module):
    """A function of rows and a number."""

    def __init__(self, function: Function) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.function = function
        self.layer = nn.Linear(3, 3)

    def forward(self, x: Tensor, k: Tensor) -> Any:
        return self.function(self, x, k)


def samples() -> Iterator[tuple[Tensor, Tensor]]:
    """Rows of which some, none, all, one or two begin with a positive number; and numbers."""
    torch.manual_seed(1)
    for rows in (6, 9, 1, 2, 7):
        x = torch.randn(rows, 3)
        few = [-x.abs() for _ in range(2)]
        few[0][rows // 2].abs_()
        few[1][:2].abs_()
        yield from zip((x, -x.abs(), x.abs(), *few), map(torch.tensor, (3, 0, 1, 2, 5)), strict=True)


def check(function: Function, moves: bool = True) -> Any:
    """Export by running, and hold the file against the model wherever this answers; return the program."""
    torch.manual_seed(5)
    axes = ({0: "rows"}, None) if moves else None
    program = to_onnx(Of(function).eval(), (torch.randn(6, 3), torch.tensor(3)), dynamic_shapes=axes, capture="run")
    session = onnxruntime.InferenceSession(program.model_proto.SerializeToString())
    taken = {given.name for given in session.get_inputs()}
    for x, k in samples():
        if not moves and len(x) != 6:
            continue
        try:
            wanted = pytree.tree_leaves(Of(function).eval()(x.clone(), k))
        except (RuntimeError, IndexError):
            continue
        feed = {name: value.numpy() for name, value in (("x", x), ("k", k)) if name in taken}
        for found, want in zip(session.run(None, feed), wanted, strict=True):
            torch.testing.assert_close(torch.as_tensor(found), want.detach(), rtol=1e-4, atol=1e-4, equal_nan=True)
    return program


def picked(x: Tensor, column: int = 0) -> Tensor:
    return x[x[:, column] > 0]


def suppressed(m: Any, x: Tensor, k: Tensor) -> Tensor:
    """Boxes that no better one is near to, through a network."""
    boxes = x[(x[:, 0] > 0).nonzero().squeeze(1)]
    boxes = boxes[boxes[:, 0].argsort(descending=True)]
    near = (boxes[:, None] - boxes[None]).abs().sum(-1) < 1.0
    found: Tensor = m.layer(boxes[~near.tril(-1).any(1)])
    return found


def grown(m: Any, x: Tensor, k: Tensor) -> Tensor:
    y = picked(x)
    if y.shape[0] > 2:
        y = m.layer(y)
    return y + 1 if x.sum() > 0 else y


def filtered_three_times(m: Any, x: Tensor, k: Tensor) -> Tensor:
    y = picked(x)
    for column in range(3):
        y = m.layer(y)[y[:, column] > -1]
    return y


def changed_in_place(m: Any, x: Tensor, k: Tensor) -> Tensor:
    y = picked(x)
    y.mul_(2)
    y[:1] = 0
    return y.sum(0)


def put_back(m: Any, x: Tensor, k: Tensor) -> Tensor:
    out = x.clone()
    out[x[:, 0] > 0] = m.layer(picked(x))
    return out


def halved(m: Any, x: Tensor, k: Tensor) -> Tensor:
    y = picked(x)
    while y.sum() > 1:
        y = y * 0.5
    return y


def capped(m: Any, x: Tensor, k: Tensor) -> Tensor:
    n = k.item()
    if n > 3:
        n = 3
    return x.new_ones(n, 2)


def in_pairs(m: Any, x: Tensor, k: Tensor) -> Tensor:
    y = picked(x)
    return y[: y.shape[0] // 2 * 2].reshape(-1, 2, 3).sum(1)


def or_zeros(m: Any, x: Tensor, k: Tensor) -> Tensor:
    y = picked(x)
    return y.max(0).values if len(y) else torch.zeros(3)


NAMED = (suppressed, grown, filtered_three_times, changed_in_place, put_back, capped, in_pairs, or_zeros)
TAKEN: dict[str, Function] = {
    "nonzero": lambda m, x, k: (x[:, 0] > 0).nonzero(),
    "mask": lambda m, x, k: m.layer(picked(x)).relu().sum(1),
    "mean": lambda m, x, k: picked(x).mean(0),
    "unique": lambda m, x, k: torch.unique((x * 2).round().long(), return_inverse=True),
    "repeat_interleave": lambda m, x, k: x.repeat_interleave((x[:, 0].abs() * 2).long(), dim=0),
    "masked_select": lambda m, x, k: x.masked_select(x > 0).cumsum(0),
    "where": lambda m, x, k: x[torch.where(x > 0)],
    "bincount": lambda m, x, k: torch.bincount((x[:, 0].abs() * 3).long()),
    "one_hot": lambda m, x, k: F.one_hot((x[:, 0].abs() * 3).long()),
    "item as a size": lambda m, x, k: x.new_zeros(k.item(), 3) + x[:1],
    "varargs": lambda m, x, k: torch.ones(k.item(), 3) * x.sum(0),
    "arange": lambda m, x, k: torch.arange(k.item() + 2) * 2,
    "slice by int": lambda m, x, k: x[: int(k)],
    "slice by a tensor": lambda m, x, k: x[: (x[:, 0] > 0).sum()],
    "view": lambda m, x, k: picked(x).view((x[:, 0] > 0).sum().item(), 3) * 2,
    "tolist": lambda m, x, k: F.pad(x, torch.stack([k, k + 1]).tolist()),
    "split": lambda m, x, k: x.split([k.item() % 2, x.shape[0] - k.item() % 2])[1].sum(0),
    "topk": lambda m, x, k: x.flatten().topk(min(k.item(), x.numel())).values,
    "max and min": lambda m, x, k: x.new_ones(max(k.item(), 2), min(k.item() + 1, 4)),
    "attention": lambda m, x, k: F.scaled_dot_product_attention(*(picked(x)[None],) * 3)[0],
    "two of them": lambda m, x, k: torch.cat([picked(x), picked(x, 1) * 2]),
    "as a number": lambda m, x, k: x * (picked(x).shape[0] / x.shape[0]),
    "padded to all": lambda m, x, k: F.pad(picked(x), (0, 0, 0, x.shape[0] - picked(x).shape[0])),
    **{one.__name__: one for one in NAMED},
}


@pytest.mark.parametrize("name", TAKEN)
def test_a_size_that_values_decide_is_right(name: str) -> None:
    check(TAKEN[name])


@pytest.mark.parametrize("name", ["mask", "topk", "put_back", "or_zeros"])
def test_so_it_is_where_no_axis_moves(name: str) -> None:
    check(TAKEN[name], moves=False)


def over_rows(m: Any, x: Tensor, k: Tensor) -> Tensor:
    out = torch.zeros(3)
    for row in picked(x):
        out = out + row
    return out


def over_a_range(m: Any, x: Tensor, k: Tensor) -> Tensor:
    for _ in range(k.item()):
        x = x * 2
    return x


REFUSED: dict[str, tuple[Function, str]] = {
    "a while over selected rows": (halved, "depends on values at"),
    "a loop over rows": (over_rows, f"unbind.* at {HERE} .*returns \\d+ parts in all runs, but u0"),
    "a loop over a range": (over_a_range, f"u0 == 3 at {HERE} .*converted to a Python number"),
    "squeeze": (lambda m, x, k: (x[:, 0] > 0).nonzero().squeeze(), f"squeeze removes an axis at {HERE}"),
    "another number of axes": (
        lambda m, x, k: picked(x) + picked(x, 1) if picked(x).shape == picked(x, 1).shape else x.sum(0),
        "cannot be one output",
    ),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_no_file_can_be_is_refused_with_its_line(name: str) -> None:
    function, said = REFUSED[name]
    with pytest.raises(CaptureError, match=said):
        check(function)


@pytest.mark.parametrize("name", ["nonzero", "mask", "unique", "repeat_interleave", "item as a size", "where", "put_back"])
def test_it_has_no_more_nodes_than_by_torch_export(name: str) -> None:
    model, given = Of(TAKEN[name]).eval(), (torch.randn(6, 3), torch.tensor(3))
    one, other = (to_onnx(model, given, dynamic_shapes=({0: "rows"}, None), capture=by).model_proto.graph for by in ("run", "torch.export"))
    assert len(one.node) <= len(other.node)


def test_a_size_keeps_the_name_that_nothing_else_has() -> None:
    (output,) = check(TAKEN["mask"]).model.graph.outputs
    assert [str(size) for size in output.shape] == ["u0"]


STEPS: list[Callable[[Any, Tensor, Tensor, int], Tensor]] = [
    lambda m, x, k, n: x[x[:, n % 3] > 0],
    lambda m, x, k, n: m.layer(x),
    lambda m, x, k, n: x[x[:, n % 3].argsort()],
    lambda m, x, k, n: torch.cat([x, x[: n % 3]]),
    lambda m, x, k, n: x.repeat_interleave((x[:, 0] > 0).long() + n % 2, dim=0),
    lambda m, x, k, n: x * 2 if x.shape[0] > n else x - 1,
    lambda m, x, k, n: m.layer(x) if x.sum() > 0 else x + n,
    lambda m, x, k, n: x[: k.item() + n],
    lambda m, x, k, n: F.pad(x, (0, 0, 0, k.item())),
    lambda m, x, k, n: x.clone().index_fill_(0, (x[:, n % 3] > 0).nonzero().squeeze(1), 0.5),
    lambda m, x, k, n: x - x.sum(0) / (x.shape[0] + 1),
    lambda m, x, k, n: x + x.new_ones(x.shape[0], 1),
    lambda m, x, k, n: x[x[:, 0].nonzero().flatten()[: n + 1]],
    lambda m, x, k, n: x.flip(0).softmax(1),
]


def program_of(seed: int) -> Function:
    """A few steps, one after the other."""
    steps = [(draw.choice(STEPS), draw.randrange(4)) for draw in [random.Random(seed)] for _ in range(draw.randint(2, 5))]

    def function(m: Any, x: Tensor, k: Tensor) -> Tensor:
        for step, n in steps:
            x = step(m, x, k, n)
        return x

    return function


@pytest.mark.parametrize("seed", range(25))
def test_random_programs_are_right_or_refused(seed: int) -> None:
    with suppress(CaptureError):
        check(program_of(seed))
