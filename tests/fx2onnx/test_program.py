"""An export is saved whole, or nothing is left behind."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import onnx
import pytest
import torch
from torch import nn

from exportlab import to_onnx
from fx2onnx.errors import UnsupportedArgument

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


def test_a_program_captured_by_running_is_not_one_of_torch_export(tmp_path: Path) -> None:
    program = to_onnx(nn.Linear(3, 5), (X,))
    assert isinstance(program, torch.onnx.ONNXProgram)
    captured = program.exported_program
    assert captured is not None
    assert not isinstance(captured, torch.export.ExportedProgram)
    for use in (lambda: captured.module(), lambda: captured.run_decompositions()):
        with pytest.raises(AttributeError, match=r'by running has no .*: pass capture="torch\.export" to to_onnx'):
            use()
    with pytest.raises(TypeError, match="must be an instance of 'ExportedProgram'"):
        torch.export.save(captured, tmp_path / "program.pt2")


def test_a_program_captured_by_torch_export_is_one_of_it(tmp_path: Path) -> None:
    captured = to_onnx(nn.Linear(3, 5), (X,), capture="torch.export").exported_program
    assert captured is not None
    assert captured.module()(X).shape == (4, 5)
    captured.run_decompositions()
    torch.export.save(captured, tmp_path / "program.pt2")


class TableOfMoreThanOneFile(nn.Module):
    """Looks rows up in a table of more than 2 GiB, of which one row is in memory."""

    def __init__(self) -> None:
        super().__init__()
        self.table = torch.zeros(1, 513).expand(2**20, 513)

    def forward(self, ids: torch.Tensor) -> torch.Tensor:
        return self.table[ids]


def test_one_file_above_the_limit_of_protobuf_is_refused_before_it_is_written(tmp_path: Path) -> None:
    program = to_onnx(TableOfMoreThanOneFile(), (torch.arange(3),))
    with pytest.raises(UnsupportedArgument, match=r"2\.15 GB.*2 GiB.*second file"):
        program.save(tmp_path / "model.onnx", external_data=False)
    assert list(tmp_path.iterdir()) == []
    program.save(tmp_path / "model.onnx", external_data=False, include_initializers=False)
