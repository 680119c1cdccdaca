"""An error of our own code is reported as ours, and an error of a model as the model's."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import nn

import fx2onnx
from fx2onnx import to_onnx
from fx2onnx.errors import InternalError, ToOnnxError
from fx2onnx.internal_errors import is_internal
from fx2onnx.libraries import PACKAGE
from fx2onnx.trace import effects

X = torch.randn(2, 4)
MISTAKES = {
    "a removed operator": "torch.ops.aten.no_such_operator",
    "a removed function": "torch.no_such_function()",
    "a changed signature": "torch.utils._pytree.tree_leaves()",
    "a missing key": "{}['key']",
    "a failed assertion": "assert_(False)",
}


class Branch(nn.Module):
    """A model that torch.export refuses."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Double the positive."""
        return x * 2 if x.sum() > 0 else x


class Straight(nn.Module):
    """A model that torch.export captures."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Double it."""
        return x * 2


class Lacks(nn.Module):
    """A model with a mistake."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Look up what is missing."""
        return self.scale * x  # type: ignore[operator]


def mistaken(expression: str) -> Callable[..., Any]:
    """Return a function that makes a mistake, as if it were in a file of fx2onnx."""
    known: dict[str, Any] = {"torch": torch}
    source = "def assert_(value):\n    assert value\ndef stumble(*args, **kwargs):\n    return " + expression
    exec(compile(source, f"{PACKAGE}trace/effects.py", "exec"), known)
    found: Callable[..., Any] = known["stumble"]
    return found


@pytest.mark.parametrize("expression", MISTAKES.values(), ids=MISTAKES)
def test_a_mistake_in_a_trace_is_reported_as_ours(monkeypatch: pytest.MonkeyPatch, expression: str) -> None:
    monkeypatch.setattr(effects, "is_identity", mistaken(expression))
    with pytest.raises(InternalError, match=r"internal error in to_onnx: .*trace/effects.py:\d in .* not of your model") as caught:
        to_onnx(Branch(), (X,))
    assert caught.value.stage == "capture"
    assert "capture with torch.export also fails" in caught.value.__notes__[0]


def test_a_mistake_in_a_trace_is_a_warning_where_torch_export_succeeds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(effects, "is_identity", mistaken("torch.ops.aten.no_such_operator"))
    with pytest.warns(UserWarning, match=r"captured with torch.export, because of an internal error in to_onnx: AttributeError"):
        program = to_onnx(Straight(), (X,))
    assert program.report.trace_failure.startswith("InternalError")


@pytest.mark.parametrize("error", ["torch.ops.aten.no_such_operator", "torch.ones(2, 3) @ torch.ones(2, 3)"])
def test_a_mistake_in_the_conversion_is_reported_as_ours(monkeypatch: pytest.MonkeyPatch, error: str) -> None:
    monkeypatch.setattr(fx2onnx, "apply_passes", mistaken(error))
    with pytest.raises(InternalError, match="internal error in to_onnx") as caught:
        to_onnx(Straight(), (X,))
    assert caught.value.stage == "convert"


def test_a_mistake_of_the_model_is_the_models() -> None:
    with pytest.raises(ToOnnxError, match="Lacks") as caught:
        to_onnx(Lacks(), (X,))
    assert not isinstance(caught.value, InternalError)


@pytest.mark.parametrize("raised", [ValueError("no"), RuntimeError("no"), KeyError("no")])
def test_what_others_raise_is_not_ours(raised: Exception) -> None:
    with pytest.raises(type(raised)) as caught:
        raise raised
    assert not is_internal(caught.value)
