"""A forward that casts a part of the model to the dtype that it has is captured; one that casts it to another is refused with its line."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from modules import With
from torch import Tensor, nn

from exportlab import to_onnx, verify
from fx2onnx.errors import CaptureError

ROWS = ({0: "rows"},)
HERE = r"\S*test_module_to\.py:\d+ in "


def by_to(self: Any, x: Tensor) -> Tensor:
    self.layer = self.layer.to(torch.float32)
    return self.layer(x)


def by_device(self: Any, x: Tensor) -> Tensor:
    return self.layer.to(x.device)(x)


def by_float(self: Any, x: Tensor) -> Tensor:
    return self.layer.float()(x)


@pytest.mark.parametrize("capture", ["run", "torch.export"])
@pytest.mark.parametrize("function", [by_to, by_device, by_float])
def test_a_cast_that_changes_nothing_is_captured(function: Callable[[Any, Tensor], Tensor], capture: str) -> None:
    model = With(function, layer=nn.Linear(3, 3)).eval()
    program = to_onnx(model, (torch.randn(4, 3),), dynamic_shapes=ROWS, capture=capture)
    verify(program, model, [(torch.randn(rows, 3),) for rows in (4, 1, 9)]).check()
    assert nn.Module.to.__module__ == "torch.nn.modules.module"


@pytest.mark.parametrize("capture", ["run", "torch.export", "auto"])
@pytest.mark.parametrize("function", [by_to, by_float])
def test_a_cast_of_what_the_model_holds_is_refused_and_nothing_is_cast(function: Callable[[Any, Tensor], Tensor], capture: str) -> None:
    model = With(function, layer=nn.Linear(3, 3).half()).eval()
    with pytest.raises(CaptureError, match=f"forward casts or moves a Linear of the model at {HERE}{function.__name__}: "):
        to_onnx(model, (torch.randn(4, 3),), dynamic_shapes=ROWS, capture=capture)
    assert model.layer.weight.dtype == torch.float16
