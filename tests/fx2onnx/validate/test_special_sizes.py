"""A test that fails at one element alone makes both sides only where the general side is wrong there."""

from __future__ import annotations

from typing import Any

import onnxruntime
import pytest
import torch
import torch.nn.functional as F
from torch import nn
from torch.export import Dim

import fx2onnx.strategies.auto
from fx2onnx import to_onnx

SIZES = [(1, 1), (1, 5), (2, 1), (3, 4)]


class Causal(nn.Module):
    """Attention that is not causal at one place, where that makes no difference."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.embedding, self.inner = nn.Embedding(20, 8), nn.Linear(8, 24)

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        q, k, v = self.inner(self.embedding(ids)).chunk(3, -1)
        return F.scaled_dot_product_attention(q[:, None], k[:, None], v[:, None], is_causal=q.shape[1] > 1)[:, 0]


class MaskedAboveOneRow(nn.Module):
    """A layer that leaves its mask out for one row, as Mamba-2 does."""

    def forward(self, x: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        if x.shape[0] > 1:
            x = x * mask
        return x + 1


class CentredAboveOnePlace(nn.Module):
    """A layer that does something else at one place, whatever the mask is."""

    def forward(self, x: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
        if x.shape[1] > 1:
            x = x - x.mean(1, keepdim=True)
        return x * mask


class ExpandedAboveOneRow(nn.Module):
    """Positions that are expanded for several rows alone."""

    def __init__(self) -> None:
        super().__init__()
        torch.manual_seed(0)
        self.inner = nn.Linear(4, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        positions = torch.arange(x.shape[1])[None]
        if x.shape[0] != positions.shape[0]:
            positions = positions.expand(x.shape[0], -1)
        return self.inner(x) * (positions + 1)[..., None]


def _exported(model: nn.Module, args: tuple[torch.Tensor, ...], **options: Any) -> Any:
    shapes = tuple({0: Dim.DYNAMIC, 1: Dim.DYNAMIC} for _ in args)
    return to_onnx(model.eval(), args, dynamic_shapes=shapes, capture="run", **options)


def _is_right(exported: Any, model: nn.Module, args: tuple[torch.Tensor, ...]) -> bool:
    session = onnxruntime.InferenceSession(exported.model_proto.SerializeToString())
    feeds = {given.name: tensor.numpy() for given, tensor in zip(session.get_inputs(), args, strict=True)}
    found, wanted = torch.from_numpy(session.run(None, feeds)[0]), model(*args)
    return found.shape == wanted.shape and torch.allclose(found, wanted, atol=1e-5)


def _has_if(exported: Any) -> bool:
    return "If" in {node.op_type for node in exported.model_proto.graph.node}


@pytest.mark.parametrize("rows", [1, 2])
def test_a_flag_that_makes_no_difference_at_one_place_makes_no_sides(rows: int) -> None:
    model = Causal()
    exported = _exported(model, (torch.randint(20, (rows, 7)),))
    assert not _has_if(exported)
    assert all(_is_right(exported, model, (torch.randint(20, sizes),)) for sizes in SIZES)


def test_a_mask_that_is_left_out_for_one_row_makes_both_sides_though_the_example_hides_nothing() -> None:
    model = MaskedAboveOneRow()
    exported = _exported(model, (torch.randn(2, 7), torch.ones(2, 7)))
    assert _has_if(exported)
    for sizes in SIZES:
        mask = torch.ones(sizes)
        mask[..., -1] = 0
        assert _is_right(exported, model, (torch.randn(sizes), mask))


def test_values_that_differ_at_one_place_make_both_sides() -> None:
    model = CentredAboveOnePlace()
    exported = _exported(model, (torch.randn(2, 7), torch.ones(2, 7)))
    assert _has_if(exported)
    assert all(_is_right(exported, model, (torch.randn(sizes), torch.ones(sizes))) for sizes in SIZES)


@pytest.mark.parametrize("model", [Causal(), ExpandedAboveOneRow()], ids=lambda model: type(model).__name__)
def test_runs_without_values_are_compared_by_their_calls(monkeypatch: pytest.MonkeyPatch, model: nn.Module) -> None:
    monkeypatch.setattr(fx2onnx.strategies.auto, "MAX_FLOPS", 0)
    monkeypatch.setattr(fx2onnx.trace.compute_budget, "CHEAP", 0)
    given = [torch.randint(20, sizes) if isinstance(model, Causal) else torch.randn(*sizes, 4) for sizes in [(2, 7), *SIZES]]
    exported = _exported(model, (given[0],))
    assert not _has_if(exported)
    assert all(_is_right(exported, model, (one,)) for one in given[1:])


def test_large_arguments_that_have_no_values_are_not_mutated(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fx2onnx.strategies.auto, "MAX_FLOPS", 0)
    monkeypatch.setattr(fx2onnx.trace.compute_budget, "CHEAP", 0)
    monkeypatch.setattr(fx2onnx.trace.compute_budget, "LARGE_INPUT", 1)
    model = ExpandedAboveOneRow()
    exported = _exported(model, (torch.randn(2, 7, 4),))
    assert all(_is_right(exported, model, (torch.randn(*sizes, 4),)) for sizes in SIZES)


def test_runs_without_values_that_differ_make_both_sides(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fx2onnx.strategies.auto, "MAX_FLOPS", 0)
    monkeypatch.setattr(fx2onnx.trace.compute_budget, "CHEAP", 0)
    model = nn.Sequential(ExpandedAboveOneRow(), _OneRowHalved())
    exported = _exported(model, (torch.randn(2, 7, 4),))
    assert _has_if(exported)
    assert all(_is_right(exported, model, (torch.randn(*sizes, 4),)) for sizes in SIZES)


class _OneRowHalved(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x if x.shape[0] > 1 else x / 2
