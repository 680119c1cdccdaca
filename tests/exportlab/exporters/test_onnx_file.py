"""The weights beside an ONNX file: read where ONNX Runtime reads them, and else refused in one line, before any is read."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
import pytest
from onnx import TensorProto, helper, numpy_helper
from onnx.external_data_helper import set_external_data

from exportlab.exporters.onnx_file import Misplaced, read_model

DATA = "model.onnx.data"
Place = dict[str, str | None]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The folder of a model, which is the current one, so that the file has no folder in its name."""
    found = tmp_path / "models"
    (found / "sub").mkdir(parents=True)
    monkeypatch.chdir(found)
    for name in (DATA, "../outside.data"):
        Path(name).write_bytes(np.arange(8, dtype=np.float32).tobytes())
    return found


def model(**place: str | None) -> onnx.ModelProto:
    """y = x + weights, whose 24 bytes begin at byte 8, in a branch."""
    weights = numpy_helper.from_array(np.zeros(6, np.float32), "w")
    set_external_data(weights, DATA, 8, 24)
    told = {entry.key: entry.value for entry in weights.external_data} | place
    del weights.external_data[:]
    weights.external_data.extend(onnx.StringStringEntryProto(key=key, value=value) for key, value in told.items() if value is not None)
    weights.ClearField("raw_data")
    add = helper.make_node("Add", ["x", "w"], ["y"])
    x, y = (helper.make_tensor_value_info(name, TensorProto.FLOAT, [6]) for name in "xy")
    branch = helper.make_graph([add], "branch", [], [y], [weights])
    other = helper.make_graph([helper.make_node("Identity", ["x"], ["y"])], "other", [], [y])
    condition = helper.make_tensor_value_info("c", TensorProto.BOOL, [])
    chosen = helper.make_node("If", ["c"], ["z"], then_branch=branch, else_branch=other)
    z = helper.make_tensor_value_info("z", TensorProto.FLOAT, [6])
    made = helper.make_model(helper.make_graph([chosen], "main", [condition, x], [z]), opset_imports=[helper.make_opsetid("", 20)])
    made.ir_version = 10
    return made


def written(**place: str | None) -> Path:
    Path("model.onnx").write_bytes(model(**place).SerializeToString())
    return Path("model.onnx")


@pytest.mark.parametrize("place", [{}, {"length": None}, {"length": "0"}, {"location": f"./{DATA}"}, {"location": f"sub/../{DATA}"}])
def test_weights_that_are_where_the_file_says(folder: Path, place: Place) -> None:
    path = written(**place)
    run = onnxruntime.InferenceSession(path).run(None, {"c": np.array(True), "x": np.zeros(6, np.float32)})[0]
    [weights] = [v for graph in read_model(path).graphs() for v in graph.initializers.values()]
    assert weights.const_value is not None
    assert run.tolist() == weights.const_value.numpy().tolist() == [2, 3, 4, 5, 6, 7]


OUTSIDE = "it must be a file in the folder of the model, or below it"


@pytest.mark.parametrize(
    ("place", "said"),
    [
        ({"length": "4000"}, "have a length of 4,000 bytes, but their type and shape need 24"),
        ({"length": "20"}, "have a length of 20 bytes, but their type and shape need 24"),
        ({"offset": "12"}, f"end at byte 36 of '{DATA}', which has only 32 bytes: the file is incomplete"),
        ({"offset": "32", "length": None}, "end at byte 56"),
        ({"offset": "-8"}, "have the offset '-8': it must be a number of bytes, 0 or more"),
        ({"length": "1.5"}, "have the length '1.5': it must be a number of bytes, 0 or more"),
        ({"location": "../outside.data"}, f"have the location '../outside.data': {OUTSIDE}"),
        ({"location": f"../models/{DATA}"}, OUTSIDE),
        ({"location": "link.data"}, f"have the location 'link.data': {OUTSIDE}"),
        ({"location": "/etc/hostname"}, OUTSIDE),
        ({"location": ""}, OUTSIDE),
        ({"location": None}, OUTSIDE),
        ({"location": "."}, "have the location '.', which is not a regular file"),
        ({"location": "pipe"}, "have the location 'pipe', which is not a regular file"),
    ],
)
def test_weights_that_cannot_be_there(folder: Path, place: Place, said: str) -> None:
    os.mkfifo("pipe")
    Path("link.data").symlink_to("../outside.data")
    path = written(**place)
    with pytest.raises(Misplaced) as refused:
        read_model(path)
    assert str(refused.value).startswith("the weights 'w' ")
    assert said in str(refused.value)
    with pytest.raises(Exception, match=r"ONNXRuntimeError|model\.onnx"):
        onnxruntime.InferenceSession(path)


def test_weights_that_are_not_there(folder: Path) -> None:
    Path(DATA).unlink()
    with pytest.raises(FileNotFoundError, match=rf"'w' are in '{DATA}', which does not exist: put it in the folder of the model"):
        read_model(written())


def test_a_file_that_was_cut_off(folder: Path) -> None:
    Path(DATA).write_bytes(Path(DATA).read_bytes()[:10])
    with pytest.raises(Misplaced, match=r"end at byte 32 of .*, which has only 10 bytes: the file is incomplete"):
        read_model(written())
