"""Functions that operators take are captured by running as graphs of their own, right on both sides and for any number of turns."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch._higher_order_ops.associative_scan import associative_scan
from torch._higher_order_ops.map import map as map_rows
from torch._higher_order_ops.scan import scan
from torch._higher_order_ops.while_loop import while_loop

from exportlab import to_onnx
from fx2onnx.paths.higher_order_ops import SubgraphTracer
from fx2onnx.trace.refusal import TraceUnsupported
from fx2onnx.trace.run import Tracer

ROWS = ({0: "rows"},)


class Of(nn.Module):
    """A function of one input and a layer."""

    def __init__(self, function: Callable[[nn.Module, Tensor], Any]) -> None:
        super().__init__()
        self.layer, self.function = nn.Linear(4, 4), function

    def forward(self, x: Tensor) -> Any:
        return self.function(self.layer, x)


def closing_over_a_size(layer: nn.Module, x: Tensor) -> Tensor:
    """What a branch reads of the outside: a layer, a tensor, a size, a constant."""
    rows, outside = x.shape[0], x * 2
    return torch.cond(x.sum() > 0, lambda y: layer(y) / rows + outside, lambda y: y - torch.tensor(3.0), (x,))


def doubled_until_large(layer: nn.Module, x: Tensor) -> Tensor:
    """As many turns as the values say."""
    return while_loop(lambda turn, y: y.abs().sum() + turn < 100, lambda turn, y: (turn + 1, y * 2 + layer.bias), (torch.tensor(0), x))[1]


def mapped(layer: nn.Module, x: Tensor, other: Tensor) -> Tensor:
    """A size of a tensor of the outside, inside."""
    return map_rows(lambda row: layer(row).sum() * other.shape[0], x)


TAKEN: dict[str, Callable[[nn.Module, Tensor], Any]] = {
    "what a branch reads of the outside": closing_over_a_size,
    "a branch that returns its operand": lambda layer, x: torch.cond(x.sum() > 0, lambda y: y, layer, (x,)) + 1,
    "a cond in a cond": lambda layer, x: torch.cond(
        x.sum() > 0, lambda y: torch.cond(y.sum() > 5, layer, torch.neg, (y,)), lambda y: y * x.shape[0], (x,)
    ),
    "operands in a dict": lambda layer, x: torch.cond(x.sum() > 0, lambda d: {"a": layer(d["b"])}, lambda d: {"a": -d["b"]}, ({"b": x},))[
        "a"
    ],
    "turns by value": doubled_until_large,
    "a sum over rows": lambda layer, x: scan(lambda c, row: (c + layer(row), c * 2), torch.zeros(4), x)[1],
    "the start read twice": lambda layer, x: scan(lambda c, row: ((c[0] + row, c[1] - row), c[0] * 1), (x[0], x[0]), x)[0][1],
    "a function of each row": lambda layer, x: mapped(layer, x, x * 2),
}
REFUSED: dict[str, tuple[Callable[[nn.Module, Tensor], Any], str]] = {
    "an operand is written": (
        lambda layer, x: torch.cond(x.sum() > 0, lambda y: y.add_(1), torch.neg, (x * 1,)),
        "the model writes into an operand",
    ),
    "the outside is written": (
        lambda layer, x: (z := x * 1, torch.cond(x.sum() > 0, lambda y: z.add_(y), torch.neg, (x,)))[1],
        "the model writes into a tensor from outside",
    ),
    "what may be an operand is written": (
        lambda layer, x: torch.cond(x.sum() > 0, lambda y: y, torch.neg, (x * 1,)).add_(1),
        "the model writes into a tensor that cond may return",
    ),
    "sides of other sizes": (lambda layer, x: torch.cond(x.sum() > 0, lambda y: y[:1], torch.neg, (x,)), "cond needs tensors of"),
    "sides of other types": (lambda layer, x: torch.cond(x.sum() > 0, lambda y: y.long(), torch.neg, (x,)), "cond needs tensors of"),
    "sides of other structures": (
        lambda layer, x: torch.cond(x.sum() > 0, lambda y: (y, y), lambda y: [y, y], (x,))[0],
        "different structures",
    ),
    "a value is read inside": (
        lambda layer, x: torch.cond(x.sum() > 0, lambda y: y * y.sum().item(), torch.neg, (x,)),
        "a tensor value is read",
    ),
}


def lengths_on_one_side(x: Tensor) -> Tensor:
    """A test of a size inside a branch."""
    return x * 2 if x.shape[0] > 100 else x * 3


@pytest.mark.parametrize("name", TAKEN)
def test_functions_are_right_at_values_and_sizes_never_run(name: str) -> None:
    torch.manual_seed(0)
    model = Of(TAKEN[name]).eval()
    program = to_onnx(model, (torch.rand(2, 4) - 0.4,), dynamic_shapes=ROWS, capture="run")
    for rows in (1, 3, 8):
        for shift in (0.0, -1.0, 4.0):
            given = torch.rand(rows, 4) + shift
            with torch.no_grad():
                torch.testing.assert_close(program(given)[0], model(given), rtol=1e-4, atol=1e-4)


@pytest.mark.parametrize("name", REFUSED)
def test_what_a_function_may_not_do_is_refused(name: str) -> None:
    function, why = REFUSED[name]
    with pytest.raises(TraceUnsupported, match=why):
        to_onnx(Of(function).eval(), (torch.rand(2, 4),), dynamic_shapes=ROWS, capture="run")


def test_a_test_of_a_size_inside_has_both_sides() -> None:
    model = Of(lambda layer, x: torch.cond(x.sum() > 0, lengths_on_one_side, torch.neg, (x,))).eval()
    program = to_onnx(model, (torch.rand(2, 4),), dynamic_shapes=ROWS, capture="run")
    for rows in (1, 100, 101):
        for given in (torch.rand(rows, 4), -torch.rand(rows, 4)):
            torch.testing.assert_close(program(given)[0], model(given))


def test_torch_does_not_know_the_recorders_outside_of_a_capture() -> None:
    assert {SubgraphTracer, Tracer}.isdisjoint(torch.ops.higher_order.cond.python_key_table)


def recurrence(left: tuple[Tensor, Tensor], right: tuple[Tensor, Tensor]) -> tuple[Tensor, Tensor]:
    """Two steps of a linear recurrence as one."""
    return left[0] * right[0], left[1] * right[0] + right[1]


ASSOCIATIVE: dict[str, Callable[[nn.Module, Tensor], Tensor]] = {
    "pairs": lambda layer, x: associative_scan(recurrence, (x.sigmoid(), layer(x)), dim=0, combine_mode="generic")[1],
    "backwards": lambda layer, x: associative_scan(torch.maximum, x, dim=0, reverse=True, combine_mode="generic"),
    "another axis": lambda layer, x: associative_scan(torch.add, x.T.exp(), dim=1, combine_mode="generic"),
    "twice": lambda layer, x: associative_scan(
        torch.mul, associative_scan(torch.minimum, x, dim=0, combine_mode="generic"), dim=1, combine_mode="generic"
    ),
    "matrices": lambda layer, x: associative_scan(lambda a, b: a @ b, x[:, :, None] * layer.weight / 4, dim=0, combine_mode="generic"),
}


@pytest.mark.parametrize("name", ASSOCIATIVE)
def test_an_associative_scan_is_right_at_any_length(name: str) -> None:
    model = Of(ASSOCIATIVE[name]).eval()
    program = to_onnx(model, (torch.rand(5, 4),), dynamic_shapes=ROWS, capture="run")
    assert "Scan" in {node.op_type for node in program.model.graph}
    for rows in (5, 8, 1, 2, 67):
        given = torch.rand(rows, 4) - 0.4
        with torch.no_grad():
            torch.testing.assert_close(program(given)[0], model(given), rtol=1e-4, atol=1e-5)


def caught(layer: nn.Module, x: Tensor) -> Tensor:
    """A model that would go on without its scan."""
    try:
        return associative_scan(torch.sub, x, dim=0, combine_mode="generic")
    except Exception:  # noqa: BLE001 - as models do
        return x


@pytest.mark.parametrize("function", [caught, lambda layer, x: associative_scan(torch.sub, x, dim=0, combine_mode="generic")])
def test_a_function_that_is_not_associative_is_refused(function: Callable[[nn.Module, Tensor], Tensor]) -> None:
    model = Of(function).eval()
    with pytest.raises(TraceUnsupported, match=r"is not associative.* at \S*test_higher_order_ops.py"):
        to_onnx(model, (torch.rand(5, 4),), dynamic_shapes=ROWS, capture="run")
