"""Operators by torchlib's functions: right models in every opset, merged with ours, refused where the database found them wrong."""

from __future__ import annotations

import onnx_ir as ir
import pytest
import torch
from operators import Call
from torch import nn
from torch.onnx._internal._lazy_import import onnxscript_apis
from translated import X, converted, dispatch, without_own

from fx2onnx.lower.conversion import Conversion, ConversionOptions
from fx2onnx.translate.torchlib import NAMESPACES, torchlib_source

aten = torch.ops.aten


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


def test_torchlib_is_asked_for_every_library_of_operators_that_it_has() -> None:
    functions = {"_operator", "math"}  # Python's own, which are no operators of torch
    assert {meta.qualified_name.partition("::")[0] for meta in onnxscript_apis.get_torchlib_ops()} <= {*NAMESPACES, *functions}
