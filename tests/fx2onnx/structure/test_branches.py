"""Both sides of a test of a value are in the file, right on either side and at sizes never run; or it is refused with the line."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import onnxruntime
import pytest
import torch
from torch import Tensor, nn
from torch.utils import _pytree as pytree

from fx2onnx import to_onnx
from fx2onnx.trace.path_decisions import is_deliberate
from fx2onnx.trace.refusal import TraceUnsupported

HERE = r"\S*test_branches\.py:\d+ in "
ROWS = ({0: "rows"},)


class Of(nn.Module):
    """A function of one input, with layers to call."""

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__()
        self.function = function
        self.layers = nn.ModuleList(nn.Linear(4, 4) for _ in range(3))
        self.register_buffer("switch", torch.tensor(True))

    def forward(self, x: Tensor) -> Any:
        return self.function(self, x)


def gate(m: Any, x: Tensor) -> Tensor:
    h = x * 2
    if h.sum() > 0:
        return torch.relu(m.layers[0](h))
    if h.abs().max() > 3 and bool((h[:, 0] < 0).all()):
        h = h / h.abs().max()
    return torch.tanh(m.layers[1](h)) - 1


def early(m: Any, x: Tensor) -> Tensor:
    for layer in m.layers:
        y = torch.tanh(layer(x))
        if (y - x).abs().mean() < 0.35:
            return y
        x = y
    return x + 1


def changed_between(m: Any, x: Tensor) -> Tensor:
    h = x + 0
    if h.sum() > 0:
        h -= 1
    if h.sum() > 0:
        h = h * 3
    return h


def changed_in_place_after(m: Any, x: Tensor) -> Tensor:
    positive = x.sum() > 0
    h = x * 2 if positive else x * 3
    positive.logical_not_()
    return h + 1 if positive else h - 1


def asked_twice(m: Any, x: Tensor) -> Tensor:
    positive = x.sum() > 0
    h = x * 2 if positive else x * 3
    return h + 1 if positive else h - 1


def read_before_a_change(m: Any, x: Tensor) -> Tensor:
    h = x.clone()
    first = h[0, 0]
    number = first.item()
    h.add_(100)
    return h * 2 if number > 0 else h


def own_temporaries(m: Any, x: Tensor) -> Tensor:
    h = x.clone()
    if h.mean() > 0:
        h[:, 0] = 5
        h[1:].mul_(2)
    else:
        other = torch.zeros_like(x)
        other[:, 1] = x[:, 1]
        h = other
    return h.add_(1)


def written_before(m: Any, x: Tensor) -> Tensor:
    h = x.clone()
    h[:, 0] = -h[:, 0]
    if h.sum() > 0:
        h.add_(1)
    return h * 2


def parts_read_on_one_side(m: Any, x: Tensor) -> Tensor:
    values, places = x.sort(dim=1)
    return values + places if x.sum() > 0 else values


def constants_of_sides(m: Any, x: Tensor) -> Tensor:
    base = x * torch.tensor([1.0, 2.0, 3.0, 4.0])
    if x.sum() > 0:
        return base + torch.tensor([1.0, 1.0, 1.0, 0.0])
    return base - torch.tensor([0.0, 0.0, 1.0, 5.0]) + torch.tensor([1.0, 1.0, 1.0, 0.0])


def loop_with_few_turns(m: Any, x: Tensor) -> Tensor:
    for _ in range(3):
        if x.abs().max() > 1:
            x = x / 2
    return x


def several_results(m: Any, x: Tensor) -> Any:
    total = x.sum(1)
    return {"a": x if total.max() > 1 else x * 2, "b": (total, None, 3), "c": x.shape[0]}


TAKEN: dict[str, Callable[[Any, Tensor], Any]] = {
    "gate": gate,
    "early return": early,
    "changed between two tests": changed_between,
    "changed in place after": changed_in_place_after,
    "asked twice": asked_twice,
    "own temporaries": own_temporaries,
    "written before": written_before,
    "parts read on one side": parts_read_on_one_side,
    "constants of sides": constants_of_sides,
    "a loop with few turns": loop_with_few_turns,
    "several results": several_results,
    "or": lambda m, x: x + 1 if x.sum() > 2 or x.max() < 0 else x,
    "not": lambda m, x: x + 1 if not x.sum() > 0 else x,
    "truth of a number": lambda m, x: x + 1 if x[0, 0].round() else x,
    "truth as a factor": lambda m, x: x * (2 + (x.sum() > 0).item()),
    "truth as an index": lambda m, x: m.layers[x.sum() > 0](x),
    "of a buffer": lambda m, x: x + 1 if m.switch else x - 1,
    "the input itself": lambda m, x: x if x.sum() > 0 else -x,
    "moving results": lambda m, x: x[1:] * 2 if x.sum() > 0 else x[1:],
    "in dropout": lambda m, x: nn.functional.dropout(x, training=False) if x.sum() > 0 else x * 0,
    "a number compared": lambda m, x: x + 1 if x.sum().item() > 0.5 else x,
    "a number compared with a size": lambda m, x: x + 1 if (x > 0).sum().item() >= x.shape[0] else x - 1,
    "two numbers compared": lambda m, x: x + 1 if x.min().item() > -x.shape[0] and x.max().item() > 0 else x,
    "a number compared and given on": lambda m, x: x.clamp(max=limit) * limit if (limit := x.mean().item()) != 0 else x,
    "a number read before a change": read_before_a_change,
    "a number that is a float": lambda m, x: x + 1 if isinstance(n := x.sum().item(), float) and n > 0 else x,
    "a whole number": lambda m, x: x + 1 if x.long().sum().item() == 0 else x,
    "truth of a number that is read": lambda m, x: x + 1 if x.long().sum().item() else x,
    "any of a list": lambda m, x: x * 2 if any(t > 0 for t in x[0].unbind()) else x,
}


def inputs() -> Iterator[Tensor]:
    """Values on both sides of each test, at sizes that were never run."""
    torch.manual_seed(1)
    for number in range(60):
        yield torch.randn(2 + number % 7, 4) * (0.2, 1, 4)[number % 3] + (-1, 0, 1)[number // 3 % 3]


def leaves(returned: Any) -> list[Tensor]:
    """What a call returns, as a file does, which leaves constants out."""
    return [torch.as_tensor(leaf) for leaf in pytree.tree_leaves(returned) if isinstance(leaf, Tensor)]


@pytest.mark.parametrize("name", TAKEN)
@pytest.mark.parametrize("shapes", [None, ROWS], ids=["static", "moving"])
def test_both_sides_are_right(name: str, shapes: Any) -> None:
    torch.manual_seed(0)
    model = Of(TAKEN[name]).eval()
    program = to_onnx(model, (torch.randn(3, 4),), dynamic_shapes=shapes, capture="run")
    assert program.report.branches
    assert not program.report.limits
    model.function = TAKEN[name]
    seen = set()
    for x in inputs():
        x = x if shapes else x[:1].expand(3, 4).contiguous()
        with torch.no_grad():
            wanted = leaves(model(x.clone()))
        for found, own in zip(program(x), wanted, strict=False):
            torch.testing.assert_close(found, own, rtol=1e-4, atol=1e-4)
        seen.add(float(wanted[0].sum()))
    assert len(seen) > 1


def test_a_switch_in_a_buffer_is_a_weight_like_any_other() -> None:
    program = to_onnx(Of(TAKEN["of a buffer"]).eval(), (torch.ones(3, 4),), capture="run")
    program.apply_weights({"switch": torch.tensor(False)})
    assert torch.equal(program(torch.ones(3, 4))[0], torch.zeros(3, 4))


def checked(m: Any, x: Tensor) -> Tensor:
    if not (x > -50).all():
        raise AssertionError("too small")  # an `assert`, which pytest would write anew
    h = x * 2
    if h.isnan().any():
        raise ValueError("not a number")
    return h + 1 if h.sum() > 0 else h


def test_a_side_that_raises_is_a_limit_and_no_branch() -> None:
    program = to_onnx(Of(checked).eval(), (torch.ones(3, 4),), dynamic_shapes=ROWS, capture="run")
    assert len(program.report.branches) == 1
    small, nan = program.report.limits
    assert "AssertionError: too small" in small
    assert "test_branches.py" in small
    assert "ValueError: not a number" in nan
    session = onnxruntime.InferenceSession(program.model_proto.SerializeToString())
    assert "too small" in session.get_modelmeta().custom_metadata_map["fx2onnx.limits"]
    for x in (torch.ones(5, 4), -torch.ones(1, 4)):
        torch.testing.assert_close(program(x)[0], checked(None, x))


def looped(m: Any, x: Tensor) -> Tensor:
    while x.sum() < 100 and x.max() < 1000:
        x = x * 2 + 1
    return x


def fits_on_one_side(m: Any, x: Tensor) -> Tensor:
    table, place = torch.arange(4.0), x.long().abs().sum()
    return x + table.index_select(0, place[None]) if place < 4 else x


def fits_and_is_caught(m: Any, x: Tensor) -> Tensor:
    try:
        return fits_on_one_side(m, x)
    except IndexError:
        return x * 7


def view_of_what_is_written(m: Any, x: Tensor) -> Tensor:
    h = x * 2
    first = h[0]
    if x.sum() > 0:
        h.add_(1)
    return first + h


def raises_of_an_error(m: Any, x: Tensor) -> Tensor:
    try:
        return fits_on_one_side(m, x)
    except IndexError as error:
        raise ValueError("no such place") from error


def counted_in_python(m: Any, x: Tensor) -> Tensor:
    return x * sum(3**i for i in range(5) if x[:, i % 4].sum() > i)


def raises_at_small_sizes(m: Any, x: Tensor) -> Tensor:
    if x.sum() > 0 and x.shape[0] < 100:
        raise ValueError("too short")
    return x


REFUSED: dict[str, tuple[Callable[[Any, Tensor], Any], str]] = {
    "a loop over values": (looped, r"more than 16 paths.*test_branches.py:\d+ in looped \(\d+ times\).*torch.while_loop"),
    "more than sixteen paths": (counted_in_python, "more than 16 paths.*test_branches.py"),
    "other shapes": (
        lambda m, x: x if x.sum() > 0 else x[:, :1] * 2,
        rf"the condition at {HERE}.*\(rows, 4\) of torch.float32, but \(rows, 1\).* at {HERE}",
    ),
    "other moving sizes": (lambda m, x: x * 2 if x.sum() > 0 else x[1:], rf"{HERE}.*\(rows, 4\).* at {HERE}.*but \(rows - 1, 4\)"),
    "other types": (lambda m, x: x.long() if x.sum() > 0 else x * 2, rf"{HERE}.*int64 at {HERE}.*, but .*float32 at {HERE}"),
    "another structure": (lambda m, x: (x, x) if x.sum() > 0 else (x * 2,), f"different structures.* after {HERE}.*but .* after {HERE}"),
    "nothing on one side": (lambda m, x: x if x.sum() > 0 else None, "None|different structures"),
    "another number": (lambda m, x: (x, 1) if x.sum() > 0 else (x * 2, 2), rf"the condition at {HERE}.*: 1, but 2"),
    "a value read on one side": (lambda m, x: x * int(x.max()) if x.sum() > 0 else x, f"a tensor value is read at {HERE}"),
    "a number computed with": (
        lambda m, x: x if x.sum().item() * 2 > 0 else -x,
        f"a number is read from a tensor and passed to __mul__ at {HERE}",
    ),
    "a number returned": (
        lambda m, x: (x, x.max().item()) if x.sum() > 0 else (x, 2.0),
        "a number is read from a tensor and passed to the caller",
    ),
    "a number given to Python": (lambda m, x: x * abs(x.sum().item()), f"a number is read from a tensor and passed to __abs__ at {HERE}"),
    "a number given to other types": (
        lambda m, x: x.long() * x.sum().item(),
        f"a number is read from a tensor and passed to mul at {HERE}",
    ),
    "a number made by float()": (lambda m, x: x if float(x.sum()) > 0 else -x, f"a tensor value is read at {HERE}"),
    "a number as text": (
        lambda m, x: x if f"{x.sum().item()}" > "0" else -x,
        f"a number is read from a tensor and passed to __format__ at {HERE}",
    ),
    "an input written on one side": (
        lambda m, x: x.add_(1) if x.sum() > 0 else x,
        "the model writes into inputs .x., and branches on values",
    ),
    "values that do not fit": (fits_on_one_side, f"a branch that (these|the) values do not take, after .*{HERE}.* at {HERE}"),
    "values that do not fit, caught": (fits_and_is_caught, f"a branch that (these|the) values do not take, after .*{HERE}"),
    "an error made of another": (raises_of_an_error, f"a branch that (these|the) values do not take, after .*{HERE}"),
    "a view of what is written": (view_of_what_is_written, f"writes at {HERE}.* reads a view"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_refused_says_the_line(name: str) -> None:
    function, why = REFUSED[name]
    for example in (torch.ones(3, 4), -torch.ones(3, 4)):
        with pytest.raises(TraceUnsupported, match=why):
            to_onnx(Of(function).eval(), (example,), dynamic_shapes=ROWS, capture="run")


def test_a_size_tested_on_the_way_to_a_limit_counts() -> None:
    program = to_onnx(Of(raises_at_small_sizes).eval(), (torch.ones(3, 4),), dynamic_shapes=ROWS, capture="run")
    assert ["ValueError: too short" in limit for limit in program.report.limits] == [True]
    for x in (torch.ones(150, 4), -torch.ones(150, 4), -torch.ones(5, 4)):
        assert torch.equal(program(x)[0], x)


def test_only_what_is_raised_by_a_statement_is_deliberate() -> None:
    def caught(function: Callable[[], Any]) -> Exception:
        try:
            function()
        except Exception as error:  # noqa: BLE001 - each kind is asked about
            return error
        raise AssertionError

    def raises() -> None:
        raise ValueError

    def converts() -> None:
        try:
            [][1]
        except IndexError:
            raise ValueError  # noqa: B904 - what is asked about

    assert is_deliberate(caught(raises))
    assert not is_deliberate(caught(converts))
    assert not is_deliberate(caught(lambda: [][1]))
    assert not is_deliberate(caught(lambda: torch.ones(2)[5]))
