"""What the capture by torch.export resolves, and what it refuses."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor, wait
from typing import Any

import onnx_ir as ir
import pytest
import torch
from modules import Op
from torch import Tensor, nn
from torch.nn.utils.stateless import _reparametrize_module

from exportlab import to_onnx, verify
from fx2onnx.errors import CaptureError, UnsupportedArgument
from fx2onnx.locking import CAPTURE_LOCK

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
    with pytest.raises(CaptureError, match=r"torch\.export cannot capture the model: .*data-dependent"):
        to_onnx(Op(lambda x: x + 1 if x.sum() > 0 else x), (X,), capture="torch.export")


def test_a_backend_of_torch_compile_may_export() -> None:
    module, exported = nn.Sequential(nn.Linear(3, 4), nn.ReLU()).eval(), []

    def backend(graph: torch.fx.GraphModule, inputs: list[torch.Tensor]) -> Any:
        exported.append(to_onnx(graph.eval(), tuple(inputs)))
        return graph.forward

    with torch.no_grad():
        torch.compile(module, backend=backend, dynamic=False)(X)
    assert [node.op_type for node in exported[0].model.graph] == ["Gemm", "Relu"]


class Narrow(nn.Module):
    """Two layers in half precision, by what is said in `forward`."""

    def __init__(self) -> None:
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(3, 8), nn.ReLU(), nn.Linear(8, 2))

    def forward(self, x: Tensor) -> Tensor:
        with torch.autocast("cpu", dtype=torch.bfloat16):
            return self.layers(x)


def test_autocast_in_forward_is_the_casts_that_it_makes() -> None:
    module = Narrow()
    verify(to_onnx(module, (X,), dynamic_shapes=({0: "batch"},)), module, [(X,), (torch.randn(7, 3),), (X[:1],)]).check()


def test_autocast_around_the_call_is_refused() -> None:
    with torch.autocast("cpu"), pytest.raises(UnsupportedArgument, match="move the with-statement into forward"):
        to_onnx(nn.Linear(3, 2), (X,))


def test_four_threads_at_once_get_the_files_that_they_get_one_after_the_other() -> None:
    called, modules = nn.Module.__call__, [Rows(), nn.Linear(3, 2), Narrow(), nn.Softmax(1)]
    alone = [ir.to_proto(to_onnx(module, (X,)).model).SerializeToString() for module in modules]
    with ThreadPoolExecutor(4) as threads:
        at_once = list(threads.map(lambda module: ir.to_proto(to_onnx(module, (X,)).model).SerializeToString(), modules * 3))
    assert at_once == alone * 3
    assert nn.Module.__call__ is called


def test_weights_are_looked_at_while_no_other_thread_holds_fakes_in_their_place() -> None:
    module, without_values = nn.Linear(3, 2), {name: weight.to("meta") for name, weight in nn.Linear(3, 2).named_parameters()}
    with ThreadPoolExecutor(1) as threads:
        with CAPTURE_LOCK, _reparametrize_module(module, without_values):
            exported = threads.submit(to_onnx, module, (X,))
            wait([exported], timeout=0.5)
        verify(exported.result(), module, [(X,)]).check()
