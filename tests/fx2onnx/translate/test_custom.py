"""The caller's own translations come before all others; what is wrong with their table is said."""

from __future__ import annotations

from typing import Any

import onnxscript
import pytest
import torch
from onnxscript import opset18 as op
from translated import MIX, X, converted, dispatch

from fx2onnx.errors import UnsupportedOps, Untranslated
from fx2onnx.ir.graph import Graph, Tensor
from fx2onnx.translate.custom import custom_table

custom_domain = onnxscript.values.Opset("exportlab.test", 1)


@onnxscript.script(custom_domain)
def twice_and(x, y, by: float = 3.0):  # noqa: ANN001, ANN201 - onnxscript reads it
    """2x + by·y."""
    scaled = op.Mul(y, op.CastLike(op.Constant(value_float=by), y))
    return op.Add(op.Add(x, x), scaled)


def test_no_fallback_asks_neither_torchlib_nor_decompositions() -> None:
    assert dispatch({}, 20, False).fallbacks == ()


def _as_ours(g: Graph, x: Tensor, y: Tensor, by: float) -> Tensor:
    return g.Add(g.Add(x, x), g.Mul(y, by))


def _refusing(g: Graph, x: Tensor, y: Tensor, by: float) -> Tensor:
    raise Untranslated("not this time")


def _as_onnxscript(x: Any, y: Any, by: float) -> Any:
    return op.Add(op.Add(x, x), op.Mul(y, by))


CUSTOM = {
    "a function of g": _as_ours,
    "a plain function": _as_onnxscript,
    "a scripted function": twice_and,
    "the first that fits": [_refusing, _as_onnxscript],
}


@pytest.mark.parametrize("kind", CUSTOM)
@pytest.mark.parametrize("opset", [18, 26])
def test_the_callers_translations_come_first(kind: str, opset: int) -> None:
    found = dispatch({MIX.default: CUSTOM[kind]}, opset, True)
    model, report = converted(lambda x, y: MIX(x, y, 2.5), X, X.flip(0), found=found, opset=opset)
    report.check()
    assert [node.target for node in found.used["custom"]] == [MIX.default]
    assert [identifier[:2] for identifier in model.functions] == ([("exportlab.test", "twice_and")] if CUSTOM[kind] is twice_and else [])


def test_an_operator_with_one_overload_may_be_named_without_it() -> None:
    assert list(custom_table({MIX: _as_ours}, 20)) == [MIX.default]


@pytest.mark.parametrize(
    ("table", "error", "text"),
    [
        ({"aten::add": _as_ours}, TypeError, "not an operator of torch"),
        ({torch.ops.aten.add: _as_ours}, ValueError, r"several overloads \(Tensor"),
        ({MIX.default: 3}, TypeError, "is not callable"),
        ({MIX.default: []}, ValueError, "is empty"),
    ],
)
def test_what_is_wrong_with_the_callers_table_is_said(table: Any, error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        dispatch(table)


def test_an_error_in_the_callers_function_is_a_reason() -> None:
    with pytest.raises(UnsupportedOps, match="NameError: name 'nothing' is not defined"):
        converted(lambda x: MIX(x, x, 2.0), X, found=dispatch({MIX.default: lambda x, y, by: nothing}))  # noqa: F821


def _two_results(x: Any, *others: Any) -> Any:
    return x, x


@pytest.mark.parametrize(
    ("function", "said"),
    [(lambda x: nothing, "NameError: name 'nothing' is not defined"), (_two_results, "returns 2 results")],  # noqa: F821
    ids=["fails", "gives too much"],
)
def test_no_other_translation_takes_the_place_of_a_function_that_fails(function: Any, said: str) -> None:
    table = dispatch({torch.ops.aten.relu.default: function})
    with pytest.raises(UnsupportedOps, match=f"{said}.* \\(in its function in custom_translation_table\\)"):
        converted(lambda x: torch.relu(x), X, found=table)


def test_another_translation_is_tried_where_a_function_refuses() -> None:
    def refuses(x: Any) -> Any:
        raise Untranslated("not this time")

    found = dispatch({torch.ops.aten.relu.default: refuses})
    converted(lambda x: torch.relu(x), X, found=found)[1].check()
    assert [node.target for node in found.used["own"]] == [torch.ops.aten.relu.default]


def _limited(x: torch.Tensor, limit: float = 0.5, *, shift: float = 0.25) -> torch.Tensor:
    return x.clamp(max=limit) + shift


LIMITED = torch.library.custom_op("exportlab_test::limited", _limited, mutates_args=())
LIMITED.register_fake(lambda x, limit=0.5, *, shift=0.25: torch.empty_like(x))


def _clamped(g: Graph, x: Tensor, limit: float, *, shift: float) -> Tensor:
    return g.Add(g.Min(x, limit), shift)


@pytest.mark.parametrize("call", [lambda x: LIMITED(x), lambda x: LIMITED(x, 0.1), lambda x: LIMITED(x, shift=2.0)])
def test_a_function_is_given_the_defaults_of_the_schema(call: Any) -> None:
    converted(call, X, found=dispatch({torch.ops.exportlab_test.limited.default: _clamped}))[1].check()


def test_a_default_of_the_functions_own_stays() -> None:
    def clamped(g: Graph, x: Tensor, limit: float = 0.5, shift: float = 0.25) -> Tensor:
        return g.Add(g.Min(x, limit), shift)

    converted(lambda x: LIMITED(x), X, found=dispatch({torch.ops.exportlab_test.limited.default: clamped}))[1].check()


def test_a_function_that_asks_for_more_than_the_operator_has_is_told() -> None:
    def clamped(g: Graph, x: Tensor, limit: float, other: float) -> Tensor:
        return x

    said = r"clamped\(g: .*\) -> .* does not accept the arguments of exportlab_test::limited\(.*: missing a required argument: 'other'"
    with pytest.raises(UnsupportedOps, match=said):
        converted(lambda x: LIMITED(x), X, found=dispatch({torch.ops.exportlab_test.limited.default: clamped}))
