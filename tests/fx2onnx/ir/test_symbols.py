"""Symbolic numbers as ONNX values: every rule against sympy, and sizes as numbers in models."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import onnx_ir as ir
import onnxruntime
import pytest
import sympy
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from operators import check, check_both
from torch.utils._sympy import functions as f

from fx2onnx import to_onnx
from fx2onnx.ir.context import ModelContext
from fx2onnx.ir.graph import Graph, Tensor
from fx2onnx.ir.symbols import UnknownSymbol

A, B = sympy.symbols("a b", integer=True)
X = sympy.Symbol("x", real=True)
VALUES = [(a, b, x) for a in (-7, -1, 0, 1, 2, 9, 40) for b in (1, 3, 8) for x in (-2.5, 0.5, 3.49)]
KINDS = {"int": ir.DataType.INT64, "float": ir.DataType.DOUBLE, "bool": ir.DataType.BOOL}


def session_of(number: Any, kind: str, dtypes: dict[Any, Any] | None = None, opset: int = 20) -> onnxruntime.InferenceSession:
    """A model with inputs a, b and x that returns the value of the expression."""
    g = Graph(ModelContext(opset))
    inputs = []
    for symbol, dtype in {A: ir.DataType.INT64, B: ir.DataType.INT64, X: ir.DataType.DOUBLE, **(dtypes or {})}.items():
        inputs.append(Tensor(name=str(symbol), sizes=(), type=ir.TensorType(dtype), shape=ir.Shape([])))
        g.symbols.learn_number(symbol, inputs[-1])
    made = g.append_identity(g.scalar(number, KINDS[kind]))
    initializers = [value for value in g.shared.initializers.values() if value.uses()]
    graph = ir.Graph(inputs, [made], nodes=g.nodes, initializers=initializers, opset_imports={"": opset}, name="main")
    return onnxruntime.InferenceSession(ir.to_proto(ir.Model(graph, ir_version=10)).SerializeToString())


def computed(session: onnxruntime.InferenceSession, a: int, b: int, x: float) -> Any:
    given = {"a": torch.tensor(a).numpy(), "b": torch.tensor(b).numpy(), "x": torch.tensor(x, dtype=torch.float64).numpy()}
    (found,) = session.run(None, given)
    return found.item()


def expected(number: Any, a: int, b: int, x: float) -> Any:
    value = number.xreplace({A: sympy.Integer(a), B: sympy.Integer(b), X: sympy.Float(x)})
    return bool(value) if value in (sympy.true, sympy.false) else int(value) if value.is_integer else float(value)


def agrees(number: Any, kind: str, **given: Any) -> None:
    session = session_of(number, kind, **given)
    for values in VALUES:
        assert computed(session, *values) == pytest.approx(expected(number, *values)), values


@pytest.mark.parametrize(
    "number",
    [
        A + B, A - 2 * B, A * B + 3, -A, sympy.Abs(A), f.FloorDiv(A, B), f.FloorDiv(-A, 3), f.PythonMod(A, B), f.Mod(f.PythonMod(A, 5), B),
        f.CleanDiv(A * B, B), f.ModularIndexing(A, B, 5), f.Max(A, B), f.Max(A, 3, B), f.Min(A, B), f.PowByNatural(A, sympy.Integer(2)),
        A**3, f.TruncToInt(X), f.FloorToInt(X), f.CeilToInt(X), f.RoundToInt(X), f.RoundToInt(f.IntTrueDiv(A, sympy.Integer(2))),
        f.CeilToInt(f.IntTrueDiv(A, B)), f.FloorToInt(f.ToFloat(A) * 0.7), sympy.floor(A / 2), sympy.ceiling(A / 3), sympy.floor(X),
        f.Where(A > B, A, B + 1), sympy.Piecewise((1, sympy.Eq(A, 1)), (0, True)), sympy.Piecewise((1, A > 5), (A, A > 0), (B, True)),
        f.LShift(A, B), f.RShift(A, B), f.BitwiseFn_bitwise_and(A, B), f.BitwiseFn_bitwise_or(A, B),
        f.BitwiseFn_bitwise_xor(A, B),
    ],
    ids=str,
)  # fmt: skip
def test_an_integer_rule_agrees_with_sympy(number: Any) -> None:
    agrees(number, "int")


@pytest.mark.parametrize(
    "number",
    [
        f.IntTrueDiv(A, B), f.FloatTrueDiv(X, f.ToFloat(B)), f.ToFloat(A) + 0.5, X * A, X + B, f.FloatPow(f.ToFloat(B), sympy.Float(0.5)),
        f.TruncToFloat(X), f.Max(X, A), f.Min(X, B), f.Where(A > B, X, A), B ** sympy.Integer(-1), sympy.sqrt(B), sympy.Rational(1, 3) * A,
        f.OpaqueUnaryFn_sqrt(B), f.OpaqueUnaryFn_exp(X), f.OpaqueUnaryFn_log(B), f.OpaqueUnaryFn_sin(X), f.OpaqueUnaryFn_cos(X),
    ],
    ids=str,
)  # fmt: skip
def test_a_rule_for_floats_agrees_with_sympy(number: Any) -> None:
    agrees(number, "float")


@pytest.mark.parametrize(
    "statement",
    [
        sympy.Eq(A, B), sympy.Ne(A, B), A < B, A <= B, A > X, X >= B, sympy.Eq(f.PythonMod(A, 2), 0), sympy.And(A > 0, B < 5, X > 0),
        sympy.Or(A > 3, X > 0), sympy.Not(sympy.And(A > 0, X > 0)), sympy.true, sympy.false,
    ],
    ids=str,
)  # fmt: skip
def test_a_comparison_is_a_boolean(statement: Any) -> None:
    agrees(statement, "bool")


@pytest.mark.parametrize("opset", [18, 26])
def test_rules_hold_at_other_opsets(opset: int) -> None:
    agrees(f.Max(f.FloorDiv(A, B), f.RoundToInt(X), f.PythonMod(A, 4)), "int", opset=opset)


def test_a_comparison_is_one_or_zero_as_a_number() -> None:
    session = session_of(A > B, "int")
    assert [computed(session, 1, 3, 0.0), computed(session, 9, 3, 0.0)] == [0, 1]


def test_numbers_that_arrive_in_other_dtypes_keep_their_value() -> None:
    """`.item()` of an int32 or of a float32 tensor: a sum with them is neither refused nor truncated."""
    g = Graph(ModelContext(20))
    number = Tensor(name="x", sizes=(), type=ir.TensorType(ir.DataType.FLOAT))
    g.symbols.learn_number(X, number)
    assert g.scalar(X + 1, torch.float64).producer().inputs[0].dtype == ir.DataType.DOUBLE
    short = Tensor(name="a", sizes=(), type=ir.TensorType(ir.DataType.INT32))
    g.symbols.learn_number(A, short)
    assert g.ints([A]).dtype == ir.DataType.INT64


@pytest.mark.parametrize("number", [sympy.Symbol("other", integer=True) + A, f.RoundDecimal(X, sympy.Integer(2)), sympy.gamma(X)], ids=str)
def test_what_no_rule_knows_is_refused(number: Any) -> None:
    with pytest.raises(UnknownSymbol):
        session_of(number, "float")


@st.composite
def expressions(draw: st.DrawFn, depth: int = 3) -> Any:
    if depth == 0 or draw(st.booleans()):
        return draw(st.sampled_from([A, B, sympy.Integer(-3), sympy.Integer(2)]))
    first, second = draw(expressions(depth=depth - 1)), draw(expressions(depth=depth - 1))
    divisor = draw(st.sampled_from([B, sympy.Integer(3), f.Max(1, B + 2)]))
    return draw(
        st.sampled_from(
            [
                lambda: first + second, lambda: first * second, lambda: first - second, lambda: f.FloorDiv(first, divisor),
                lambda: f.PythonMod(first, divisor), lambda: f.Max(first, second), lambda: f.Min(first, second),
            ]
        )
    )()  # fmt: skip


@given(expressions())
@settings(max_examples=60, deadline=None, derandomize=True)
def test_any_expression_of_integers_agrees_with_sympy(number: Any) -> None:
    agrees(sympy.sympify(number), "int")


NUMBERS: dict[str, Callable[[torch.Tensor], Any]] = {
    "a size times a tensor": lambda x: x * x.shape[0],
    "half the rows": lambda x: x[: x.shape[0] // 2],
    "full of a size, with a size": lambda x: torch.full((x.shape[0] // 2,), x.shape[0] % 3),
    "full of a quotient": lambda x: torch.full((2,), x.shape[0] / 3),
    "full of a comparison": lambda x: torch.full((2,), x.shape[0] > 5),
    "times a comparison": lambda x: (x * (x.shape[0] > 5), x.to(torch.int64) * (x.shape[0] > 5)),
    "max and min": lambda x: x * max(x.shape[0], 6) + min(x.shape[0], 6),
    "divided by the root": lambda x: x / x.shape[0] ** 0.5,
    "rounded": lambda x: x * round(x.shape[0] / 3),
    "a negative quotient": lambda x: x * (-x.shape[0] // 3),
    "a product of sizes": lambda x: torch.ones(x.shape[0] * x.shape[1] - 1),
    "how many are not zero": lambda x: (x > 0.5).nonzero().shape[0] * x,
    "as many ones as are not zero": lambda x: torch.ones((x > 0.5).nonzero().shape[0] * 2),
}


@pytest.mark.parametrize("name", NUMBERS)
def test_sizes_and_values_as_numbers_are_right_at_other_sizes(name: str) -> None:
    check_both(NUMBERS[name], torch.rand(4, 3, generator=torch.Generator().manual_seed(0)))


def test_sizes_and_numbers_of_them_can_be_results() -> None:
    check(lambda x: (x.shape[0], x.shape[0] * 2 + 1, x.shape[0] / 4, x.shape[0] > 5), torch.rand(4, 3), dynamic=True)


def test_a_length_that_two_equal_masks_give_has_two_names() -> None:
    class Masked(torch.nn.Module):
        def forward(self, x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
            first = torch.ones(x[x > 0].shape[0] + 2)
            return first, torch.ones(x[x > 0].shape[0] + 3)

    program = to_onnx(Masked(), (torch.randn(5),), dynamic_shapes=({0: "n"},))
    first, second = program(torch.tensor([1.0, -1.0, 2.0, 3.0, 0.0, 1.0, -2.0]))
    assert (first.tolist(), second.tolist()) == ([1.0] * 6, [1.0] * 7)
