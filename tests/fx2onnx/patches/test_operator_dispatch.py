"""What a run changes of torch is as it was afterwards, and off while a call is made."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch._ops import OpOverload
from torch.utils._python_dispatch import _disable_current_modes

from fx2onnx.trace.path_decisions import PathDecisions
from fx2onnx.trace.run import Tracer, trace

aten = torch.ops.aten
FINDS = OpOverload._get_dispatch


class Fails(torch.nn.Module):
    """Raises after a call."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        assert OpOverload._get_dispatch is not FINDS
        raise KeyError(x.relu().shape)


def test_it_is_as_it_was_after_a_run_that_fails() -> None:
    with pytest.raises(KeyError):
        trace(Fails(), ((torch.ones(2),), {}))
    assert OpOverload._get_dispatch is FINDS


class Asks(Tracer):
    """Turns all modes off, and calls operators of its own, while it notes one."""

    def _record(self, func: Any, args: tuple[Any, ...], kwargs: Any) -> Any:
        with _disable_current_modes():
            torch.ones(2).exp()
        torch.ones(2).sin()
        return super()._record(func, args, kwargs)


def test_no_call_is_noted_while_one_is(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fx2onnx.trace.run.Tracer", Asks)
    rows = trace(torch.nn.Sequential(torch.nn.Linear(2, 2), torch.nn.ReLU()), ((torch.ones(2, 2),), {}), script=PathDecisions()).rows
    assert [row.op for row in rows] == [aten.linear.default, aten.relu.default]
