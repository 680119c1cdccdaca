"""A model and the weights beside it are replaced as one."""

from __future__ import annotations

import os
from pathlib import Path

import onnx
import pytest
import torch
from onnx.external_data_helper import load_external_data_for_model
from torch import nn

from exportlab import to_onnx
from fx2onnx.program import Program

NAME = "model.onnx"


def program(value: float) -> Program:
    """A file whose weights are all this."""
    layer = nn.Linear(300, 5, bias=False)
    nn.init.constant_(layer.weight, value)
    return to_onnx(layer, (torch.randn(2, 300),))


def held(folder: Path) -> float:
    return float(onnx.numpy_helper.to_array(onnx.load(folder / NAME).graph.initializer[0]).mean())


def names(folder: Path) -> list[str]:
    return sorted(entry.name for entry in folder.iterdir())


def test_a_reader_of_the_old_model_never_finds_the_new_weights(tmp_path: Path) -> None:
    program(1.0).save(tmp_path / NAME, external_data=True)
    for newer in (2.0, 3.0, 4.0):
        read_before = onnx.load(tmp_path / NAME, load_external_data=False)
        program(newer).save(tmp_path / NAME, external_data=True)
        with pytest.raises(onnx.checker.ValidationError, match="should be stored in"):
            load_external_data_for_model(read_before, str(tmp_path))
        assert held(tmp_path) == newer
        assert len(names(tmp_path)) == 2


def test_weights_that_the_new_model_has_in_itself_leave_none_behind(tmp_path: Path) -> None:
    program(1.0).save(tmp_path / NAME, external_data=True)
    assert names(tmp_path) == [NAME, f"{NAME}.data"]
    program(2.0).save(tmp_path / NAME, external_data=False)
    assert names(tmp_path) == [NAME]
    assert held(tmp_path) == 2.0


def test_a_save_that_ends_before_the_model_is_moved_leaves_the_old_pair(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    program(1.0).save(tmp_path / NAME, external_data=True)
    move = os.replace

    def moved_or_ended(source: str | Path, target: str | Path) -> None:
        if target == tmp_path / NAME:
            raise KeyboardInterrupt
        move(source, target)

    monkeypatch.setattr(os, "replace", moved_or_ended)
    with pytest.raises(KeyboardInterrupt):
        program(2.0).save(tmp_path / NAME, external_data=True)
    assert held(tmp_path) == 1.0


def test_a_file_of_that_name_that_is_not_ours_stays(tmp_path: Path) -> None:
    (tmp_path / f"{NAME}.data").write_text("somebody's")
    program(1.0).save(tmp_path / NAME, external_data=True)
    program(2.0).save(tmp_path / NAME, external_data=True)
    assert (tmp_path / f"{NAME}.data").read_text() == "somebody's"
    assert held(tmp_path) == 2.0
    assert len(names(tmp_path)) == 3


def test_what_is_replaced_need_not_be_a_model(tmp_path: Path) -> None:
    (tmp_path / NAME).write_bytes(b"\xff\xff no model")
    (tmp_path / f"{NAME}.data").write_text("somebody's")
    program(1.0).save(tmp_path / NAME, external_data=True)
    assert held(tmp_path) == 1.0


def test_a_link_has_no_weights_beside_it(tmp_path: Path) -> None:
    (tmp_path / "store").mkdir()
    (tmp_path / NAME).symlink_to(tmp_path / "store" / "real.onnx")
    with pytest.raises(FileExistsError, match="the weights would be missing next to this symbolic link"):
        program(1.0).save(tmp_path / NAME, external_data=True)
    program(2.0).save(tmp_path / NAME, external_data=False)
    assert held(tmp_path) == 2.0
    assert (tmp_path / NAME).is_symlink()
