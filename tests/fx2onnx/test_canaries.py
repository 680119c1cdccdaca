"""Each canary shows that its hook fires, and an untested torch on which one does not is refused."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import nn
from torch.fx.experimental.symbolic_shapes import ShapeEnv

from fx2onnx import to_onnx, versions
from fx2onnx.canaries import CANARIES, Canary, check_hooks
from fx2onnx.errors import UnsupportedTorch
from fx2onnx.patches import registry

OWNERS = {  # the owner of the patch that each canary needs
    "torch.SymInt.__repr__": "text_of_numbers",
    "torch.SymInt.__repr__ in torch.export": "text_of_numbers",
    "the constructors of data-dependent errors": "caught_errors",
    "functions of math": "python_numbers",
    "torch.Tensor.item": "numbers",
    "builtins.range": "range",
    "ShapeEnv.create_unbacked_symint": "numbers_read",
    "torch._functorch.apis.vmap_impl": "vmap",
    "builtins.len": "tensor_len",
    "comparisons of torch.SymInt": "comparisons",
}


def name_of(canary: Canary) -> str:
    return canary.hook


def test_each_hook_fires_on_this_torch() -> None:
    check_hooks(to_onnx)


@pytest.mark.parametrize("canary", [canary for canary in CANARIES if canary.hook in OWNERS], ids=name_of)
def test_a_canary_notices_that_its_hook_is_gone(canary: Canary, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(registry._PATCHES, OWNERS[canary.hook], [])
    monkeypatch.setattr("fx2onnx.canaries.CANARIES", (canary,))
    with pytest.raises(UnsupportedTorch, match=f"does not call what to_onnx replaces in it: {canary.hook}"):
        check_hooks(to_onnx)


class Ignored:
    """An attribute that instances cannot replace."""

    def __init__(self, original: Any) -> None:
        self.original = original

    def __get__(self, instance: Any, owner: type) -> Any:
        return self.original.__get__(instance, owner)

    def __set__(self, instance: Any, value: Any) -> None:
        """Keep the original."""

    def __delete__(self, instance: Any) -> None:
        """Keep the original."""


def test_a_canary_notices_that_decisions_are_not_recorded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("fx2onnx.canaries.CANARIES", ())
    check_hooks(to_onnx)
    monkeypatch.setattr(ShapeEnv, "_log_guard", Ignored(ShapeEnv._log_guard))
    with pytest.raises(UnsupportedTorch, match=r"does not call what to_onnx replaces in it: ShapeEnv\._log_guard"):
        check_hooks(to_onnx)


def test_an_untested_torch_runs_the_canaries_once(monkeypatch: pytest.MonkeyPatch) -> None:
    calls: list[Any] = []
    monkeypatch.setattr(versions, "NEWEST", (2, 0))
    monkeypatch.setattr(versions, "OLDEST", (1, 0))
    monkeypatch.setattr(versions, "_WARNED", set())
    monkeypatch.setattr("fx2onnx.check_hooks", calls.append)
    with pytest.warns(UserWarning, match="is tested with"):
        to_onnx(nn.Identity(), (torch.ones(2),))
    to_onnx(nn.Identity(), (torch.ones(2),))
    assert calls == [to_onnx]
