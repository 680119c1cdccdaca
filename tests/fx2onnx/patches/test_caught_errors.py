"""An error of the capture that a model catches chose a branch: it is refused."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any

import pytest
import torch
from modules import With
from torch import Tensor, nn
from torch.fx.experimental.symbolic_shapes import GuardOnDataDependentSymNode

from exportlab import to_onnx, verify
from fx2onnx.errors import CaptureError

X = torch.randn(4, 3)
HERE = r"tests/fx2onnx/patches/test_caught_errors\.py:\d+ in "


def in_try(_: nn.Module, x: Tensor) -> Tensor:
    try:
        return x * (2 if x.sum() > 0 else 3)
    except RuntimeError:
        return x * 5


def suppressed(_: nn.Module, x: Tensor) -> Tensor:
    factor = 5
    with contextlib.suppress(RuntimeError):
        factor = 2 if x.sum() > 0 else 3
    return x * factor


def counted(_: nn.Module, x: Tensor) -> Tensor:
    try:
        return x * (2 if x.nonzero().shape[0] > 3 else 3)
    except Exception:  # noqa: BLE001 - what a model may do
        return x * 5


@pytest.mark.parametrize("function", [in_try, suppressed, counted])
def test_an_error_of_the_capture_that_the_model_catches_is_refused(function: Callable[..., Any]) -> None:
    before = GuardOnDataDependentSymNode.__init__
    with pytest.raises(CaptureError, match=f"evaluates a condition on a tensor value at {HERE}{function.__name__}, and catches the error"):
        to_onnx(With(function), (X,), capture="torch.export")
    assert GuardOnDataDependentSymNode.__init__ is before


def test_an_error_that_eager_has_as_well_may_be_caught() -> None:
    def reshaped(_: nn.Module, x: Tensor) -> Tensor:
        try:
            return x.view(5, 5)
        except RuntimeError:
            return x.view(-1)

    verify(to_onnx(With(reshaped), (X,)), With(reshaped), [(X,)]).check()
