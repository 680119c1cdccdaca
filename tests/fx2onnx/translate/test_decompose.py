"""What `to_onnx` does with operators that have no translation of ours: torchlib, decompositions, the caller's functions, experts."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import onnx_ir as ir
import onnxscript
import pytest
import torch
from onnxscript import opset18 as op
from operators import Call
from torch import nn
from torch.export import Dim

from exportlab.cases import Sample
from exportlab.verification.verify import Report, verify
from fx2onnx.build.conversion import Conversion, ConversionOptions
from fx2onnx.build.graph import Graph, Tensor
from fx2onnx.errors import UnsupportedOps, Untranslated
from fx2onnx.ops import own_translations
from fx2onnx.translate.custom import custom_table
from fx2onnx.translate.decompose import decompositions, traced
from fx2onnx.translate.dispatch import Dispatch
from fx2onnx.translate.sources import dispatch_of
from fx2onnx.translate.torchlib import torchlib_source

aten = torch.ops.aten
X = torch.linspace(-2, 3, 12).reshape(3, 4)
custom_domain = onnxscript.values.Opset("exportlab.test", 1)


@onnxscript.script(custom_domain)
def twice_and(x, y, by: float = 3.0):  # noqa: ANN001, ANN201 - onnxscript reads it
    """2x + by·y."""
    scaled = op.Mul(y, op.CastLike(op.Constant(value_float=by), y))
    return op.Add(op.Add(x, x), scaled)


@torch.library.custom_op("exportlab_test::mix", mutates_args=())
def mix(x: torch.Tensor, y: torch.Tensor, by: float) -> torch.Tensor:
    """2x + by·y."""
    return 2 * x + by * y


@mix.register_fake
def _(x: torch.Tensor, y: torch.Tensor, by: float) -> torch.Tensor:
    return torch.empty_like(x)


MIX = torch.ops.exportlab_test.mix
library = torch.library.Library("exportlab_test", "FRAGMENT")
library.define("grow_(Tensor(a!) x, Tensor y) -> ()")
library.define("norm_pair(Tensor x) -> (Tensor, Tensor)")


@torch.library.impl(library, "grow_", "CompositeImplicitAutograd")
def _grow(x: torch.Tensor, y: torch.Tensor) -> None:
    x.add_(y.exp())


@torch.library.impl(library, "norm_pair", "CompositeImplicitAutograd")
def _norm_pair(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    return x / x.abs().sum(), x.neg()


@pytest.fixture(autouse=True)
def nothing_left() -> None:
    """Each test starts without what earlier captures left behind."""
    torch._dynamo.reset()


def converted(function: Callable[..., Any], *args: Any, found: Dispatch, opset: int = 20, dynamic: bool = True) -> tuple[ir.Model, Report]:
    """The model of a function with this look-up, and its verification at the size of the example and at another."""
    module = Call(function, args, {})
    shapes = (tuple(dict.fromkeys(range(a.dim()), Dim.AUTO) for a in args),) if dynamic else None
    program = torch.export.export(module, args, dynamic_shapes=shapes)
    model = Conversion(program, ConversionOptions(opset), {}, found).model()
    samples = [Sample(args)] + ([Sample(tuple(torch.cat([a, a]) for a in args))] if dynamic else [])
    return model, verify(torch.onnx.ONNXProgram(model, program), module, samples)


def without_own(*operators: Any, opset: int = 20) -> Dispatch:
    """Return what finds translations when there are none of our own for these operators."""
    rest = {target: made for target, made in own_translations().items() if target not in operators}
    return dispatch_of({}, rest, opset, True)


def dispatch(table: Mapping[Any, Any], opset: int = 20, fallback: bool = True) -> Dispatch:
    """Return what finds translations with this table of the caller's."""
    return dispatch_of(table, own_translations(), opset, fallback)


TORCHLIB = {
    "a traced function": (aten.tril.default, lambda x: torch.tril(x)),
    "a scripted function, inlined": (aten.selu.default, lambda x: nn.functional.selu(x)),
    "symbolic sizes in a list": (aten.view.default, lambda x: x.view(x.shape[1], x.shape[0])),
    "a symbolic size as a number": (aten.slice.Tensor, lambda x: x[x.shape[0] // 2 :]),
    "several results": (aten.max.dim, lambda x: x.max(1)),
    "a list of results": (aten.unbind.int, lambda x: x[:2].unbind(0)),
    "an in-place operator": (aten.tanh_.default, lambda x: x.clone().tanh_()),
    "a dtype": (aten.cumsum.default, lambda x: x.cumsum(0, dtype=torch.float64)),
    "a list of tensors": (aten.stack.default, lambda x: torch.stack([x, x + 1], 1)),
    "grid_sample, whose modes have other names from opset 20 on": (
        aten.grid_sampler.default,
        lambda x: nn.functional.grid_sample(x[None, None], torch.stack([x, x], -1)[None] / 4, align_corners=False),
    ),
}


@pytest.mark.parametrize("case", TORCHLIB)
@pytest.mark.parametrize("opset", [18, 20, 26])
def test_torchlib_gives_right_models_in_every_opset(case: str, opset: int) -> None:
    target, function = TORCHLIB[case]
    twin = getattr(getattr(aten, target._schema.name[6:].removesuffix("_")), target._overloadname)
    found = without_own(target, twin, opset=opset)
    converted(function, X, found=found, opset=opset)[1].check()
    assert target in {node.target for node in found.used["torchlib"]}


def test_constants_and_equal_nodes_of_torchlib_are_merged_with_ours() -> None:
    found = without_own(aten.selu.default, aten.tril.default)
    model, _ = converted(lambda x: torch.tril(x) + torch.tril(x), X, found=found, dynamic=False)
    assert [node.op_type for node in model.graph].count("Trilu") == 1
    assert not [node for node in model.graph if node.op_type == "Constant"]


def test_torchlib_is_refused_where_the_database_found_it_wrong() -> None:
    graph = torch.export.export(Call(lambda x: torch.addmm(x, x, x), (X[:3, :3],), {}), (X[:3, :3],)).graph
    node = next(node for node in graph.nodes if node.target is aten.addmm.default)
    assert torchlib_source(20)(node) is None


DECOMPOSED = {
    "a table": (aten.huber_loss.default, lambda x: nn.functional.huber_loss(x, x.tanh())),
    "a composite kernel": (aten.diag_embed.default, lambda x: torch.diag_embed(x)),
    "several results": (torch.ops.exportlab_test.norm_pair.default, lambda x: torch.ops.exportlab_test.norm_pair(x)),
    "an argument that is written": (torch.ops.exportlab_test.grow_.default, lambda x: _grown(x)),
}


def _grown(x: torch.Tensor) -> torch.Tensor:
    fresh = x * 2
    torch.ops.exportlab_test.grow_(fresh, x)
    return fresh


@pytest.mark.parametrize("case", DECOMPOSED)
def test_an_operator_is_decomposed_where_it_stands(case: str, monkeypatch: pytest.MonkeyPatch) -> None:
    target, function = DECOMPOSED[case]
    monkeypatch.setattr("fx2onnx.translate.torchlib.REFUSED", frozenset({target.name()}))
    found = without_own(target)
    converted(function, X, found=found)[1].check()
    assert target in {node.target for node in found.used["decomposed"]}


def test_results_of_a_decomposition_keep_the_names_of_the_capture() -> None:
    model, _ = converted(lambda x: nn.functional.huber_loss(x, x.tanh()), X, found=without_own(aten.huber_loss.default))
    assert [value.name for value in model.graph.outputs] == ["huber_loss"]


def _size_dependent(x: torch.Tensor) -> torch.Tensor:
    return x * 2 if x.shape[0] < 5 else x * 3


def test_a_decomposition_that_decides_by_a_size_is_refused_and_changes_nothing() -> None:
    program = torch.export.export(Call(lambda x: x.exp(), (X,), {}), (X,), dynamic_shapes=(({0: Dim.AUTO},),))
    node = next(node for node in program.graph.nodes if node.target is aten.exp.default)
    sizes = node.meta["val"].fake_mode.shape_env
    before = dict(sizes.replacements), list(sizes.guards), dict(sizes.var_to_range)
    for _ in range(2):  # the second time the answer is remembered
        with pytest.raises(Untranslated, match="holds for some sizes only"):
            traced(node, _size_dependent)
    with pytest.raises(Untranslated, match="holds for some sizes only"):
        traced(node, lambda x: x.view(3, 4))
    assert (dict(sizes.replacements), list(sizes.guards), dict(sizes.var_to_range)) == before


def test_the_same_decomposition_is_taken_when_the_size_is_fixed() -> None:
    program = torch.export.export(Call(lambda x: x.exp(), (X,), {}), (X,))
    node = next(node for node in program.graph.nodes if node.target is aten.exp.default)
    assert aten.mul.Tensor in {inner.target for inner in traced(node, _size_dependent).graph.nodes}


def test_what_cannot_be_decomposed_is_named() -> None:
    with pytest.raises(UnsupportedOps, match=r"exportlab_test\.mix\.default"):
        converted(lambda x: MIX(x, x, 2.0), X, found=dispatch({}))
    assert decompositions(MIX.default) == []


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
        ({"aten::add": _as_ours}, TypeError, "no operator of torch"),
        ({torch.ops.aten.add: _as_ours}, ValueError, "overloads Tensor"),
        ({MIX.default: 3}, TypeError, "cannot be called"),
        ({MIX.default: []}, ValueError, "is empty"),
    ],
)
def test_what_is_wrong_with_the_callers_table_is_said(table: Any, error: type[Exception], text: str) -> None:
    with pytest.raises(error, match=text):
        dispatch(table)


def test_an_error_in_the_callers_function_is_a_reason() -> None:
    with pytest.raises(UnsupportedOps, match="NameError: name 'nothing' is not defined"):
        converted(lambda x: MIX(x, x, 2.0), X, found=dispatch({MIX.default: lambda x, y, by: nothing}))  # noqa: F821


class Experts(nn.Module):
    """Rows times the matrix of their group."""

    def __init__(self, exchanged: bool) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.randn(4, 3, 5) if exchanged else torch.randn(4, 5, 3))
        self.exchanged = exchanged

    def forward(self, x: torch.Tensor, ends: torch.Tensor) -> torch.Tensor:
        weight = self.weight.transpose(-2, -1) if self.exchanged else self.weight
        return torch.ops.exportlab_test.grouped(x, weight, ends)


@torch.library.custom_op("exportlab_test::grouped", mutates_args=())
def grouped(x: torch.Tensor, weight: torch.Tensor, ends: torch.Tensor) -> torch.Tensor:
    """As transformers' grouped_mm_fallback: rows of no group are zeros."""
    result, start = torch.zeros(x.shape[0], weight.shape[2]), 0
    for i, end in enumerate(ends.tolist()):
        result[start:end] = x[start:end] @ weight[i]
        start = end
    return result


@grouped.register_fake
def _(x: torch.Tensor, weight: torch.Tensor, ends: torch.Tensor) -> torch.Tensor:
    return x.new_empty(x.shape[0], weight.shape[2])


@pytest.mark.parametrize("exchanged", [False, True])
def test_experts_are_right_for_groups_and_rows_of_any_number(exchanged: bool) -> None:
    module = Experts(exchanged).eval()
    ends = [(2, 2, 5, 6), (0, 0, 0, 0), (0, 3, 3, 7), (1, 1, 1, 1), (0, 0, 0, 0)]
    rows = (6, 4, 9, 1, 0)
    samples = [Sample((torch.randn(n, 5), torch.tensor(e, dtype=torch.int32))) for n, e in zip(rows, ends, strict=True)]
    program = torch.export.export(module, samples[0].args, dynamic_shapes=({0: Dim.DYNAMIC}, None))
    table = {torch.ops.exportlab_test.grouped.default: own_translations()[aten._grouped_mm.default]}
    model = Conversion(program, ConversionOptions(20), {}, dispatch(table)).model()
    report = verify(torch.onnx.ONNXProgram(model, program), module, samples)
    assert {check.outcome for check in report.checks if check.name != "other values"} == {"ok"}  # those are ends that go back
    assert "Gather" not in {node.op_type for node in model.graph}


def test_the_operator_of_transformers_is_found_by_its_name() -> None:
    assert own_translations()["transformers.grouped_mm_fallback.default"] is own_translations()[aten._grouped_mm.default]


def test_operators_of_torch_onnx_ops_are_what_they_say() -> None:
    def rotated(x: torch.Tensor) -> torch.Tensor:
        return torch.ops.onnx.RotaryEmbedding.opset23(x[None, None], (x / 2)[None, :, :2], (x / 3)[None, :, :2])

    model, report = converted(rotated, X, found=dispatch({}, 23, True), opset=23, dynamic=False)
    report.check()
    assert "RotaryEmbedding" in {node.op_type for node in model.graph}


def test_symbolic_operators_of_torch_onnx_are_written_as_asked() -> None:
    def symbolic(x: torch.Tensor) -> torch.Tensor:
        return torch.onnx.ops.symbolic("Celu", (x,), {"alpha": 2.0}, dtype=x.dtype, shape=x.shape, version=18)

    program = torch.export.export(Call(symbolic, (X,), {}), (X,))
    model = Conversion(program, ConversionOptions(20), {}, dispatch({})).model()
    [celu] = [node for node in model.graph if node.op_type == "Celu"]
    assert celu.attributes["alpha"].value == 2.0
    assert celu.outputs[0].dtype == ir.DataType.FLOAT
