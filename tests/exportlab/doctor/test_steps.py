"""The steps of the doctor by themselves: what eager leaves behind, how long a step may take, which line a refusal names."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

import fx2onnx
from exportlab import doctor
from exportlab.cases import Sample
from exportlab.doctor import run, trial
from exportlab.doctor.events import LeftOut, Trial
from exportlab.doctor.facts import Facts
from exportlab.doctor.failures import sentence
from exportlab.doctor.findings import findings_of, suspects
from exportlab.doctor.lines import find_note_with_line, source_line
from exportlab.doctor.run import Examination, Options
from exportlab.doctor.steps import run_eagerly
from exportlab.doctor.subject import patient_of, summary_of
from exportlab.doctor.workarounds import WORKAROUNDS
from exportlab.isolation import PACKAGE, Failure, failure_of
from exportlab.outcomes import Outcome
from exportlab.verification.report import Check


class Cached(nn.Module):
    """Puts a longer cache into the dictionary that it is given, and writes into a tensor that it is given."""

    def __init__(self, *returned: str) -> None:
        super().__init__()
        self.returned = returned

    def forward(self, x: torch.Tensor, cache: dict[str, torch.Tensor], seen: torch.Tensor) -> list[torch.Tensor]:
        cache["keys"] = torch.cat([cache["keys"], x])
        seen[0] = x[0]
        return [x + 1, *(value for name, value in (("cache", cache["keys"]), ("seen", seen)) if name in self.returned)]


@pytest.mark.parametrize(("returned", "changes"), [((), ("cache", "seen")), (("cache",), ("seen",)), (("cache", "seen"), ())])
def test_what_is_returned_is_not_forgotten(returned: Sequence[str], changes: Sequence[str]) -> None:
    sample = Sample((torch.ones(2, 3), {"keys": torch.zeros(4, 3)}, torch.zeros(2, 3)), {})
    assert run_eagerly(patient_of(Cached(*returned), [sample])).changes == changes


class Force(nn.Module):
    """Computes the gradient of its own result."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        with torch.enable_grad():
            x = x.detach().requires_grad_()
            return torch.autograd.grad((x**2).sum(), x)[0]


def test_what_writes_into_nothing_may_compute_gradients() -> None:
    from exportlab.doctor.steps import _written_into

    assert _written_into(Force(), Sample((torch.ones(2, 3),), {})) == ()


def test_compiled_parts_run_as_they_were_written() -> None:
    def fails(module: Any, inputs: Any) -> Any:
        raise AssertionError("it was compiled")

    model = nn.Sequential(torch.compile(nn.Linear(3, 3), backend=fails), nn.ReLU())
    assert not run_eagerly(patient_of(model, [Sample((torch.ones(2, 3),), {})])).random


class Noted(Exception):
    """A refusal as `to_onnx` raises it, known by the name of its base class."""


class ToOnnxError(Noted):
    """So that its name is among the types of the failure."""


class FrozenDimension(ToOnnxError):
    """Likewise."""


HERE = Path(__file__)
FIRST, SECOND = 20, 30  # two lines of this file


def refused(note: str = "") -> Failure:
    error = FrozenDimension(
        f'"h" was asked to be dynamic but is the constant 6 after {HERE}:{FIRST} in forward. Accept it: accept_ranges=("h",).'
    )
    if note:
        error.add_note(note)
    return failure_of(error)


NOTE = f"capture by running the model also fails: CannotRun: the model writes into a constant at {HERE}:{SECOND} in forward"


def test_the_line_is_that_of_the_first_refusal() -> None:
    facts = Facts("", summary=summary_of(patient_of(nn.Linear(3, 2), [(torch.ones(2, 3),)])))
    facts.tried.append(Trial("to_onnx", "to_onnx", Outcome.CAPTURE, refused(NOTE)))
    (finding,) = findings_of(facts)
    assert finding.place == source_line(str(HERE), SECOND)
    assert finding.defect.startswith("CannotRun: the model writes into a constant at ")
    assert "A capture with torch.export also fails" in finding.defect
    assert finding.fix == ""  # what is said of the other refusal is no advice for this line
    assert {place.line for place in suspects(facts)} >= {FIRST, SECOND}


def test_a_refusal_that_names_its_own_line_keeps_it() -> None:
    error = FrozenDimension(
        f'"h" was asked to be dynamic but only h > 6 is exported: the test at {HERE}:{FIRST} in forward chose one branch.'
    )
    error.add_note(NOTE)
    assert find_note_with_line(failure_of(error)) == ("", None)
    tried = f"capture by running the model also fails: CannotRun: the model runs at 0 of the other sizes tried (at {HERE}:{SECOND})"
    assert find_note_with_line(refused(tried)) == ("", None)


def test_a_note_that_names_no_line_is_left_alone() -> None:
    assert find_note_with_line(refused("capture by running the model also fails: an argument is a class")) == ("", None)
    assert sentence(refused()).startswith('"h" was asked to be dynamic')


def test_a_size_that_became_a_constant_gets_no_advice_for_a_branch() -> None:
    check = Check("unseen size", "f32[4, 3]", Outcome.FROZEN, detail="output: shape [4] where eager has [5]")
    facts = Facts("", summary=summary_of(patient_of(nn.Linear(3, 2), [(torch.ones(2, 3),)])), refusal=refused())
    facts.tried.append(Trial("dynamo", "dynamo", Outcome.FROZEN, checks=(check,)))
    (finding,) = findings_of(facts)
    assert "x.shape[0] in place of the number" in finding.fix
    assert "torch.cond" not in finding.fix


def test_strict_is_tried_where_a_size_became_a_constant() -> None:
    strict = next(workaround for workaround in WORKAROUNDS if workaround.label == "to_onnx, strict=True")
    patient = patient_of(nn.Linear(3, 2), [(torch.ones(2, 3),)])
    assert strict.fits(patient, [Trial("to_onnx", "to_onnx", Outcome.CAPTURE, refused())])
    assert not strict.fits(patient, [Trial("to_onnx", "to_onnx", Outcome.CONVERT, refused())])


@pytest.fixture
def examination(tmp_path: Path) -> Examination:
    return Examination(patient_of(nn.Linear(3, 2), [(torch.ones(2, 3),)]), Options(seconds=100), tmp_path)


@pytest.mark.parametrize(("last", "save", "seconds"), [(False, None, 20), (True, None, 100), (True, Path("model.onnx"), 80)])
def test_the_last_search_may_take_the_time_that_is_left(
    examination: Examination, monkeypatch: pytest.MonkeyPatch, last: bool, save: Path | None, seconds: float
) -> None:
    given: list[float] = []

    def watched(call: Any, *, seconds: float, memory: int) -> Iterator[Any]:
        given.append(seconds)
        return iter(())

    monkeypatch.setattr(run, "events", watched)
    examination.options = Options(seconds=100, save=save)
    list(examination._in_child(lambda tell: None, last))
    assert given == [pytest.approx(seconds, abs=5)]


def test_a_step_that_took_too_long_is_not_said_to_have_had_no_time(examination: Examination) -> None:
    event = examination._not_mended(Failure("timeout", "TimeLimit: not done after 48 s"))
    assert event == LeftOut("changes of your code", "not done after 48 s")
    examination.facts.keep(event)
    assert examination.facts.left_out == ["changes of your code (not done after 48 s)"]
    assert examination._not_mended(run.NO_TIME) == LeftOut("changes of your code", "no time was left")


def stumble(*_: Any) -> Any:
    """Look up a missing name, as if in a file of exportlab."""
    known: dict[str, Any] = {"torch": torch}
    exec(compile("def mistake():\n    return torch.no_such_function", f"{PACKAGE}verification/difference.py", "exec"), known)
    return known["mistake"]()


def test_a_mistake_of_ours_is_no_defect_of_the_model(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trial, "run_verify_step", stumble)
    found = doctor(nn.Linear(3, 2), (torch.ones(2, 3),), exporters=["to_onnx"])
    assert [finding.stage for finding in found.findings] == ["doctor"]
    assert [finding.place for finding in found.findings] == [None]
    assert found.verdict.line == "no correct export: to_onnx was not examined"
    assert "internal error in exportlab: AttributeError: module 'torch' has no attribute 'no_such_function'" in " ".join(str(found).split())


def test_a_mistake_of_to_onnx_names_no_line_of_the_model(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fx2onnx, "apply_passes", stumble)
    found = doctor(nn.Linear(3, 2), (torch.ones(2, 3),), exporters=["to_onnx"])
    assert [(finding.stage, finding.place) for finding in found.findings] == [("internal", None)]
    assert "to_onnx has an internal error" in str(found)
    assert "This is a defect of to_onnx and not of your model" in " ".join(str(found).split())


def test_a_mistake_of_ours_in_eager_is_no_unusable_input(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run, "run_eagerly", stumble)
    found = doctor(nn.Linear(3, 2), (torch.ones(2, 3),), exporters=["to_onnx"])
    assert found.verdict.line.startswith("internal error in exportlab, which is not a defect of your model: AttributeError")
