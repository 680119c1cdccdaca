"""The graph under construction: its example, equal nodes, and the types of outputs."""

from __future__ import annotations

import doctest

import onnx_ir as ir
import pytest

from fx2onnx.errors import Untranslated
from fx2onnx.ir import graph
from fx2onnx.ir.context import ModelContext
from fx2onnx.ir.graph import Graph, Tensor
from fx2onnx.ir.output_types import output_types

FLOAT, FLOAT16, INT32, INT64, BOOL = ir.DataType.FLOAT, ir.DataType.FLOAT16, ir.DataType.INT32, ir.DataType.INT64, ir.DataType.BOOL


def tensor(dtype: ir.DataType = FLOAT) -> Tensor:
    """A tensor of two rows."""
    return Tensor(name="x", sizes=(2, 3), type=ir.TensorType(dtype))


def test_the_example_in_the_docstring_is_true() -> None:
    result = doctest.testmod(graph)
    assert result.attempted > 5
    assert result.failed == 0


@pytest.mark.parametrize(
    ("op_type", "operands", "attributes", "outputs", "expected"),
    [
        ("Add", (FLOAT16, FLOAT16), {}, 1, (FLOAT16,)),
        ("Less", (FLOAT, FLOAT), {}, 1, (BOOL,)),
        ("Where", (BOOL, INT32, INT32), {}, 1, (INT32,)),
        ("TopK", (FLOAT, INT64), {}, 2, (FLOAT, INT64)),
        ("OneHot", (INT32, INT64, FLOAT), {}, 1, (FLOAT,)),
        ("Cast", (FLOAT,), {"to": BOOL}, 1, (BOOL,)),
        ("CastLike", (FLOAT, INT32), {}, 1, (INT32,)),
        ("RandomNormalLike", (FLOAT16,), {}, 1, (FLOAT16,)),
        ("Multinomial", (FLOAT,), {}, 1, (INT32,)),
        ("Multinomial", (FLOAT,), {"dtype": INT64}, 1, (INT64,)),
        ("ConstantOfShape", (INT64,), {}, 1, (FLOAT,)),
        ("ConstantOfShape", (INT64,), {"value": ir.tensor([1], dtype=INT32)}, 1, (INT32,)),
        ("Loop", (INT64, None, FLOAT), {}, 1, (None,)),
    ],
)
def test_types_of_outputs_are_those_of_the_schema(op_type: str, operands: tuple, attributes: dict, outputs: int, expected: tuple) -> None:
    values = [None if dtype is None else tensor(dtype) for dtype in operands]
    assert output_types("", op_type, 20, values, attributes, outputs) == expected


def test_an_operator_that_the_opset_lacks_is_refused() -> None:
    with pytest.raises(Untranslated, match="opset 20 has no operator RotaryEmbedding"):
        output_types("", "RotaryEmbedding", 20, [tensor()], {}, 1)


def test_random_numbers_are_drawn_as_often_as_they_are_asked_for() -> None:
    g = Graph(ModelContext(20))
    assert g.RandomNormal(shape=[2]) is not g.RandomNormal(shape=[2])


def test_a_graph_inside_finds_equal_nodes_outside_and_a_function_does_not() -> None:
    g, x = Graph(ModelContext(20)), tensor()
    outside = g.Exp(x)
    assert g.child().Exp(x) is outside
    assert Graph(g.shared, parent=g, isolated=True).Exp(x) is not outside


def test_a_function_holds_its_constants_itself() -> None:
    g = Graph(ModelContext(20))
    inside = Graph(g.shared, parent=g, isolated=True)
    assert inside.child().const(1.5, FLOAT).producer() is inside.nodes[0]
    assert g.const(1.5, FLOAT).producer() is None
    assert list(g.shared.initializers) == [g.const(1.5, FLOAT).name]


def test_without_a_kernel_the_next_wider_type_is_computed_with() -> None:
    g = Graph(ModelContext(20))
    made = g.Abs(tensor(ir.DataType.BFLOAT16))
    assert [node.op_type for node in g.nodes] == ["Cast", "Abs", "Cast"]
    assert made.dtype == ir.DataType.BFLOAT16


@pytest.mark.parametrize("op_type", ["ReduceL2", "ReduceMax"])
def test_a_reduction_over_no_axes_is_refused_since_it_would_reduce_all(op_type: str) -> None:
    with pytest.raises(Untranslated, match="reduces all axes if the list of axes is empty"):
        getattr(Graph(ModelContext(20)), op_type)(tensor(), [], keepdims=0)
