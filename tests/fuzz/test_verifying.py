"""Hostile arguments of what compares, verifies and examines."""

from __future__ import annotations

import sys
from typing import Any

import pytest
import torch
from hostile import Draws, X, in_folder, made, modules, mostly, tensors
from hypothesis import given
from hypothesis import strategies as st
from promise import OfModel, parts_of, promised
from torch import nn

from exportlab import Sample, compare, doctor, export, to_onnx, verify
from exportlab.doctor import run
from exportlab.verification.divergence import compared, first_difference

LINEAR = made("linear")
PROGRAM = to_onnx(LINEAR, (X,))
ARTIFACT = export("to_onnx", LINEAR, (X,))
CAPTURED = torch.export.export(LINEAR, (X,))

models = st.one_of(st.just(LINEAR), st.just(LINEAR), modules)
steady = models.filter(lambda module: not any(isinstance(part, (Draws, nn.Dropout)) for part in parts_of(module)))  # it is called as it is
args = st.one_of(st.just((X,)), st.tuples(tensors))
samples = st.one_of(args, st.lists(args, max_size=2), st.just([((), {"input": X}), Sample((X,))]))
tolerances = st.sampled_from([None, {}, {torch.float32: (1e-3, 1e-5)}])
exporters = st.lists(st.sampled_from(["torch.export", "to_onnx"]), max_size=1)
shapes = st.sampled_from([None, ({0: "batch"},)])


@given(mostly(exported=st.sampled_from([PROGRAM, ARTIFACT, CAPTURED]), module=steady, samples=samples, tolerances=tolerances))
def test_verify(given: dict[str, Any]) -> None:
    promised(lambda: str(verify(**given)), module=given["module"])


@given(mostly(module=steady, samples=samples, dynamic_shapes=shapes, exporters=exporters, options=st.none()))
def test_compare(given: dict[str, Any]) -> None:
    promised(
        lambda: str(compare(**given)), module=given["module"], passes=(OfModel, RecursionError, RuntimeError)
    )  # torch's own, of a module that cannot be copied


@given(mostly(program=st.sampled_from([PROGRAM, ARTIFACT]), given=args, tolerances=st.just({})))
def test_first_difference(given: dict[str, Any]) -> None:
    program, positional = given["program"], given["given"] if isinstance(given["given"], tuple) else (given["given"],)
    promised(lambda: str(first_difference(program, *positional, tolerances=given["tolerances"])))


@given(
    mostly(
        captured=st.just(CAPTURED),
        file=st.sampled_from([PROGRAM, PROGRAM.model_proto]),
        args=args,
        kwargs=st.none(),
        tolerances=st.just({}),
    )
)
def test_compared(given: dict[str, Any]) -> None:
    promised(lambda: str(compared(**given)))


@pytest.fixture
def looked_at_only(monkeypatch: pytest.MonkeyPatch) -> None:
    """The examination itself is made of processes; here it ends with what is known before it."""
    events = run.Examination.events
    monkeypatch.setattr(sys.modules["exportlab.doctor"], "warm_up", lambda exporters: None)
    monkeypatch.setattr(run.Examination, "events", lambda self: iter([next(events(self))]))


@pytest.mark.usefixtures("looked_at_only")
@given(
    mostly(
        model=models,
        samples=samples,
        dynamic_shapes=shapes,
        exporters=exporters,
        seconds=st.just(30),
        memory=st.just(4),
        save=st.none(),
        train=st.booleans(),
        tell=st.just(print),
    )
)
def test_doctor(given: dict[str, Any]) -> None:
    samples = given.pop("samples")
    with in_folder() as folder:
        promised(lambda: str(doctor(given.pop("model"), samples, **given)), module=given["model"], writes=folder)
