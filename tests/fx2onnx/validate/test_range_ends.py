"""A model is run at the ends that `dynamic_shapes` gives: what it does not take there is refused, or accepted and said."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.export import Dim

from exportlab import to_onnx
from fx2onnx.errors import CaptureError
from fx2onnx.strategies import auto
from fx2onnx.trace.compute_budget import BUDGET
from fx2onnx.trace.size_domain import MAX_TRACED_SIZE_WITH_VALUES

X = torch.randn(2, 5, 4)


class Positions(nn.Module):
    """Adds the first rows of a table, of which there are 32."""

    def __init__(self) -> None:
        super().__init__()
        self.table = nn.Parameter(torch.randn(32, 4))

    def forward(self, x: Tensor) -> Tensor:
        return x + self.table[: x.shape[1]]


class Embedded(nn.Module):
    """Looks numbers of places up, of which 32 have a row: torch.export does not see that."""

    def __init__(self) -> None:
        super().__init__()
        self.table = nn.Embedding(32, 4)

    def forward(self, x: Tensor) -> Tensor:
        return x + self.table(torch.arange(x.shape[1]))


class Short(nn.Module):
    """Says itself what it takes."""

    def forward(self, x: Tensor) -> Tensor:
        if x.shape[1] > 40:
            raise ValueError("too long")
        return x * 2


class Windows(nn.Module):
    """Takes three places at a time."""

    def forward(self, x: Tensor) -> Tensor:
        return x.unfold(1, 3, 1)


def limits_of(model: nn.Module, dim: Any, accepted: tuple[str, ...] = (), x: Tensor = X) -> tuple[str, ...]:
    return to_onnx(model.eval(), (x,), dynamic_shapes=({1: dim},), accept_ranges=accepted).report.limits


@pytest.mark.parametrize("model", [Positions(), Embedded(), Short()], ids=["positions", "embedded", "raises"])
def test_an_end_at_which_the_model_raises_is_refused(model: nn.Module) -> None:
    with pytest.raises(CaptureError, match=r'"seq" is 2 to 64, but the model raises \w+ at 64: .*accept_ranges=\("seq",\)'):
        limits_of(model, Dim("seq", min=2, max=64))


def test_the_least_size_is_run_as_well() -> None:
    with pytest.raises(CaptureError, match="at least 2, but the model raises RuntimeError at 2"):
        limits_of(Windows(), Dim("seq", min=2))


def test_what_is_accepted_is_said() -> None:
    (found,) = limits_of(Embedded(), Dim("seq", min=2, max=64), ("seq",))
    assert found.startswith('dynamic_shapes declares that "seq" is 2 to 64, and the model raises IndexError at 64: index out of range')
    assert found.endswith("; the exported model does not check this")


@pytest.mark.parametrize("model", [Positions(), Embedded()], ids=["positions", "embedded"])
def test_an_end_that_the_model_has_is_taken(model: nn.Module) -> None:
    assert limits_of(model, Dim("seq", min=2, max=32)) == (
        'dynamic_shapes declares that "seq" is 2 to 32; the exported model does not check this',
    )


def test_an_end_that_multiplies_much_is_run_without_values() -> None:
    class Wide(Embedded):
        def __init__(self) -> None:
            super().__init__()
            self.wide = nn.Linear(4, 4_000_000, bias=False)

        def forward(self, x: Tensor) -> Tensor:
            return self.wide(super().forward(x)).sum(-1)

    with pytest.raises(CaptureError, match="raises IndexError at 64"):
        limits_of(Wide(), Dim("seq", min=2, max=64), x=X[:1])


def test_a_model_that_multiplies_much_is_not_run_with_values_to_be_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    class Heavy(Embedded):
        def __init__(self) -> None:
            super().__init__()
            self.wide = nn.Linear(4, 16_000_000, bias=False)

        def forward(self, x: Tensor) -> Tensor:
            return self.wide(super().forward(x)).sum(-1)

    calls = []
    monkeypatch.setattr(auto, "capture_by_running", partial(_counted, calls, auto.capture_by_running))
    with pytest.raises(CaptureError, match="raises IndexError at 64"):
        limits_of(Heavy(), Dim("seq", min=2, max=64), x=X[:1])
    assert calls == [True, False], "light, then without values, and no third time"


def _counted(calls: list[bool], captured: Any, *args: Any) -> Any:
    work = BUDGET.get()
    assert work is not None
    calls.append(work.has_values)
    return captured(*args)


def test_an_end_that_nobody_can_afford_is_left() -> None:
    (found,) = limits_of(Embedded(), Dim("seq", max=MAX_TRACED_SIZE_WITH_VALUES + 1))
    assert (
        found == f'dynamic_shapes declares that "seq" is at most {MAX_TRACED_SIZE_WITH_VALUES + 1}; the exported model does not check this'
    )
