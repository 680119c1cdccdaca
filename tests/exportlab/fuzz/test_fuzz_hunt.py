"""A hunt finds an exporter that is broken on purpose, and shrinks what it found to one step."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from exportlab.exporters import Artifact, get
from exportlab.fuzz import Hunt, Program
from exportlab.fuzz.finding import Finding, write_all
from exportlab.fuzz.program import Step, inputs
from exportlab.fuzz.steps import WRITTEN
from exportlab.fuzz.trial import Trial, runs
from exportlab.outcomes import Outcome


class Flipless:
    """torch.export, but what it exports forgets every flip."""

    name = "flipless"

    def missing(self) -> str | None:
        return None

    def stage(self, error: Exception) -> Outcome:
        return get("torch.export").stage(error)

    def export(self, module: nn.Module, args: Any = (), kwargs: Any = None, *, dynamic_shapes: Any = None, **options: Any) -> Artifact:
        flip = torch.Tensor.flip
        torch.Tensor.flip = lambda x, *dims: x * 1  # type: ignore[method-assign]
        try:
            return get("torch.export").export(module, args, kwargs, dynamic_shapes=dynamic_shapes, **options)
        finally:
            torch.Tensor.flip = flip  # type: ignore[method-assign]


@pytest.fixture
def few_steps(monkeypatch: pytest.MonkeyPatch) -> None:
    from hypothesis import strategies as st

    few = st.builds(Step, st.sampled_from(["flip", "relu", "add"]), st.integers(1, 3))
    made = st.lists(few, min_size=1, max_size=4).map(lambda steps: Program(tuple(steps)))
    monkeypatch.setattr("exportlab.fuzz.hunt.programs", lambda: made)


@pytest.mark.parametrize("name", WRITTEN)
def test_every_step_runs_in_eager(name: str) -> None:
    assert runs(Program((Step(name, 1),)))


@pytest.mark.usefixtures("few_steps")
def test_a_broken_exporter_is_found_and_shrunk_to_one_step(tmp_path: Path) -> None:
    hunt = Hunt([Flipless()], seed=1)
    hunt.told = lambda hunt: setattr(hunt, "_until", 0.0) if hunt.findings else None
    hunt.run(60)
    assert [[step.name for step in found.program.steps] for found in hunt.findings] == [["flip"]]
    write_all(hunt.findings, tmp_path)
    assert json.loads((tmp_path / "findings.jsonl").read_text())["steps"] == [["flip", 1]]
    assert "x = x.flip(0)" in (tmp_path / "flipless_flip.py").read_text()


def test_a_program_is_the_script_that_it_prints() -> None:
    program = Program((Step("add", 2), Step("flip", 1)))
    assert "x = x + 2\n        x = x.flip(0)" in program.source
    x, y = inputs(5, 5)
    assert torch.equal(program.module()(x, y), (x + 2).flip(0))


@pytest.mark.parametrize("exporter", ["torch.export", "to_onnx", "dynamo", "torchscript"])
def test_a_script_runs_and_says_whether_the_export_is_off(exporter: str, tmp_path: Path) -> None:
    found = Finding(Program((Step("concatenate", 1),)), Trial(exporter, Outcome.WRONG, "off"))
    write_all([found], tmp_path)
    script = tmp_path / f"{found.name}.py"
    assert subprocess.run([sys.executable, script], cwd=tmp_path, check=False).returncode == 0
    script.write_text(
        script.read_text().replace("expected = call(*given), program(*given)", "expected = call(*given), program(*given) + 1")
    )
    assert subprocess.run([sys.executable, script], cwd=tmp_path, check=False).returncode == 1
