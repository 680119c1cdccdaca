"""Steps of every kind: operators of torch's database, layers, parts of the zoo, and programs in which two axes move."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import torch
from torch import nn

from exportlab.exporters.to_onnx import ToOnnxError
from exportlab.fuzz import Program, database
from exportlab.fuzz.finding import Finding, write_all
from exportlab.fuzz.form import Form
from exportlab.fuzz.hunt import programs
from exportlab.fuzz.program import MOVING, WIDE, Step
from exportlab.fuzz.steps import LAYERS, forms
from exportlab.fuzz.trial import Trial, run_trial, runs
from exportlab.outcomes import Outcome

ASKED = {"nn.functional.gelu", "cumsum", "std_mean", "nn.functional.avg_pool1d", "topk", "acosh", "masked_select"}
NOT_STEPS = {"bernoulli", "randn_like", "fft.fft", "linalg.eigh"}  # random, complex, or of any sign


@pytest.fixture(scope="module")
def operators() -> Iterator[dict[str, Form]]:
    described = [(name, op) for name, op in database._iterate_operators() if name in ASKED | NOT_STEPS]
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(database, "_iterate_operators", lambda: iter(described))
        forms.cache_clear()
        yield database.operators()
    forms.cache_clear()


def test_operators_of_the_database_are_steps_that_run(operators: dict[str, Form]) -> None:
    assert {name.removeprefix("op_db ").partition("#")[0] for name in operators} == ASKED
    ran = {name for name in operators if runs(Program((Step(name, 1),)))}
    assert {name.removeprefix("op_db ").partition("#")[0] for name in ran} == ASKED


def test_an_operator_gets_what_fits_its_result_to_a_program(operators: dict[str, Form]) -> None:
    sources = [form.source for form in operators.values()]
    assert "torch.acosh(x[None]).nan_to_num(0.5, 9.0, -9.0).reshape(-1, {n})" in sources
    assert any(source.startswith("x + torch.std_mean(x") and "[0]" in source for source in sources)
    assert any(source.startswith("x + torch.masked_select(") and source.endswith(".sum()") for source in sources)


def test_programs_of_one_seed_hold_every_kind_of_step_and_of_moving_axes(operators: dict[str, Form]) -> None:
    from hypothesis import Phase, given, seed, settings

    seen: list[Program] = []

    @seed(1)
    @settings(max_examples=200, database=None, phases=(Phase.generate,))
    @given(programs())
    def looked(program: Program) -> None:
        seen.append(program)

    looked()
    names = {name for program in seen for name in program.names}
    assert {program.moving for program in seen} == set(MOVING)
    assert names & set(LAYERS)
    assert names & set(operators)
    assert any(name.startswith("zoo ") for name in names)
    assert not any(step.made for program in seen if program.moving == WIDE for step in program.steps)


@pytest.mark.parametrize("moving", MOVING)
def test_axes_move_one_by_one(moving: str) -> None:
    program = Program((Step("concatenate", 1), Step("stack", 2)), moving)
    given = [tuple(x.shape for x in sample.args) for sample in program.samples()]
    for i, axes in enumerate(program.shapes):
        assert {axis for axis in (0, 1) if len({shapes[i][axis] for shapes in given}) > 1} == set(axes)
    assert runs(program)
    assert ("y.shape[1]" in program.source) == (moving == WIDE)


def test_a_layer_has_the_same_weights_each_time() -> None:
    program = Program((Step("GRU", 1), Step("zoo mlp", 1)))
    x, y = program.samples()[0].args
    assert torch.equal(program.module()(x, y), program.module()(x, y))
    assert "self.layer2 = registered_case('mlp').module()" in program.source


def test_a_script_shows_what_only_other_values_show(tmp_path: Path) -> None:
    found = Finding(Program((Step("logcumsumexp", 1),)), Trial("dynamo", Outcome.WRONG, "off", values="scaled up"))
    write_all([found], tmp_path)
    assert subprocess.run([sys.executable, tmp_path / f"{found.name}.py"], cwd=tmp_path, check=False).returncode == 1


class Stumbles:
    """An exporter that raises."""

    name = "to_onnx"

    def __init__(self, error: Exception) -> None:
        self.error = error

    def missing(self) -> str | None:
        return None

    def stage(self, error: Exception) -> Outcome:
        return Outcome.CONVERT

    def export(self, module: nn.Module, *args: object, **kwargs: object) -> None:
        raise self.error


@pytest.mark.parametrize(("error", "found"), [(KeyError("x"), True), (ToOnnxError("no"), False)])
def test_an_internal_error_of_ours_is_found_and_a_refusal_is_not(error: Exception, found: bool) -> None:
    trial = run_trial(Program((Step("add", 1),)), Stumbles(error))  # type: ignore[arg-type]
    assert trial.outcome is Outcome.CONVERT
    assert trial.found is found
