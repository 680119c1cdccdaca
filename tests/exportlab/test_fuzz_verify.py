"""Files that are no ONNX, or only nearly: `exportlab verify` ends in one of its own errors whatever they hold, and writes nothing."""

from __future__ import annotations

import random
from collections.abc import Callable
from pathlib import Path

import onnx
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from torch import nn

from exportlab import to_onnx
from exportlab.cli.exit_codes import NotRight
from exportlab.cli.exporting import verify_export
from exportlab.target import BadInput

MODEL = """
import torch
from torch import nn

def build():
    return nn.Sequential(nn.Linear(3, 2), nn.ReLU()), (torch.ones(4, 3),)
"""
MOST = 12  # changes of one file


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    found = tmp_path_factory.mktemp("files")
    (found / "mine.py").write_text(MODEL)
    (found / "__pycache__").mkdir()
    torch.manual_seed(0)  # as a case does
    to_onnx(nn.Sequential(nn.Linear(3, 2), nn.ReLU()).eval(), (torch.ones(4, 3),), found / "one.onnx")
    onnx.save(onnx.load(found / "one.onnx"), found / "two.onnx", save_as_external_data=True, location="two.data", size_threshold=0)
    return found


def verified(folder: Path, content: bytes) -> str:
    """How it ended: right, or with which of our errors."""
    (folder / "it.onnx").write_bytes(content)
    before = sorted(folder.iterdir())
    try:
        verify_export(folder / "it.onnx", f"{folder / 'mine.py'}:build", None, None)
        said = "right"
    except (BadInput, NotRight) as error:
        said = f"{type(error).__name__}: {error}"
    assert len(said.splitlines()) == 1
    assert sorted(folder.iterdir()) == before
    return said


def changed(content: bytes, seed: int, changes: int) -> bytes:
    """Bytes replaced, taken out, put in, or cut off."""
    chosen, result = random.Random(seed), bytearray(content)
    for _ in range(changes):
        place, kind = chosen.randrange(max(len(result), 1)), chosen.random()
        more = bytes(chosen.randrange(256) for _ in range(chosen.randrange(1, 9)))
        if kind < 0.6:
            result[place : place + 1] = more[:1]
        elif kind < 0.75:
            del result[place : place + len(more)]
        elif kind < 0.95:
            result[place:place] = more
        else:
            del result[place:]
    return bytes(result)


@given(name=st.sampled_from(["one.onnx", "two.onnx"]), seed=st.integers(0, 2**32), changes=st.integers(1, MOST))
def test_changed_bytes_end_in_one_line(folder: Path, name: str, seed: int, changes: int) -> None:
    verified(folder, changed((folder / name).read_bytes(), seed, changes))


def other_type(model: onnx.ModelProto) -> None:
    model.graph.initializer[0].data_type = 99


def entry(key: str, value: str) -> Callable[[onnx.ModelProto], None]:
    def change(model: onnx.ModelProto) -> None:
        for tensor in model.graph.initializer:
            kept = [e for e in tensor.external_data if e.key != key]
            del tensor.external_data[:]
            tensor.external_data.extend([*kept, onnx.StringStringEntryProto(key=key, value=value)])

    return change


@pytest.mark.parametrize(
    "change",
    [
        other_type,
        *(entry(key, value) for key in ("offset", "length") for value in ("-4", "abc", "1.5")),
        entry("offset", "99999999999"),
        *(entry("location", value) for value in ("../other.data", "/etc/passwd", "nothing.data", "", ".")),
    ],
)
def test_a_file_that_says_what_cannot_be_is_refused_in_one_line(folder: Path, change: Callable[[onnx.ModelProto], None]) -> None:
    model = onnx.load(folder / "two.onnx", load_external_data=False)
    change(model)
    assert verified(folder, model.SerializeToString()).startswith("BadInput: cannot read ")
