"""Exporters that bring a runtime: openvino, executorch, aoti, transformers. Not here: what all keep (test_exporters.py)."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import onnx
import onnxruntime
import pytest
import torch
from torch import nn

from exportlab import Sample, exporters, verify
from exportlab.exporters.openvino_model import openvino, told_by_openvino
from exportlab.verification import comparison

PACKAGES = {"openvino": "openvino", "executorch": "executorch", "transformers": "transformers"}
NAMES = (*PACKAGES, "aoti")


class Tree(nn.Module):
    """Takes and returns containers, an int and a None."""

    def forward(self, x: torch.Tensor, more: dict[str, Any], flag: None = None, k: int = 2) -> dict[str, Any]:
        return {"a": x * k + more["y"][0], "none": None, "pair": (x.sum(1), [x + k])}


def tree_sample(rows: int) -> Sample:
    return Sample((torch.randn(rows, 3), {"y": [torch.randn(rows, 3)]}), {"k": 3})


TREE_SHAPES = {"x": {0: "batch"}, "more": {"y": [{0: "batch"}]}, "k": None}


def exported(name: str, module: nn.Module, sample: Sample, dynamic_shapes: Any = None) -> exporters.Artifact:
    reason = exporters.available()[name].missing()
    if reason:
        pytest.skip(reason)
    return exporters.export(name, module.eval(), sample.args, sample.kwargs, dynamic_shapes=dynamic_shapes)


@pytest.mark.parametrize("name", PACKAGES)
def test_trees_at_other_sizes_and_whole_files(name: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    first = tree_sample(4)
    artifact = exported(name, Tree(), first, TREE_SHAPES)
    verify(artifact, Tree(), [first, tree_sample(7), tree_sample(1), tree_sample(0)]).check()
    assert artifact.exporter == name
    assert artifact.stats().nodes >= 1
    artifact.save(tmp_path / f"model{artifact.suffix}")
    assert sum(path.stat().st_size for path in tmp_path.iterdir()) == artifact.stats().bytes > 1000
    with pytest.raises(OSError, match="there is no folder"):
        artifact.save(tmp_path / "missing" / f"model{artifact.suffix}")
    with pytest.raises(ValueError, match="constant 3"):
        artifact(*first.args, k=4)
    with pytest.raises(TypeError, match="exported for arguments like"):
        artifact(first.args[0])
    assert capfd.readouterr().out == ""


class Count(nn.Module):
    """Changes a buffer."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("n", torch.zeros(()))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        self.n.add_(1)
        return x + self.n


def test_executorch_keeps_its_state_until_it_is_fresh() -> None:
    x = torch.zeros(2)
    artifact = exported("executorch", Count(), Sample((x,)))
    assert [artifact(x)[0].item() for _ in range(2)] == [1, 2]
    assert artifact.fresh()(x)[0].item() == 1


def compiled_by_openvino(source: Any) -> Any:
    """What OpenVINO makes of a file or a program, in float32."""
    pytest.importorskip("openvino")
    converted = openvino().convert_model(source)
    return openvino().Core().compile_model(converted, "CPU", {"INFERENCE_PRECISION_HINT": "f32"})


def test_openvino_converts_a_program_of_torch_export_too() -> None:
    model = nn.Sequential(nn.Linear(3, 5), nn.GELU()).eval()
    program = torch.export.export(model, (torch.randn(4, 3),), dynamic_shapes=({0: torch.export.Dim.DYNAMIC},))
    compiled = compiled_by_openvino(program)
    for rows in (4, 7, 1):
        x = torch.randn(rows, 3)
        torch.testing.assert_close(torch.from_numpy(compiled(x.numpy())[0]), model(x).detach())


def test_openvino_runs_an_operator_of_onnxruntime(tmp_path: Path) -> None:
    path = tmp_path / "bias_gelu.onnx"
    domains = (onnx.helper.make_opsetid("", 20), onnx.helper.make_opsetid("com.microsoft", 1))
    graph = onnx.parser.parse_graph("g (float[2, 8] x, float[8] b) => (float[2, 8] y) { y = com.microsoft.BiasGelu(x, b) }")
    onnx.save(onnx.helper.make_model(graph, opset_imports=domains, ir_version=10), path)
    given = {"x": torch.randn(2, 8).numpy(), "b": torch.randn(8).numpy()}
    (expected,) = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"]).run(None, given)
    torch.testing.assert_close(compiled_by_openvino(path)(given)[0], expected)


def test_openvino_refuses_what_it_would_forget() -> None:
    with pytest.raises(Exception, match="the model changes n") as raised:
        exported("openvino", Count(), Sample((torch.zeros(2),)))
    assert exporters.get("openvino").stage(raised.value) == "convert"


def test_an_error_of_openvino_begins_with_what_is_the_matter() -> None:
    told = (
        "Exception from src/inference/src/cpp/core.cpp:117:\nCheck 'same' failed at src/snippets/pass.cpp:34:\nAll are to be the same\n\n"
    )
    with (
        pytest.raises(RuntimeError, match=r"^Check 'same' failed at src/snippets/pass.cpp:34: All are to be the same$"),
        told_by_openvino(),
    ):
        raise RuntimeError(told)


def test_aoti_on_one_layer() -> None:
    first = Sample((torch.randn(4, 3),))
    layer = nn.Linear(3, 2)
    artifact = exported("aoti", layer, first, ({0: "batch"},))
    verify(artifact, layer, [first, Sample((torch.randn(7, 3),))]).check()
    assert artifact.stats().bytes > 1000


class OnValue(nn.Module):
    """What no capture takes."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return [x, x * 2][int(x.sum()) % 2]


@pytest.mark.parametrize("name", NAMES)
def test_a_refusal_of_the_capture_is_one(name: str) -> None:
    with pytest.raises(Exception) as raised:  # noqa: PT011 - the type is the exporter's affair
        exported(name, OnValue(), Sample((torch.ones(3),)))
    assert exporters.get(name).stage(raised.value) == "capture"
    assert exporters.get(name).stage(RuntimeError("later")) == "convert"


@pytest.mark.parametrize("name", PACKAGES)
def test_without_its_package_it_says_so(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, PACKAGES[name], None)
    with pytest.raises(ValueError, match=f"exporter {name} cannot run here: {PACKAGES[name]} is not installed: pip install"):
        exporters.get(name)


def test_without_a_compiler_aoti_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    from torch._inductor import config, cpp_builder

    cpp_builder.cpp_compiler_search.cache_clear()
    monkeypatch.setattr(config.cpp, "cxx", ("no-such-compiler",))
    with pytest.raises(ValueError, match=r"exporter aoti cannot run here: no C\+\+ compiler found"):
        exporters.get("aoti")


def test_they_are_offered_but_not_compared_and_imported_late() -> None:
    assert set(NAMES) <= set(exporters.available())
    assert not set(NAMES) & set(comparison.EXPORTERS)
    late = set(PACKAGES.values()) | {"torch._inductor.cpp_builder"}
    code = f"import sys, exportlab; sys.exit(', '.join({late} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False).stderr.strip() == ""
