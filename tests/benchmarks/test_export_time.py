"""The benchmark's script from its first line to its last, on exporters that take no time."""

from __future__ import annotations

import runpy
import socket
import sys
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pyperf
import pytest
import torch
from torch import nn

from exportlab.exporters import Artifact, Interface

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "export_time.py"


class Same(Artifact):
    """Answers as the module does, or off by something."""

    exporter = "same"

    def __init__(self, module: nn.Module, off: float) -> None:
        self.module, self.off, self.asked = module, off, Interface()

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self.module(*args, **kwargs) + self.off

    def save(self, path: str | Path) -> Path:
        return Path(path)

    def ops(self) -> Counter[str]:
        return Counter()


@dataclass
class Instant:
    """An exporter that gives back the module."""

    name: str
    off: float = 0.0

    def missing(self) -> str | None:
        return None

    def stage(self, error: Exception) -> str:
        return "capture"

    def export(self, module: nn.Module, args: tuple[Any, ...] = (), kwargs: Any = None, *, dynamic_shapes: Any = None) -> Same:
        return Same(module, self.off)


@pytest.fixture
def one_thread() -> Iterator[None]:
    """So small a model is not worth a second thread, least of all beside other tests."""
    threads = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(threads)


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, one_thread: None) -> Callable[..., dict[str, Any]]:
    """Runs the script on exporters that have the names of the real ones."""
    import matplotlib

    matplotlib.use("agg")

    def run(*arguments: str, off: float = 0.0, notebook: bool = False) -> dict[str, Any]:
        others = (Instant("torch.export"), Instant("to_onnx"), Instant("torchscript", off=1.0))
        monkeypatch.setattr("exportlab.exporters.BUILT_IN", (*others, Instant("dynamo", off)))
        if not notebook:
            monkeypatch.delitem(sys.modules, "ipykernel", raising=False)
        monkeypatch.setattr(sys, "argv", [str(SCRIPT), *arguments])
        return runpy.run_path(str(SCRIPT), run_name="__main__")

    return run


def test_a_quick_run_answers_draws_and_writes(run: Callable, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run("--quick", "--json", str(tmp_path / "a.json"), "--plot", str(tmp_path / "a.png"))

    names = pyperf.BenchmarkSuite.load(str(tmp_path / "a.json")).get_benchmark_names()
    timed = ("torch.export", "to_onnx", "dynamo")  # what is wrong is not timed
    assert names[:12] == [f"{model}, depth {n}, {name}" for model in ("MLP", "transformer") for n in (1, 4) for name in timed]
    assert "parts of dynamo, decomposition" in names
    assert "parts of to_onnx, capture" in names
    assert (tmp_path / "a.png").stat().st_size > 10_000

    said = capsys.readouterr().out
    assert "For each further layer of a small transformer, torch.onnx.export needs " in said
    assert "This run was quick, 3 rounds." in said
    assert "of torch.onnx.export's time (medians)" in " ".join(said.split())
    for secret in (socket.gethostname(), str(tmp_path), str(SCRIPT.parent)):
        assert secret not in said + (tmp_path / "a.json").read_text(encoding="utf-8")


def test_the_run_ends_when_an_official_exporter_is_wrong(run: Callable) -> None:
    with pytest.raises(AssertionError):
        run("--quick", off=1.0)


def test_a_notebook_may_have_any_arguments(run: Callable, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ipykernel", sys)
    with pytest.raises(AssertionError):  # no longer a SystemExit: the arguments were taken
        run("-f", "kernel.json", notebook=True, off=1.0)


@pytest.mark.parametrize("wrong", [("--quik",), ("--json", "no/such/folder/a.json"), ("--json", "."), ("--plot", "a.xyz")])
def test_a_wrong_argument_is_said_before_anything_is_measured(run: Callable, wrong: tuple[str, ...]) -> None:
    with pytest.raises(SystemExit):
        run(*wrong)
