"""Models that multiply much are run without values: the same program, or a refusal that leads to runs with them."""

from __future__ import annotations

from collections.abc import Callable
from math import prod
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.nn import functional as F

from exportlab.cases import registered
from fx2onnx import to_onnx
from fx2onnx.paths.explore import capture_by_running
from fx2onnx.trace import compute_budget
from fx2onnx.trace.compute_budget import CHEAP, MAX_FLOPS, ComputeBudget, runs_of
from fx2onnx.trace.refusal import NeedsRealValues

ROWS = ({0: "rows"},)
SAME = (
    "mlp",
    "pooled_convnet",
    "encoder_layer",
    "lstm_bidirectional",
    "bert_encoder",
    "llama_with_cache",
    "whisper",
    "transposed_convolutions",
)


class Heavy(nn.Module):
    """A layer that multiplies more than the runs of a capture are to, and something behind it."""

    def __init__(self, then: Callable[[Tensor], Tensor]) -> None:
        super().__init__()
        self.layer, self.then = nn.Linear(2048, 2048, bias=False), then

    def forward(self, x: Tensor) -> Tensor:
        return self.then(self.layer(x.repeat(40, 1)))


def is_tested(y: Tensor) -> Tensor:
    return y.sin() if y.sum() > 0 else y.cos()


def reads(y: Tensor) -> Tensor:
    return y * 2 if y[0, 0].item() > 0 else y


def writes(y: Tensor) -> Tensor:
    sums = torch.zeros(y.shape[0])
    sums += y.sum(1)
    return sums


def writes_what_was_read(y: Tensor) -> Tensor:
    sums = torch.ones(y.shape[1])
    z = y + sums
    sums.mul_(2)
    return z * sums


def exported(then: Callable[[Tensor], Tensor], capture: str = "auto") -> Any:
    model = Heavy(then).eval()
    program = to_onnx(model, (torch.rand(4, 2048),), dynamic_shapes=ROWS, capture=capture)
    for rows in (1, 7):
        x = torch.rand(rows, 2048)
        torch.testing.assert_close(program(x)[0], model(x), rtol=1e-4, atol=1e-4)
    return program.report


def test_a_model_that_multiplies_much_is_run() -> None:
    report = exported(torch.cos)
    assert (report.capture, report.trace_failure) == ("run", "")


def test_runs_that_multiply_more_than_they_may_end() -> None:
    with runs_of(MAX_FLOPS), pytest.raises(NeedsRealValues, match="the runs need more than"):
        capture_by_running(Heavy(torch.cos).eval(), (torch.rand(4, 2048),), {}, ROWS)


def test_calls_that_cost_less_than_those_without_values_are_not_counted() -> None:
    work = ComputeBudget(1)
    for _ in range(1000):
        work.done(CHEAP)
    with pytest.raises(NeedsRealValues, match="the runs need more than"):
        work.done(CHEAP + 2)


def turns(y: Tensor) -> Tensor:
    return y.cos() if y.shape[0] > 100 else y.sin()


def test_work_that_is_counted_behind_a_test_of_sizes_is_no_refusal() -> None:
    assert exported(turns, "run").capture == "run"


@pytest.mark.parametrize("capture", ["run", "auto"])
def test_a_value_that_is_tested_behind_much_work_is_told_by_runs_with_values(capture: str) -> None:
    assert exported(is_tested, capture).capture == "run"


@pytest.mark.parametrize(
    ("then", "why"),
    [(reads, "no value can be read"), (writes, "into a tensor with values"), (writes_what_was_read, "into a copied tensor")],
)
def test_what_needs_values_is_left_to_torch_export_or_to_runs_that_have_them(then: Callable[[Tensor], Tensor], why: str) -> None:
    with runs_of(None), pytest.raises(NeedsRealValues, match=why):
        capture_by_running(Heavy(then).eval(), (torch.rand(4, 2048),), {}, ROWS)
    report = exported(then)
    assert why in report.trace_failure or report.capture == "run"


def told(name: str) -> list[tuple[str, str]]:
    case = registered()[name].build()
    sample = case.samples[0]
    program = capture_by_running(case.module, sample.args, dict(sample.kwargs), case.dynamic_shapes).program
    return [(str(node.format_node()), str(getattr(node.meta.get("val"), "sizes", ""))) for node in program.graph.nodes]


@pytest.mark.parametrize("name", SAME)
def test_runs_without_values_show_the_same_program(name: str) -> None:
    with_values = told(name)
    with runs_of(None):
        assert told(name) == with_values


@pytest.mark.parametrize("name", SAME)
def test_large_arguments_without_values_show_the_same_program(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with_values = told(name)
    monkeypatch.setattr(compute_budget, "LARGE_INPUT", 0)
    with runs_of(None):
        assert told(name) == with_values


class Stack(nn.Module):
    """Two equal blocks of large layers, whose results are written."""

    def __init__(self) -> None:
        super().__init__()
        self.blocks = nn.ModuleList(nn.Sequential(nn.Linear(2048, 2048), nn.Linear(2048, 2048)) for _ in range(2))

    def forward(self, x: Tensor) -> Tensor:
        for block in self.blocks:
            x = block(x)
            x += 1
        return x


def needs_a_gradient(y: Tensor) -> Tensor:
    return y * 2 if y.requires_grad else y


def descends(y: Tensor) -> Tensor:
    with torch.enable_grad():
        y = y.detach().requires_grad_()
        (slope,) = torch.autograd.grad((F.linear(y, torch.eye(2048)) ** 2).sum(), y)
    return y - slope


@pytest.mark.parametrize("has_gradients", [True, False])
@pytest.mark.parametrize("model", [Stack(), Heavy(needs_a_gradient), Heavy(descends)], ids=["written", "tested", "computed"])
def test_results_without_values_require_gradients_as_those_with_values(model: nn.Module, has_gradients: bool) -> None:
    x = torch.rand(64, 2048)
    with torch.set_grad_enabled(has_gradients):
        program = to_onnx(model.eval(), (x,), dynamic_shapes=ROWS)
        torch.testing.assert_close(program(x[:3])[0], model(x[:3]), rtol=1e-4, atol=1e-3)
    assert program.report.capture == "run"


class Remembers(nn.Module):
    """What it is given, after a memory that no run has to copy."""

    def forward(self, x: Tensor, memory: Tensor) -> tuple[Tensor, Tensor]:
        return torch.cat([memory, x], 1).transpose(1, 2).softmax(-1), memory[:, ::2] * 2


def test_large_arguments_are_copied_by_no_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compute_budget, "LARGE", 10_000)
    monkeypatch.setattr(compute_budget, "LARGE_INPUT", 1_000)
    made: list[int] = []
    monkeypatch.setattr(
        ComputeBudget, "empty", lambda self, like, shape, empty=ComputeBudget.empty: made.append(prod(shape)) or empty(self, like, shape)
    )
    model, shapes = Remembers(), ({0: "batch"}, {0: "batch", 1: "past"})
    with runs_of(MAX_FLOPS), pytest.raises(NeedsRealValues, match="the arguments of a run have more than 10,000 elements"):
        capture_by_running(model, (torch.randn(2, 1, 64), torch.randn(2, 90, 64)), {}, shapes)
    assert not made
    program = to_onnx(model, (torch.randn(2, 1, 64), torch.randn(2, 90, 64)), dynamic_shapes=shapes)
    assert made
    for batch, past in ((1, 3), (5, 101)):
        given = torch.randn(batch, 1, 64), torch.randn(batch, past, 64)
        for own, eager in zip(program(*given), model(*given), strict=True):
            torch.testing.assert_close(own, eager)


class Nearest(nn.Module):
    """How near the nearest other number is, of many by a table of all pairs."""

    def forward(self, x: Tensor) -> Tensor:
        if x.shape[0] <= 128:
            return x.abs()
        return (x[:, None] - x[None]).abs().masked_fill(torch.eye(x.shape[0], dtype=torch.bool), torch.inf).amin(1)


def test_a_large_table_is_made_by_no_run(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compute_budget, "LARGE", 10_000)
    x = torch.randn(6)
    with runs_of(MAX_FLOPS), pytest.raises(NeedsRealValues, match="a run creates a tensor of more than 10,000 elements"):
        capture_by_running(Nearest(), (torch.randn(200),), {}, ({0: "n"},))
    program = to_onnx(Nearest(), (x,), dynamic_shapes=({0: "n"},))
    for many in (6, 129, 300):
        x = torch.randn(many)
        assert torch.equal(program(x)[0], Nearest()(x))


class Scaled(nn.Module):
    """A linear layer whose large weight is computed from two."""

    def __init__(self) -> None:
        super().__init__()
        self.weight, self.scale = nn.Parameter(torch.randn(17_000, 1000)), nn.Parameter(torch.ones(17_000, 1))

    def forward(self, x: Tensor) -> Tensor:
        return nn.functional.linear(x, self.weight * self.scale)


def test_a_large_weight_that_is_computed_is_right() -> None:
    model = Scaled()
    program = to_onnx(model, (torch.randn(2, 1000),), dynamic_shapes=({0: "rows"},))
    x = torch.randn(3, 1000)
    assert torch.allclose(program(x)[0], model(x), atol=1e-3)
