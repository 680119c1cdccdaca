"""Both sides of a test of a size that moves are in the file, right on either side; one that raises is a limit."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from typing import Any

import pytest
import torch
from modules import Of
from torch import Tensor, nn

from exportlab import verify
from exportlab.outcomes import Outcome
from fx2onnx import to_onnx

HERE = r"\S*test_guard_forking\.py:\d+ in "
ROWS = ({0: "rows"},)
SIZES = (1, 2, 3, 4, 5, 6, 9, 10, 11, 64, 101)


def three_ranges(x: Tensor) -> Tensor:
    if x.shape[0] > 10:
        return x * 2
    return x * 3 if x.shape[0] > 4 else x + 1


def value_and_size(x: Tensor) -> Tensor:
    if x.shape[0] > 4:
        return x * 2 if x.sum() > 0 else x * 3
    return x - 1


def size_behind_a_value(x: Tensor) -> Tensor:
    h = x.clone()
    if x.sum() > 0:
        h += 1 if x.shape[0] > 4 else 2
    return h


def without_effect(x: Tensor) -> Tensor:
    name = "many" if x.shape[0] > 4 else "few"
    return x + 1 if name else x


def limited_value(x: Tensor) -> Tensor:
    if x.shape[0] > 4 and x.sum() < -1000:
        raise ValueError("too little")
    return x


def only_multiples_of_seven(x: Tensor) -> Tensor:
    assert x.shape[0] % 7 == 0, "rows come in sevens"
    return x.reshape(-1, 7, 4).mean(1)


def few_rows_one_by_one(x: Tensor) -> Tensor:
    """The factor of a row follows from that of the row before by no expression, so the loop cannot be rolled."""
    if x.shape[0] > 4:
        return x.sum(0)
    factor, weighed = 1.0, x[0]
    for number in range(x.shape[0]):
        factor = factor * 1.5 + number**2
        weighed = weighed * factor + x[number]
    return weighed


TAKEN: dict[str, Callable[[Tensor], Tensor]] = {
    "a test": lambda x: x * 2 if x.shape[0] > 4 else x - 1,
    "few rows, one by one": few_rows_one_by_one,
    "one row": lambda x: x if x.shape[0] == 1 else x - x.mean(0),
    "one row, computed": lambda x: x * 2 if x.shape[0] == 1 else x - x.mean(0),
    "few rows": lambda x: x * 2 if x.shape[0] < 3 else x.cumsum(0),
    "three ranges": three_ranges,
    "the size of the example alone": lambda x: x if x.shape[0] == 3 else x * 2,
    "a few sizes": lambda x: x - 1 if x.shape[0] in (3, 9, 11) else x * 2,
    "the sizes next to that of the example": lambda x: torch.cat([x, x]) if x.shape[0] // 2 == 1 else x * 2,
    "the larger": lambda x: x * max(x.shape[0], 4),
    "the first rows": lambda x: x[: min(x.shape[0], 4)],
    "the first rows, computed": lambda x: x[: min(x.shape[0], 4)] + 1,
    "a rest": lambda x: x * 2 if x.shape[0] % 3 == 0 else x,
    "a product": lambda x: x * 2 if x.numel() > 40 else x,
    "and a value": value_and_size,
    "behind a value": size_behind_a_value,
    "no effect": without_effect,
    "a size returned": lambda x: x * (x.shape[0] if x.shape[0] > 2 else 7),
    "a limit of values at some sizes": limited_value,
    "sizes that are equal once": lambda x: x[:3] * 1 if x.shape[0] > 4 else x * 1,
    "other sizes": lambda x: x if x.shape[0] > 4 else x[1:],
    "the length of a tensor": lambda x: x * len(x) if len(x) > 4 else x + len(x),
    "turns as many as rows": lambda x: torch.stack([x[i] * i for i in range(len(x))]),
}


@pytest.mark.parametrize("name", TAKEN)
@pytest.mark.parametrize("rows", [3, 5])
def test_all_sizes_are_right(name: str, rows: int) -> None:
    function = TAKEN[name]
    program = to_onnx(Of(function).eval(), (torch.rand(rows, 4),), dynamic_shapes=ROWS, capture="run")
    for size in SIZES:
        for x in (torch.rand(size, 4), -torch.rand(size, 4)):
            torch.testing.assert_close(program(x)[0], function(x), rtol=1e-4, atol=1e-5)


def test_sizes_that_no_run_has_by_chance_are_found_by_the_check_that_asks_for_them() -> None:
    program = to_onnx(Of(only_multiples_of_seven).eval(), (torch.rand(14, 4),), dynamic_shapes=ROWS, capture="run")
    for x in (torch.rand(size, 4) for size in (7, 14, 21, 70, 7 * 99)):
        torch.testing.assert_close(program(x)[0], only_multiples_of_seven(x))
    (limit,) = program.report.limits
    assert "in only_multiples_of_seven: (rows % 7) != 0: AssertionError: rows come in sevens" in limit


def by_order(x: Tensor, y: Tensor) -> Tensor:
    if x.shape[0] > y.shape[0]:
        return x[: y.shape[0]] - y
    return x - y[: x.shape[0]] if x.shape[0] < y.shape[0] else x + y


def one_behind_another(x: Tensor, y: Tensor) -> Tensor:
    if x.shape[0] == y.shape[0]:
        return (x + y) * (2 if x.shape[0] > 4 else 3)
    return x[:2] * y.sum() if x.shape[0] > 4 else y * x.sum()


OF_TWO: dict[str, Callable[[Tensor, Tensor], Tensor]] = {
    "equal": lambda x, y: x + y if x.shape[0] == y.shape[0] else torch.cat([x, y]),
    "unequal": lambda x, y: torch.cat([x, y]) if x.shape[0] != y.shape[0] else x * y,
    "one longer by seven": lambda x, y: x.sum() + y.sum() if x.shape[0] == y.shape[0] + 7 else x.sum() - y.sum(),
    "one shorter by two": lambda x, y: x.sum() + y.sum() if x.shape[0] + 2 == y.shape[0] else x.sum() - y.sum(),
    "twice as long": lambda x, y: x + torch.cat([y, y]) if len(x) == 2 * len(y) else x,
    "the longer": lambda x, y: x * max(x.shape[0], y.shape[0]),
    "by order": by_order,
    "behind a test": one_behind_another,
    "together": lambda x, y: x * 2 if x.shape[0] + y.shape[0] > 9 else x,
    "without remainder": lambda x, y: x * 2 if x.shape[0] % y.shape[0] == 0 else x,
    "as much in all": lambda x, y: x.sum(0) if x.numel() >= y.numel() else y.sum(0),
}


class OfTwo(nn.Module):
    """A function of two inputs."""

    def __init__(self, function: Callable[[Tensor, Tensor], Tensor]) -> None:
        super().__init__()
        self.function = function

    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        return self.function(x, y)


@pytest.mark.parametrize("name", OF_TWO)
@pytest.mark.parametrize("sizes", [(5, 5), (9, 4), (3, 6), (11, 4)], ids=str)
def test_tests_of_two_axes_are_right_at_all_sizes(name: str, sizes: tuple[int, int]) -> None:
    function = OF_TWO[name]
    given = tuple(torch.rand(size, 3) for size in sizes)
    program = to_onnx(OfTwo(function).eval(), given, dynamic_shapes=({0: "rows"}, {0: "others"}), capture="run")
    for rows, others in product((1, 2, 3, 4, 5, 6, 8, 11, 12, 16, 33), repeat=2):
        x, y = torch.rand(rows, 3), torch.rand(others, 3)
        torch.testing.assert_close(program(x, y)[0], function(x, y), rtol=1e-4, atol=1e-5)


def at_most_three(x: Tensor) -> Tensor:
    total = torch.zeros(3)
    for i in range(3):
        if i >= x.shape[0]:
            break
        total = total + x[i] * i
    return total


def value_and_rows(x: Tensor) -> Tensor:
    if x.shape[0] == 0:
        return x.new_ones(3)
    if x.shape[0] > 4:
        return x[0] * 2 if x.sum() > 0 else x[0]
    return x[-1]


WITHOUT_ROWS: dict[str, Callable[[Tensor], Tensor]] = {
    "a loop with an end": at_most_three,
    "a test for none": lambda x: x.new_ones(1, 3) if len(x) == 0 else x[:1] * 2 if len(x) > 4 else x[-1:],
    "a test for none, and a value": value_and_rows,
    "as long as there are rows": lambda x: x + 1 if len(x) == 0 or len(x) > 4 else x * x[0],
}


@pytest.mark.parametrize("name", WITHOUT_ROWS)
@pytest.mark.parametrize("rows", [2, 5])
def test_no_rows_are_a_side_of_their_own_where_the_model_does_something_else(name: str, rows: int) -> None:
    function = WITHOUT_ROWS[name]
    program = to_onnx(Of(function), (torch.randn(rows, 3),), dynamic_shapes=ROWS, capture="run")
    for size in (0, *SIZES):
        for sign in (1, -1):
            given = torch.rand(size, 3) * sign
            torch.testing.assert_close(torch.as_tensor(program(given)[0]), function(given))


def test_no_side_is_added_where_the_file_is_right_without_rows_or_the_model_refuses_them() -> None:
    for function in (TAKEN["a test"], lambda x: x[0] * 2 if x.shape[0] > 4 else x[0]):
        program = to_onnx(Of(function), (torch.randn(3, 3),), dynamic_shapes=ROWS, capture="run")
        assert [node.op_type for node in program.model.graph].count("If") == 1


def test_a_size_that_no_expression_says_has_a_name_that_no_axis_has() -> None:
    model = OfTwo(OF_TWO["equal"]).eval()
    program = to_onnx(model, (torch.rand(5, 3), torch.rand(4, 3)), dynamic_shapes=({0: "u0"}, {0: "u2"}), capture="run")
    assert str(program.model.graph.outputs[0].shape) == "[u1,3]"


def test_the_size_of_both_sides_is_said_where_one_expression_gives_it() -> None:
    model = OfTwo(lambda x, y: x + y if x.shape[0] == y.shape[0] else x * y.mean()).eval()
    program = to_onnx(model, (torch.rand(5, 3), torch.rand(4, 3)), dynamic_shapes=({0: "rows"}, {0: "others"}), capture="run")
    assert str(program.model.graph.outputs[0].shape) == "[rows,3]"


def table_of_77(x: Tensor) -> Tensor:
    if x.shape[0] > 77:
        raise ValueError("no more than 77 positions")
    return x + torch.arange(77.0)[: x.shape[0], None]


def test_a_size_that_raises_is_a_limit_and_verify_shows_that_eager_refuses_too() -> None:
    model = Of(table_of_77).eval()
    program = to_onnx(model, (torch.rand(3, 4),), dynamic_shapes=ROWS, capture="run")
    (limit,) = program.report.limits
    assert "rows > 77: ValueError: no more than 77 positions" in limit
    assert limit in program.model.metadata_props["fx2onnx.limits"]
    assert verify(program, model, [(torch.rand(n, 4),) for n in (1, 3, 77)]).outcome is Outcome.OK
    assert "77 positions" in str(verify(program, model, [(torch.rand(3, 4),), (torch.rand(78, 4),)]))


def test_sizes_that_are_accepted_are_as_before() -> None:
    program = to_onnx(Of(TAKEN["a test"]).eval(), (torch.rand(3, 4),), dynamic_shapes=ROWS, capture="auto", accept_ranges=("rows",))
    assert not program.report.branches


def halved(x: Tensor) -> Tensor:
    size = x.shape[0]
    while size > 1:
        size, x = size // 2, x * 2
    return x


REFUSED: dict[str, tuple[Callable[[Tensor], Any], str]] = {
    "other axes": (
        lambda x: x[:3] * 1 if x.shape[0] > 4 else x.sum(0),
        rf"only rows <= 4 is exported: the test at {HERE}.*both branches fails.*that cannot be one output",
    ),
    "another number": (lambda x: (x, 1 if x.shape[0] > 4 else 2), "both branches fails: .* that cannot be one output: 2, but 1"),
    "two results on one side, of no call": (
        lambda x: x if x.shape[0] > 4 else (x, x),
        "both branches fails: .* return different structures",
    ),
    "turns": (halved, f"the test at {HERE}\\S+ is evaluated in each iteration of a loop: rows > 1, .* and so on"),
    "sizes that are not run": (lambda x: x * 2 if x.shape[0] > 40_000 else x, "only rows <= 40000 is exported"),
    "an error of torch": (lambda x: x if x.shape[0] < 5 else x @ x, "only rows < 5 is exported"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_refused_says_the_line(name: str) -> None:
    function, why = REFUSED[name]
    with pytest.raises(Exception, match=why):
        to_onnx(Of(function).eval(), (torch.rand(3, 4),), dynamic_shapes=ROWS, capture="run")


class FewSizes(nn.Module):
    """Where `x` is long, only two of the sizes tried for `y` run, whose numbers of pairs are on a line: 10 b - 45."""

    def forward(self, x: Tensor, y: Tensor) -> Tensor:
        if x.shape[0] <= 50:
            return x.sum() + y.sum()
        pairs = torch.pdist(y.reshape(3, -1).reshape(-1, 1))
        return pairs.sum() / (pairs.shape[0] + 45)


def test_a_size_is_not_inferred_from_the_two_sizes_that_run() -> None:
    program = to_onnx(FewSizes(), (torch.rand(6), torch.rand(6)), dynamic_shapes=({0: "a"}, {0: "b"}), capture="run")
    verify(program, FewSizes(), [(torch.rand(a), torch.rand(b)) for a, b in ((6, 9), (60, 9), (51, 30), (70, 21))]).check()
