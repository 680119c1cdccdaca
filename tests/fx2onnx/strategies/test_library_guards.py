"""Tests of sizes in an installed library count as the caller's own do wherever the model does something else on the other side."""

from __future__ import annotations

import runpy
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import onnxruntime
import pytest
import torch
from torch import nn

from fx2onnx import to_onnx
from fx2onnx.errors import FrozenDimension
from fx2onnx.libraries import INSTALLED
from fx2onnx.trace.source_location import is_within_torch

LIBRARY = """
import torch.nn.functional as F

def more_rows(x):
    return x * 3 + 1 if x.shape[0] > 1 else x + 1

def more_rows_and_places(x):
    return x * 3 if x.shape[0] > 1 and x.shape[1] > 1 else x * 2

def one_row_of_many_places(x):
    if x.shape[0] == 1 and x.shape[1] > 1:
        x = x * 3
    return x + 1

def odd(x):
    return x * 3 if x.shape[1] % 2 == 1 else x

def padded(x):
    n = x.shape[1]
    pad = (4 - n % 4) % 4
    y = F.pad(x, (0, 0, 0, pad)) * 2
    if pad > 0:
        y = y[:, :n]
    return y + 1

def centred_then_padded(x):
    if x.shape[1] > 1:
        x = x - x.mean(1, keepdim=True)
    return padded(x)

def by_a_number(x):
    return x * (3 if x.shape[1] > 1 else 2)

def many_elements(x):
    return x * 3 if x.shape[0] * x.shape[1] > 20 else x

def as_many_rows(x):
    return x * 3 if x.shape[0] == x.shape[1] else x

def nothing_depends(x):
    return x.sum(1) if x.shape[1] > 1 else x.sum(1)

def half(x):
    return x * 3 if x.shape[1] // 2 > 1 else x
"""
FUNCTIONS = [line.split("(")[0].removeprefix("def ") for line in LIBRARY.splitlines() if line.startswith("def ")]
AXES = {0: "rows", 1: "places"}
SIZES = [(1, 1), (1, 2), (1, 3), (1, 8), (2, 1), (2, 4), (3, 1), (3, 3), (3, 8), (4, 5)]


class Of(nn.Module):
    """A function of a library."""

    def __init__(self, function: Any) -> None:
        super().__init__()
        self.function = function

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.function(x)


@pytest.fixture(scope="module", params=["site-packages", "dist-packages"])
def library(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    return _functions_in(tmp_path_factory.mktemp("of") / request.param)


def _functions_in(folder: Path) -> dict[str, Any]:
    folder.mkdir()
    path = folder / "installed_functions.py"
    path.write_text(LIBRARY, encoding="utf-8")
    return runpy.run_path(str(path))


@pytest.mark.parametrize("capture", ["run", "auto"])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_file_has_both_sides_of_a_test_in_a_library(library: dict[str, Any], name: str, capture: str) -> None:
    model = Of(library[name])
    session = _session(model, capture=capture)
    assert _wrong(session, model) == []


@pytest.mark.parametrize("name", FUNCTIONS)
def test_a_folder_of_the_callers_may_be_called_torch(tmp_path: Path, name: str) -> None:
    model = Of(_functions_in(tmp_path / "torch")[name])
    assert _wrong(_session(model, capture="run"), model) == []


@pytest.mark.parametrize("name", [name for name in FUNCTIONS if name not in ("nothing_depends", "padded")])
def test_torch_export_alone_is_held_against_the_model_on_the_other_side(library: dict[str, Any], name: str) -> None:
    with pytest.raises(FrozenDimension, match=r"is exported: the test at installed_functions\.py:\d+ in \w+ chose one branch"):
        _session(Of(library[name]), capture="torch.export")


@pytest.mark.parametrize("name", ["nothing_depends", "padded"])
def test_torch_export_alone_is_right_where_nothing_depends_on_a_test(library: dict[str, Any], name: str) -> None:
    model = Of(library[name])
    session = _session(model, capture="torch.export")
    assert _wrong(session, model) == []


def test_a_test_on_which_nothing_depends_makes_no_sides(library: dict[str, Any]) -> None:
    exported = to_onnx(Of(library["nothing_depends"]), (torch.randn(2, 7, 3),), dynamic_shapes=(AXES,), capture="run")
    assert "If" not in {node.op_type for node in exported.model_proto.graph.node}


def test_what_is_accepted_of_a_library_is_among_the_limits(library: dict[str, Any]) -> None:
    model = Of(library["more_rows"])
    exported = to_onnx(model, (torch.randn(2, 7, 3),), dynamic_shapes=(AXES,), capture="torch.export", accept_ranges=("rows",))
    assert [line.partition(": ")[2] for line in exported.report.limits] == [
        "only rows > 1 is exported; allowed by accept_ranges; the exported model does not check it"
    ]


class Block(nn.Module):
    """A layer, and a function of a library."""

    def __init__(self, function: Any) -> None:
        super().__init__()
        self.linear, self.function = nn.Linear(3, 3), function

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.function(self.linear(x))


def test_blocks_that_become_functions_are_checked_after_one_export(library: dict[str, Any], monkeypatch: pytest.MonkeyPatch) -> None:
    export = Mock(wraps=torch.export.export)
    monkeypatch.setattr(torch.export, "export", export)
    options: dict[str, Any] = {"export_modules_as_functions": (Block,), "dynamic_shapes": (AXES,), "capture": "torch.export"}
    x = torch.randn(2, 7, 3)
    exported = to_onnx(nn.Sequential(*(Block(library["padded"]) for _ in range(3))), (x,), **options)
    assert exported.report.functions == {"Block": 3}
    assert export.call_count == 1
    with pytest.raises(FrozenDimension, match="only rows > 1 is exported: the test at installed_functions"):
        to_onnx(nn.Sequential(*(Block(library["more_rows"]) for _ in range(2))), (x,), **options)


@pytest.mark.parametrize("path", ["torchvision/models/vit.py", "torch_geometric/nn/conv.py"])
def test_a_library_whose_name_begins_as_torchs_is_another(path: str) -> None:
    assert is_within_torch(str(INSTALLED / "torch/nn/functional.py"))
    assert not is_within_torch(str(INSTALLED / path))


def _session(model: nn.Module, capture: str) -> onnxruntime.InferenceSession:
    exported = to_onnx(model, (torch.randn(2, 7, 3),), dynamic_shapes=(AXES,), capture=capture)
    return onnxruntime.InferenceSession(exported.model_proto.SerializeToString())


def _wrong(session: onnxruntime.InferenceSession, model: nn.Module) -> list[tuple[int, int]]:
    (given,) = session.get_inputs()
    wrong = []
    for sizes in SIZES:
        x = torch.randn(*sizes, 3)
        found = torch.from_numpy(session.run(None, {given.name: x.numpy()})[0])
        wanted = model(x)
        if found.shape != wanted.shape or not torch.allclose(found, wanted, atol=1e-5):
            wrong.append(sizes)
    return wrong
