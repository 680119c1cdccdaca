"""An export is saved whole, or nothing is left behind."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import onnx
import pytest
import torch
from torch import nn

from exportlab import to_onnx

X = torch.randn(4, 3)


def test_a_large_model_is_saved_beside_its_data(tmp_path: Path) -> None:
    program = to_onnx(nn.Linear(3, 5), (X,))
    program.save(tmp_path / "model.onnx", external_data=True)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["model.onnx", "model.onnx.data"]
    onnx.checker.check_model(str(tmp_path / "model.onnx"))


def test_a_save_that_fails_leaves_nothing_behind(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    import onnx_ir

    program = to_onnx(nn.Linear(3, 5), (X,))

    def full(*args: Any, **kwargs: Any) -> None:
        raise OSError("no space left")

    monkeypatch.setattr(onnx_ir, "save", full)
    with pytest.raises(OSError, match="no space left"):
        program.save(tmp_path / "model.onnx")
    assert list(tmp_path.iterdir()) == []
