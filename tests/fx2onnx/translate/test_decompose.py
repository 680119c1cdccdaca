"""An operator is decomposed where it stands, if that holds for every size; else it is named."""

from __future__ import annotations

import pytest
import torch
from operators import Call
from torch import nn
from torch.export import Dim
from translated import MIX, X, converted, dispatch, without_own

from fx2onnx.errors import UnsupportedOps, Untranslated
from fx2onnx.translate.decompose import decompositions, trace_decomposition

aten = torch.ops.aten
library = torch.library.Library("exportlab_test", "FRAGMENT")
library.define("grow_(Tensor(a!) x, Tensor y) -> ()")
library.define("norm_pair(Tensor x) -> (Tensor, Tensor)")


@torch.library.impl(library, "grow_", "CompositeImplicitAutograd")
def _grow(x: torch.Tensor, y: torch.Tensor) -> None:
    x.add_(y.exp())


@torch.library.impl(library, "norm_pair", "CompositeImplicitAutograd")
def _norm_pair(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    return x / x.abs().sum(), x.neg()


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
        with pytest.raises(Untranslated, match="is valid only for some sizes"):
            trace_decomposition(node, _size_dependent)
    with pytest.raises(Untranslated, match="is valid only for some sizes"):
        trace_decomposition(node, lambda x: x.view(3, 4))
    assert (dict(sizes.replacements), list(sizes.guards), dict(sizes.var_to_range)) == before


def test_the_same_decomposition_is_taken_when_the_size_is_fixed() -> None:
    program = torch.export.export(Call(lambda x: x.exp(), (X,), {}), (X,))
    node = next(node for node in program.graph.nodes if node.target is aten.exp.default)
    assert aten.mul.Tensor in {inner.target for inner in trace_decomposition(node, _size_dependent).graph.nodes}


def test_what_cannot_be_decomposed_is_named() -> None:
    with pytest.raises(UnsupportedOps, match=r"exportlab_test\.mix\.default"):
        converted(lambda x: MIX(x, x, 2.0), X, found=dispatch({}))
    assert decompositions(MIX.default) == []
