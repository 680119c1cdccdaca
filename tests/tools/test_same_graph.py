"""Two graphs are one up to names and the order of nodes, and nothing else."""

from __future__ import annotations

import onnx
import onnx_ir as ir
import pytest
from same_graph import difference

ONE = """
agraph (float[N, 4] x, float[4] y) => (float[N, 4] z)
<float[4] w = {1, 2, 3, 4}>
{
    a = Relu(x)
    b = Mul(y, w)
    z = Add(a, b)
}
"""
IF = """
agraph (float[N] x, bool c) => (float[N] z)
{
    a = Relu(x)
    z = If (c) <then_branch = g1 () => (float[N] p) { p = Neg(a) }, else_branch = g2 () => (float[N] q) { q = Exp(x) }>
}
"""


def model(text: str) -> ir.Model:
    header = '<ir_version: 10, opset_import: ["" : 20]>'
    return ir.from_proto(onnx.parser.parse_model(header + text))


@pytest.mark.parametrize(
    "replaced",
    [
        {"a = Relu": "other = Relu", "Add(a, b)": "Add(other, b)"},
        {"[N, 4]": "[batch, 4]"},
        {"    a = Relu(x)\n    b = Mul(y, w)": "    b = Mul(y, w)\n    a = Relu(x)"},
        {"<float[4] w = {1, 2, 3, 4}>\n{": "{\n    w = Constant <value = float[4] {1, 2, 3, 4}> ()"},
    ],
    ids=["value", "size", "order", "constant"],
)
def test_names_and_the_order_of_nodes_say_nothing(replaced: dict[str, str]) -> None:
    text = ONE
    for before, after in replaced.items():
        assert before in text
        text = text.replace(before, after)
    assert difference(model(ONE), model(text)) == ""


@pytest.mark.parametrize(
    ("before", "after", "said"),
    [
        ("Relu", "Exp", "+Relu -Exp"),
        ("a = Relu(x)", "c = Relu(x)\n    a = Relu(c)", "-Relu"),
        ("Add(a, b)", "Add(b, a)", "wiring or attributes"),
        ("{1, 2, 3, 4}", "{1, 2, 3, 5}", "constants"),
        ("float[N, 4] x", "float[3, 4] x", "wiring or attributes"),
        ("a = Relu(x)", "a = Relu <alpha = 1> (x)", "wiring or attributes"),
    ],
)
def test_anything_else_is_a_difference(before: str, after: str, said: str) -> None:
    assert difference(model(ONE), model(ONE.replace(before, after))) == said


def test_a_node_that_is_there_twice_is_not_one_that_is_read_twice() -> None:
    once = "agraph (float[N] x) => (float[N] z) { a = Relu(x) b = Exp(x) z = Sum(a, a, b, b) }"
    a_twice = "agraph (float[N] x) => (float[N] z) { a = Relu(x) c = Relu(x) b = Exp(x) z = Sum(a, c, b, b) }"
    b_twice = "agraph (float[N] x) => (float[N] z) { a = Relu(x) b = Exp(x) d = Exp(x) z = Sum(a, a, b, d) }"
    assert difference(model(once), model(a_twice)) == "-Relu"
    assert difference(model(a_twice), model(b_twice)) == "+Relu -Exp"


@pytest.mark.parametrize(
    ("before", "after", "said"),
    [
        ("p = Neg(a)", "p = Neg(x)", "wiring or attributes"),
        ("p = Neg(a)", "p = Exp(a)", "-Exp +Neg"),
        ("g1 () => (float[N] p) { p = Neg(a) }", "other () => (float[N] r) { r = Neg(a) }", ""),
    ],
)
def test_graphs_inside_are_looked_at(before: str, after: str, said: str) -> None:
    found = difference(model(IF), model(IF.replace(before, after)))
    assert sorted(found.split()) == sorted(said.split())
