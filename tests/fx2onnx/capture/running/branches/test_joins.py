"""Paths that part at a test join again behind it: a file is as long as the model, not as its paths."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import onnx
import pytest
import torch
from modules import Of
from torch import Tensor, nn

from exportlab import verify
from exportlab.outcomes import Outcome
from fx2onnx import to_onnx

ROWS = ({0: "rows"},)


def nodes_of(graph: onnx.GraphProto) -> int:
    """Count the nodes, those inside others among them."""
    inner = (part.g for node in graph.node for part in node.attribute if part.type == onnx.AttributeProto.GRAPH)
    return len(graph.node) + sum(map(nodes_of, inner))


class Sequential(nn.Module):
    """Tests values one after another, and then calls some layers."""

    def __init__(self, tests: int) -> None:
        super().__init__()
        self.tests = tests
        self.tail = nn.Sequential(*(nn.Sequential(nn.Linear(4, 4), nn.ReLU()) for _ in range(5)))

    def forward(self, x: Tensor) -> Tensor:
        for i in range(self.tests):
            x = x * 2 if x.sum() > i else x - 1
        return self.tail(x)


def exported(model: nn.Module, shapes: Any = ROWS) -> Any:
    return to_onnx(model.eval(), (torch.rand(3, 4),), dynamic_shapes=shapes, capture="run")


def test_each_test_adds_the_same_number_of_nodes() -> None:
    counts = [nodes_of(exported(Sequential(tests)).model_proto.graph) for tests in range(8)]
    assert {after - before for before, after in zip(counts, counts[1:], strict=False)} == {5}


def test_twelve_tests_in_a_row_are_right() -> None:
    model = Sequential(12)
    program = exported(model)
    samples = [(torch.randn(rows, 4) * spread + shift,) for rows in (1, 2, 5) for spread in (0.1, 1, 5) for shift in (-1.0, 0.0, 0.5, 2.0)]
    assert verify(program, model, samples).outcome is Outcome.OK
