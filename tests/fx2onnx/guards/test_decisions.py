"""A test of sizes is dropped only where it is proved for every size: its file is right on both sides of each threshold, or refused."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import pytest
import sympy
import torch
from torch import Tensor, nn
from torch.export import Dim
from torch.utils._sympy.functions import FloorDiv, Mod, TruncToInt

from exportlab import to_onnx
from fx2onnx.errors import FrozenDimension, ToOnnxError
from fx2onnx.guards.decisions import MOST, decide, is_implied

N, M = sympy.symbols("n m", integer=True, positive=True)
RANGES = {N: (1, MOST), M: (1, MOST)}
OPERATORS = {"gt": sympy.Gt, "ge": sympy.Ge, "lt": sympy.Lt, "le": sympy.Le, "eq": sympy.Eq, "ne": sympy.Ne}
THRESHOLDS = sorted({2**k + more for k in range(32) for more in (-1, 0, 1)})
EXPRESSIONS: dict[str, tuple[sympy.Expr, Callable[[int], bool]]] = {  # and which thresholds it is above at all sizes
    "n": (N, lambda t: t < 1),
    "n // 2": (FloorDiv(N, 2), lambda t: t < 0),
    "2 * n + 1": (2 * N + 1, lambda t: t < 3),
    "int(0.5 * n)": (TruncToInt(0.5 * N), lambda t: t < 0),
    "n % 4099": (Mod(N, 4099), lambda t: t < 0),
    "n * m": (N * M, lambda t: t < 1),
    "n + m": (N + M, lambda t: t < 2),
    "n - m": (N - M, lambda t: False),
    "n * n": (N * N, lambda t: t < 1),
}


@pytest.mark.parametrize("name", EXPRESSIONS)
def test_no_threshold_is_taken_for_one_that_all_sizes_pass(name: str) -> None:
    size, is_below_all = EXPRESSIONS[name]
    for threshold in THRESHOLDS:
        assert is_implied(size > threshold, RANGES) == is_below_all(threshold), threshold
        if name != "n % 4099":  # which is at most 4098
            assert not is_implied(size <= threshold, RANGES), threshold


@pytest.mark.parametrize("name", OPERATORS)
def test_a_threshold_is_refuted_by_sizes_at_which_it_is_false(name: str) -> None:
    for number, threshold in enumerate(THRESHOLDS[5:]):
        for size in (N, FloorDiv(N, 2), *((N * M,) if number % 12 == 0 and name != "ne" else ())):
            found = decide(OPERATORS[name](size, threshold), RANGES)
            assert not found.implied
            assert found.counterexample is None or OPERATORS[name](size, threshold).subs(found.counterexample) == sympy.false


SMALL = {N: (1, 12), M: (2, 5)}
PRODUCTS = (N * M, N - M, FloorDiv(N, 3) + M, Mod(N, 4) * M, N * N - M, FloorDiv(N * M, 4), FloorDiv(N + 1, 2) + FloorDiv(N, 2) - N)


@pytest.mark.parametrize("size", PRODUCTS, ids=str)
def test_a_decision_agrees_with_every_size_of_small_ranges(size: sympy.Expr) -> None:
    values = {int(size.subs({N: n, M: m})) for n in range(1, 13) for m in range(2, 6)}
    for threshold in (min(values) - 1, min(values), 0, 3, 7, max(values), max(values) + 1):
        for of_python, of_sympy in ((operator.ne, sympy.Ne), (operator.ge, sympy.Ge), (operator.lt, sympy.Lt), (operator.eq, sympy.Eq)):
            wanted = all(of_python(value, threshold) for value in values)
            assert is_implied(of_sympy(size, threshold), SMALL) == wanted


@pytest.mark.parametrize("threshold", [7, 4096, 4097, 4098, 100_003, 2**31])
def test_a_threshold_beyond_the_largest_size_is_dropped(threshold: int) -> None:
    within = {N: (1, threshold)}
    for test in (threshold >= N, threshold + 1 > N, sympy.Ne(N, threshold + 1), 2 * threshold >= 2 * N, FloorDiv(N, 2) <= threshold // 2):
        assert is_implied(test, within)
    for test in (threshold > N, sympy.Ne(N, threshold), 2 * threshold > 2 * N, FloorDiv(N, 2) < threshold // 2):
        assert not is_implied(test, within)


@pytest.mark.parametrize(
    ("test", "given"),
    [
        (FloorDiv(N, 2) <= N, ()),
        (N * M >= N, ()),
        (N > 3, (N > 5000,)),
        (N > M, (N > 5000, M < 3)),
        (sympy.Or(Mod(N, 4) > 0, Mod(N, 4) <= 1), ()),
        (N * N > 100, (N > 10,)),
    ],
)
def test_what_follows_from_ranges_and_other_tests_is_proved(test: sympy.Basic, given: tuple[sympy.Basic, ...]) -> None:
    assert is_implied(test, RANGES, given)


def test_what_can_be_neither_proved_nor_refuted_is_not_implied() -> None:
    rare = sympy.Ne(Mod(N, 7919 * 7907), 7919 * 7907 - 5)
    assert decide(rare, RANGES).counterexample is None
    assert not is_implied(rare, RANGES)


class Op(nn.Module):
    """A module of one function."""

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__()
        self.function = function

    def forward(self, x: Tensor) -> Any:
        return self.function(x)


COMPARED = {"gt": operator.gt, "ge": operator.ge, "lt": operator.lt, "le": operator.le, "eq": operator.eq, "ne": operator.ne}
CAPTURES = ("run", "torch.export", "auto")
FAR = 2**31 + 1


def chosen(compare: Callable[[int, int], bool], threshold: int, size: Callable[..., int] = lambda n, m: n) -> Op:
    return Op(lambda x: x * 2 if compare(size(*x.shape), threshold) else x * 3)


def is_right(model: Op, program: Any, *shapes: tuple[int, int]) -> bool:
    inputs = [torch.ones(shape) for shape in shapes]
    return all(torch.equal(program(x)[0], model(x)) for x in inputs)


@pytest.mark.parametrize("name", COMPARED)
@pytest.mark.parametrize("threshold", [4097, 16_385])
def test_both_sides_of_a_threshold_that_can_be_run_are_in_the_file(name: str, threshold: int) -> None:
    model = chosen(COMPARED[name], threshold)
    program = to_onnx(model, (torch.ones(4, 2),), dynamic_shapes=({0: "rows"},))
    assert is_right(model, program, *((threshold + more, 2) for more in (-1, 0, 1)))


SIZES: dict[str, Callable[[int, int], int]] = {
    "n // 2": lambda n, m: n // 2,
    "2 * n + 1": lambda n, m: 2 * n + 1,
    "int(0.5 * n)": lambda n, m: int(0.5 * n),
    "n * m": lambda n, m: n * m,
    "n + m": lambda n, m: n + m,
    "n - m": lambda n, m: n - m,
}


@pytest.mark.parametrize("name", SIZES)
def test_both_sides_are_in_the_file_after_arithmetic_and_of_two_axes(name: str) -> None:
    threshold = 5000
    model = chosen(operator.gt, threshold, SIZES[name])
    program = to_onnx(model, (torch.ones(4, 2),), dynamic_shapes=({0: "rows", 1: Dim.DYNAMIC},))
    sizes = [threshold // 2, threshold // 2 + 1, threshold, threshold + 1, threshold + 4, 2 * threshold + 1, 2 * threshold + 2]
    assert is_right(model, program, *((n, m) for n in sizes for m in (1, 2, 3)), (2, threshold))


@pytest.mark.parametrize("capture", CAPTURES)
@pytest.mark.parametrize("name", SIZES)
def test_a_threshold_that_cannot_be_run_is_refused(capture: str, name: str) -> None:
    model = chosen(operator.gt, FAR, SIZES[name])
    with pytest.raises(FrozenDimension, match=r"is exported|Not all values"):
        to_onnx(model, (torch.ones(4, 2),), dynamic_shapes=({0: "rows", 1: "columns"},), capture=capture)


@pytest.mark.parametrize("dim", ["rows", Dim.DYNAMIC, Dim("rows"), Dim("rows", max=2**40)], ids=["name", "DYNAMIC", "Dim", "max"])
def test_a_threshold_is_refused_however_the_axis_is_asked_for(dim: Any) -> None:
    with pytest.raises(FrozenDimension, match=f"only .* <= {FAR} is exported"):
        to_onnx(chosen(operator.gt, FAR), (torch.ones(4, 2),), dynamic_shapes=({0: dim},))


@pytest.mark.parametrize("name", COMPARED)
def test_each_comparison_that_cannot_be_run_is_refused_by_its_line(name: str) -> None:
    threshold = 2**15 - 1
    with pytest.raises(
        FrozenDimension, match=rf'"rows" was asked to be dynamic but only rows .* {threshold} is exported: the test at \S+:\d+'
    ):
        to_onnx(chosen(COMPARED[name], threshold), (torch.ones(4, 2),), dynamic_shapes=({0: "rows"},))


@pytest.mark.parametrize("capture", CAPTURES)
def test_what_is_accepted_is_a_limit(capture: str) -> None:
    asked: dict[str, Any] = {"dynamic_shapes": ({0: "rows"},), "accept_ranges": ("rows",), "capture": capture}
    (limit,) = to_onnx(chosen(operator.gt, 100_000), (torch.ones(4, 2),), **asked).report.limits
    assert "only rows <= 100000 is exported; allowed by accept_ranges" in limit


@pytest.mark.parametrize("capture", CAPTURES)
def test_a_threshold_beyond_what_was_promised_is_no_reason_to_refuse(capture: str) -> None:
    shapes = ({0: Dim("rows", max=100_000)},)
    program = to_onnx(chosen(operator.gt, 100_000), (torch.ones(4, 2),), dynamic_shapes=shapes, capture=capture)
    assert [node.op_type for node in program.model.graph] == ["Mul"]


LOOPS: dict[str, Callable[[Tensor], Any]] = {
    "a test of the turn": lambda x: sum(x[i] * (2 if i < 7000 else 3) for i in range(x.shape[0])),
    "parts": lambda x: torch.stack([part.mean(0) for part in x.split(5000)]).sum(0),
}


@pytest.mark.parametrize("capture", CAPTURES)
@pytest.mark.parametrize("name", LOOPS)
def test_loops_and_parts_that_are_others_beyond_are_refused(capture: str, name: str) -> None:
    with pytest.raises(ToOnnxError, match=r"the iterations of a loop differ|only sizes that give 1 parts|is the constant 4|1 parts"):
        to_onnx(Op(LOOPS[name]), (torch.ones(4, 2),), dynamic_shapes=({0: "rows"},), capture=capture)


def last_rows(x: Tensor) -> Tensor:
    made = x.clone()
    made[:, :50] = 0
    return made


SLICES: dict[str, Callable[[Tensor], Tensor]] = {
    "an axis behind another": lambda x: x[:, :50] * 2,
    "behind an ellipsis": lambda x: x[..., :50] * 2,
    "beside a new axis": lambda x: x[None, :, :50],
    "a size that follows": lambda x: x[:, :50] * x[:, :50].shape[1],
    "set": last_rows,
    "far": lambda x: x[:, :5000].sum(1),
}


@pytest.mark.parametrize("name", SLICES)
def test_a_slice_that_all_runs_end_before_is_in_the_file(name: str) -> None:
    model = Op(SLICES[name])
    program = to_onnx(model, (torch.ones(4, 2),), dynamic_shapes=({0: "rows", 1: "columns"},))
    assert is_right(model, program, (2, 49), (2, 50), (3, 51), (2, 6000))


def test_a_test_of_a_derived_axis_is_told_by_the_name_of_its_root() -> None:
    class Above(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            return x * 2 if x.shape[0] > 9 else x * 3

    with pytest.raises(FrozenDimension, match=r'"9\*k" was asked to be dynamic but only 9\*k > 9 is exported'):
        to_onnx(Above(), (torch.ones(18, 2),), dynamic_shapes=({0: 9 * torch.export.Dim("k", min=1)},))
