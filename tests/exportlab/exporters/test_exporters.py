"""Every exporter keeps the protocol: what goes in comes out, called, saved and measured."""

from __future__ import annotations

from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any

import onnx
import pytest
import torch
from torch import nn

from exportlab import Sample, exporters, verify
from exportlab.exporters import protocol
from exportlab.exporters.torchscript import dynamic_axes, leaf_names

NAMES = ("torch.export", "to_onnx", "dynamo", "torchscript")
ONNX_NAMES = NAMES[1:]


class Tree(nn.Module):
    """Takes and returns containers, an int and a None."""

    def forward(self, x: torch.Tensor, more: dict[str, Any], flag: None = None, k: int = 2) -> dict[str, Any]:
        return {"a": x * k + more["y"][0], "none": None, "pair": (x.sum(0), [x + k])}


def tree_sample(rows: int) -> Sample:
    return Sample((torch.randn(rows, 3), {"y": [torch.randn(rows, 3)]}), {"k": 3})


TREE_SHAPES = {"x": {0: "batch"}, "more": {"y": [{0: "batch"}]}, "k": None}


@pytest.mark.parametrize("name", NAMES)
def test_trees_in_and_out(name: str) -> None:
    first = tree_sample(4)
    artifact = exporters.export(name, Tree().eval(), first.args, first.kwargs, dynamic_shapes=TREE_SHAPES)
    verify(artifact, Tree(), [first, tree_sample(7), tree_sample(1)]).check()
    assert artifact.exporter == name
    assert artifact.stats().bytes > 100
    assert artifact.stats().nodes >= 4
    assert repr(artifact).splitlines()[1].startswith(name)


@pytest.mark.parametrize("name", ["torch.export", "to_onnx", "dynamo"])
def test_a_burnt_in_scalar_is_refused_not_ignored(name: str) -> None:
    first = tree_sample(4)
    artifact = exporters.export(name, Tree().eval(), first.args, first.kwargs)
    with pytest.raises((ValueError, AssertionError), match=r"constant 3|== 3"):
        artifact(*first.args, k=4)


@pytest.mark.parametrize("name", NAMES)
def test_other_structure_is_refused(name: str) -> None:
    x = torch.randn(2, 3)
    artifact = exporters.export(name, nn.ReLU().eval(), (x,))
    with pytest.raises((TypeError, ValueError)):
        artifact(x, x)


@pytest.mark.parametrize("name", NAMES)
def test_saving_is_whole_or_nothing(name: str, tmp_path: Path) -> None:
    artifact = exporters.export(name, nn.Linear(3, 2).eval(), (torch.randn(2, 3),))
    suffix = ".pt2" if name == "torch.export" else ".onnx"
    path = artifact.save(tmp_path / f"model{suffix}")
    assert path.stat().st_size == artifact.stats().bytes
    with pytest.raises(OSError, match="there is no folder"):
        artifact.save(tmp_path / "missing" / f"model{suffix}")
    assert [p.name for p in tmp_path.iterdir()] == [f"model{suffix}"]


@pytest.mark.parametrize("name", ONNX_NAMES)
def test_names_and_opset_as_asked(name: str) -> None:
    x = torch.randn(2, 3)
    artifact = exporters.export(
        name, nn.Linear(3, 2).eval(), (x,), input_names=["rows"], output_names=["scores"], opset_version=18, dynamic_shapes=({0: "n"},)
    )
    report = verify(artifact, nn.Linear(3, 2), [(x,)])
    assert {c.name: c.outcome for c in report.checks if c.name in ("input names", "output names", "opset")} == {
        "input names": "ok",
        "output names": "ok",
        "opset": "ok",
    }


def test_large_weights_go_to_external_data(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    module, x = nn.Linear(64, 64).eval(), torch.randn(2, 64)
    artifact = exporters.export("dynamo", module, (x,))
    monkeypatch.setattr("exportlab.exporters.onnx_artifact.EXTERNAL_DATA_ABOVE", 1000)
    path = artifact.save(tmp_path / "model.onnx")
    assert sorted(p.name for p in tmp_path.iterdir()) == ["model.onnx", "model.onnx.data"]
    onnx.checker.check_model(path)
    again = exporters.from_file(path, (x,), {}, module(x))
    verify(again, module, [(x,)]).check()
    verify(artifact, module, [(x,)]).check()


def test_a_file_brings_the_weights_that_stand_beside_it(tmp_path: Path) -> None:
    module, x = nn.Linear(64, 64).eval(), torch.randn(2, 64)
    torch.onnx.export(module, (x,), tmp_path / "model.onnx", dynamo=True, verbose=False)
    assert sorted(p.name for p in tmp_path.iterdir()) == ["model.onnx", "model.onnx.data"]
    verify(exporters.from_file(tmp_path / "model.onnx", (x,), {}, module(x)), module, [(x,)]).check()
    (tmp_path / "model.onnx.data").unlink()
    with pytest.raises(OSError, match=r"model\.onnx\.data"):
        exporters.from_file(tmp_path / "model.onnx", (x,), {}, module(x))


def test_buffers_start_afresh() -> None:
    class Count(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("n", torch.zeros(()))

        def forward(self, x: torch.Tensor) -> torch.Tensor:
            self.n.add_(1)
            return x + self.n

    artifact = exporters.export("torch.export", Count().eval(), (torch.zeros(2),))
    assert [artifact.fresh()(torch.zeros(2))[0].item() for _ in range(2)] == [1, 1]
    again = artifact.fresh()
    assert [again(torch.zeros(2))[0].item() for _ in range(2)] == [1, 2]


def test_a_program_that_starts_afresh_checks_the_structure_of_its_inputs() -> None:
    class Summed(nn.Module):
        def forward(self, pieces: list[torch.Tensor]) -> torch.Tensor:
            return torch.stack(pieces).sum(0)

    x = torch.ones(3)
    artifact = exporters.export("torch.export", Summed().eval(), ([x, x + 1],))
    with pytest.raises(ValueError, match="input"):
        artifact.fresh()([x, x + 1, x])


class Numbers(nn.Module):
    """Takes numbers and a string, returns a number."""

    def forward(self, x: torch.Tensor, scale: float, times: int, how: str) -> tuple[torch.Tensor, int]:
        return (x * scale).repeat(1, times) if how == "repeat" else x, x.shape[0]


class Table(nn.Module):
    """Takes nothing."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.arange(3.0))

    def forward(self) -> torch.Tensor:
        return self.weight.softmax(-1)


@pytest.mark.parametrize("name", NAMES)
def test_numbers_and_strings_go_in_and_numbers_come_out(name: str) -> None:
    args = (torch.randn(4, 3), 0.5, 2, "repeat")
    artifact = exporters.export(name, Numbers().eval(), args, dynamic_shapes=({0: "batch"}, None, None, None))
    verify(artifact, Numbers(), [args, (torch.randn(7, 3), *args[1:])]).check()


@pytest.mark.parametrize("name", NAMES)
def test_nothing_goes_in(name: str) -> None:
    verify(exporters.export(name, Table().eval()), Table(), [()]).check()


def test_bfloat16_goes_in_and_comes_out() -> None:
    x, module = torch.randn(4, 3).bfloat16(), nn.Linear(3, 2).bfloat16().eval()
    verify(
        exporters.export("to_onnx", module, (x,), dynamic_shapes=({0: "n"},)), module, [(x,), (x[:1],), (x.expand(4, 3).T[:3, :3],)]
    ).check()


def test_stage_of_an_error() -> None:
    class OnValue(nn.Module):
        def forward(self, x: torch.Tensor) -> torch.Tensor:
            return x * 2 if x.sum() > 0 else x

    for name in ("torch.export", "to_onnx", "dynamo"):
        asked = {"capture": "torch.export"} if name == "to_onnx" else {}
        with pytest.raises(Exception) as raised:  # noqa: PT011 - the type is the exporter's affair
            exporters.export(name, OnValue().eval(), (torch.ones(3),), **asked)
        assert exporters.get(name).stage(raised.value) == "capture"
    with pytest.raises(Exception) as raised:  # noqa: PT011
        exporters.export("dynamo", Cdist().eval(), (torch.ones(3, 2),))
    assert exporters.get("dynamo").stage(raised.value) == "convert"


class Cdist(nn.Module):
    """An op that the official exporter has no function for."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return torch.cdist(x, x)


def test_unknown_exporter() -> None:
    with pytest.raises(ValueError, match=r"no exporter 'tensorflow'\. Available: torch\.export, to_onnx, dynamo, torchscript"):
        exporters.get("tensorflow")


class ThirdParty:
    """What a package might register."""

    name = "third"

    def missing(self) -> str | None:
        return "pip install third"

    def stage(self, error: Exception) -> str:
        return "convert"

    def export(self, module: nn.Module, args: tuple[Any, ...] = (), kwargs: None = None, **options: Any) -> Any:
        raise NotImplementedError


third_party, no_exporter = ThirdParty(), object()


def registered(monkeypatch: pytest.MonkeyPatch, value: str) -> None:
    entry = EntryPoint("third", value, protocol.GROUP)
    monkeypatch.setattr("exportlab.entry_points.find_entry_points", lambda group, installed: [entry])


def test_third_parties_register_by_entry_point(monkeypatch: pytest.MonkeyPatch) -> None:
    registered(monkeypatch, f"{__name__}:third_party")
    assert list(exporters.available()) == [*(built_in.name for built_in in exporters.BUILT_IN), "third"]
    with pytest.raises(ValueError, match="exporter third cannot run here: pip install third"):
        exporters.get("third")


def test_what_registers_must_be_an_exporter(monkeypatch: pytest.MonkeyPatch) -> None:
    registered(monkeypatch, f"{__name__}:no_exporter")
    with pytest.raises(TypeError, match="is not an Exporter"):
        exporters.available()


def test_dynamic_axes_from_dynamic_shapes() -> None:
    first = tree_sample(4)
    names = leaf_names(Tree(), first.args, first.kwargs)
    assert names == ["x", "more_y_0", "k"]
    axes = dynamic_axes(Tree(), first.args, first.kwargs, TREE_SHAPES, names)
    assert axes == {"x": {0: "batch"}, "more_y_0": {0: "batch"}}


def test_programs_are_artifacts() -> None:
    x = torch.randn(2, 3)
    program = torch.export.export(nn.ReLU().eval(), (x,))
    verify(program, nn.ReLU(), [(x,)]).check()
    verify(torch.onnx.export(program, dynamo=True, verbose=False), nn.ReLU(), [(x,)]).check()


def test_no_model_in_a_file(tmp_path: Path) -> None:
    path = tmp_path / "not.onnx"
    path.write_text("certainly not a protobuf")
    with pytest.raises(ValueError, match=r"not\.onnx is not an ONNX model"):
        exporters.from_file(path, (), {}, None)
