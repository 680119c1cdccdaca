"""What the capture by torch.export resolves, and what it refuses."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from modules import Op
from torch import Tensor, nn

from exportlab import to_onnx, verify
from fx2onnx.errors import CaptureError

X = torch.randn(4, 3)


class Rows(nn.Module):
    """A function of one row, over all of them."""

    def forward(self, x: Tensor) -> Tensor:
        return torch.vmap(lambda row: row.softmax(0) * row.shape[0])(x)


@pytest.mark.parametrize("functions", [(), (Rows,)])
def test_vmap_is_resolved(functions: tuple[type, ...]) -> None:
    module = nn.Sequential(Rows(), Rows())
    program = to_onnx(module, (X,), dynamic_shapes=({0: "batch"},), functions=functions)
    verify(program, module, [(X,), (torch.randn(7, 3),), (X[:1],)]).check()
    assert len(program.model.functions) == bool(functions)


def test_vmap_in_a_program_that_was_captured_before_is_resolved() -> None:
    verify(to_onnx(torch.export.export(Rows(), (X,))), Rows(), [(X,)]).check()


def test_what_torch_export_refuses_is_said_with_its_reason() -> None:
    with pytest.raises(CaptureError, match=r"torch\.export refuses the model: .*data-dependent"):
        to_onnx(Op(lambda x: x + 1 if x.sum() > 0 else x), (X,))


def test_a_backend_of_torch_compile_may_export() -> None:
    module, exported = nn.Sequential(nn.Linear(3, 4), nn.ReLU()).eval(), []

    def backend(graph: torch.fx.GraphModule, inputs: list[torch.Tensor]) -> Any:
        exported.append(to_onnx(graph.eval(), tuple(inputs)))
        return graph.forward

    with torch.no_grad():
        torch.compile(module, backend=backend, dynamic=False)(X)
    assert [node.op_type for node in exported[0].model.graph] == ["Gemm", "Relu"]
