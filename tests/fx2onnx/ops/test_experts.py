"""Rows times the matrix of their group, as mixtures of experts do: right for groups and rows of any number."""

from __future__ import annotations

import pytest
import torch
from torch import nn
from torch.export import Dim
from translated import dispatch

from exportlab.cases import Sample
from exportlab.verification.verify import verify
from fx2onnx.lower.conversion import Conversion, ConversionOptions
from fx2onnx.ops import own_translations

aten = torch.ops.aten


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
