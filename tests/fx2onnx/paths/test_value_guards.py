"""A test of a number or a size that values decide has both sides in the file, right on either at sizes never seen; or it is refused."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import onnxruntime
import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F
from torch.utils import _pytree as pytree

from content import zoo
from exportlab import verify
from exportlab.outcomes import Outcome
from fx2onnx import to_onnx
from fx2onnx.errors import CaptureError
from fx2onnx.validate.numbered import specialise_program


class Of(nn.Module):
    """A function of rows and a number."""

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__()
        self.function = function
        self.layer = nn.Linear(3, 3)
        self.register_buffer("seen", torch.zeros(3))

    def forward(self, x: Tensor, number: Tensor) -> Any:
        return self.function(self, x, number)


def exported(function: Callable[..., Any], moves: bool = True, **options: Any) -> Any:
    """Export the function at four rows and the number 3."""
    return to_onnx(model(function), (torch.randn(4, 3), torch.tensor(3)), dynamic_shapes=({0: "rows"}, None) if moves else None, **options)


def model(function: Callable[..., Any]) -> Of:
    """The module, each time with the same weights."""
    torch.manual_seed(0)
    return Of(function).eval()


def called(program: Any, x: Tensor, number: int) -> list[Tensor]:
    """Call the file."""
    session = onnxruntime.InferenceSession(program.model_proto.SerializeToString())
    feed = {"x": x.numpy(), "number": torch.tensor(number).numpy()}
    return [torch.as_tensor(part) for part in session.run(None, {held.name: feed[held.name] for held in session.get_inputs()})]


def inputs(moves: bool = True) -> Iterator[tuple[Tensor, int]]:
    """Rows that were never seen, of values on both sides, and numbers."""
    torch.manual_seed(0)
    for rows in (4, 7, 1, 2, 9) if moves else (4, 4, 4):
        for number in range(7):
            yield torch.randn(rows, 3) - 0.2 * (number % 3), number


def padded(m: Any, x: Tensor, number: Tensor) -> Tensor:
    n = number.item()
    return F.pad(x, (0, n), value=2.0) if n > 1 else x - 1


def equal_to_two(m: Any, x: Tensor, number: Tensor) -> Tensor:
    n = number.item()
    return m.layer(x) if n == 2 else F.pad(x, (0, n))


def even(m: Any, x: Tensor, number: Tensor) -> Tensor:
    n = number.item()
    return F.pad(x, (0, n)) if n % 2 == 0 else x - 1


def within(m: Any, x: Tensor, number: Tensor) -> Tensor:
    n = number.item()
    return F.pad(x, (0, n)) if n > 1 and n < 4 else x - 1


def up_to_all(m: Any, x: Tensor, number: Tensor) -> Tensor:
    n = number.item()
    return x[:n] if 0 <= n < x.shape[0] else x * 2


def picked(m: Any, x: Tensor, number: Tensor) -> Tensor:
    y = x[x[:, 0] > 0]
    return m.layer(y).sum(0) if y.shape[0] > 1 else x.sum(0)


def longer_of_two(m: Any, x: Tensor, number: Tensor) -> Tensor:
    a, b = (x[:, 0] > 0).nonzero().squeeze(1), (x[:, 1] > 0).nonzero().squeeze(1)
    return x[a] if a.shape[0] > b.shape[0] else x[b] * 2


def only_counted(m: Any, x: Tensor, number: Tensor) -> Tensor:
    return x * 2 if (x[:, 0] > 0).nonzero().shape[0] > 1 else x * 3


def summed(m: Any, x: Tensor, number: Tensor) -> Tensor:
    n = (x[:, 0] > 0).sum().item()
    return x[:n] * 2 if n >= 2 else x[:1] - 1


def float_and_rows(m: Any, x: Tensor, number: Tensor) -> Tensor:
    largest, y = x.max().item(), x[x[:, 0] > 0]
    return y * largest if largest > 1.0 else y - largest


def truth_and_number(m: Any, x: Tensor, number: Tensor) -> Tensor:
    n = number.item()
    if x.sum() > 0:
        x = m.layer(x)
    return F.pad(x, (0, n)) if n > 3 else x + 1


def written(m: Any, x: Tensor, number: Tensor) -> Tensor:
    out, rows = torch.zeros_like(x), (x[:, 0] > 0).nonzero().squeeze(1)
    if rows.shape[0] > 0:
        out.index_add_(0, rows, m.layer(x[rows]))
    return out


def in_a_try(m: Any, x: Tensor, number: Tensor) -> Tensor:
    n = number.item()
    try:
        if n > 1:
            x = F.pad(x, (0, n))
    except RuntimeError:
        x = x * 5
    return x


TAKEN = (
    *(padded, equal_to_two, even, within, up_to_all, picked, longer_of_two, only_counted, summed, float_and_rows, truth_and_number),
    *(written, in_a_try),
)


def check(function: Callable[..., Any], moves: bool) -> None:
    """Export it by running, and hold the file against the model at other sizes and values."""
    program = exported(function, moves)
    assert program.report.capture == "run"
    assert all("test_value_guards.py" in line for line in program.report.branches)
    for x, number in inputs(moves):
        wanted = pytree.tree_leaves(model(function)(x, torch.tensor(number)))
        for found, want in zip(called(program, x, number), wanted, strict=True):
            torch.testing.assert_close(found, want.detach(), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("moves", [True, False])
@pytest.mark.parametrize("function", TAKEN)
def test_both_sides_are_right(function: Callable[..., Any], moves: bool) -> None:
    check(function, moves)


@pytest.mark.parametrize("moves", [True, False])
@pytest.mark.parametrize("name", ["padded_if_needed"])
def test_a_case_of_the_zoo_is_right(name: str, moves: bool) -> None:
    case = zoo.get(name).build()
    first = case.samples[0]
    program = to_onnx(case.module, first.args, kwargs=first.kwargs, dynamic_shapes=case.dynamic_shapes if moves else None)
    assert verify(program, case.module, case.samples if moves else [first]).outcome is Outcome.OK


def raises(m: Any, x: Tensor, number: Tensor) -> Tensor:
    n = number.item()
    if n > 4:
        raise ValueError("too many")
    return F.pad(x, (0, n)) if n > 1 else x


def test_a_side_that_raises_is_a_limit_and_what_follows_from_a_test_is_none() -> None:
    (limit,) = exported(raises).report.limits
    assert "test_value_guards.py" in limit
    assert limit.endswith("in raises: u0 > 4: ValueError: too many")


def test_a_size_of_two_sides_has_a_name_that_nothing_else_has() -> None:
    program = exported(padded)
    (output,) = program.model.graph.outputs
    assert [str(size) for size in output.shape] == ["rows", "u1"]  # u0 is the number, and inside of it `u0 + 3` is a size


def counted_down(m: Any, x: Tensor, number: Tensor) -> Tensor:
    n = number.item()
    while n > 0:
        x, n = x * 2, n - 1
    return F.pad(x, (0, number.item()))


def counted_down_in_a_try(m: Any, x: Tensor, number: Tensor) -> Tensor:
    try:
        return counted_down(m, x, number)
    except Exception:  # noqa: BLE001 - that is the point
        return x


def kept(m: Any, x: Tensor, number: Tensor) -> Tensor:
    n = number.item()
    if n > 1:
        m.seen.add_(1)
    return F.pad(x + m.seen, (0, n))


def changed(m: Any, x: Tensor, number: Tensor) -> Tensor:
    n = number.item()
    if n > 1:
        x.add_(1)
    return F.pad(x, (0, n))


def other_numbers(m: Any, x: Tensor, number: Tensor) -> tuple[Tensor, int]:
    n = number.item()
    return (F.pad(x, (0, n)), 1) if n > 1 else (x * 1, 2)


@pytest.mark.parametrize(
    ("function", "said"),
    [
        (counted_down, "more than 16 ranges"),
        (counted_down_in_a_try, "more than 16 ranges"),
        (kept, "the model writes into seen"),
        (changed, "the model writes into inputs (x), and branches on values"),
        (other_numbers, "return results that cannot be one output: 1, but 2"),
    ],
)
def test_what_no_file_can_be_is_refused_with_the_reason(function: Callable[..., Any], said: str) -> None:
    with pytest.raises(CaptureError) as caught:
        exported(function)
    assert said in " ".join(caught.value.__notes__)


def by_rows(m: Any, x: Tensor, number: Tensor) -> Tensor:
    n = number.item()
    if x.shape[0] > 3:
        return F.pad(x, (0, n)) if n > 1 else x
    return x * 2


@pytest.mark.parametrize("function", [by_rows])
def test_a_test_of_a_size_beside_it_is_right(function: Callable[..., Any]) -> None:
    check(function, moves=True)


def test_torch_export_alone_refuses_as_before() -> None:
    with pytest.raises(CaptureError, match="data-dependent"):
        exported(padded, capture="torch.export")


def test_its_program_is_not_called_node_by_node() -> None:
    program = exported(padded)
    with pytest.raises(ValueError, match="u0, which depends on values"):
        specialise_program(program.exported_program, [torch.randn(5, 3), torch.tensor(2)])
