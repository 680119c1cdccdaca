"""`verify` sees a branch that a trace burnt in, from one sample; and says nothing where there is none."""

from __future__ import annotations

from typing import Any

import pytest
from planted_branches import Planted, planted, sound
from torch import nn

from exportlab import verify
from exportlab.exporters import export
from exportlab.messages import muffled
from exportlab.verification.verify import Report

PLANTED, SOUND = planted(), sound()


def traced_and_verified(module: nn.Module, sample: tuple[Any, ...], samples: tuple[tuple[Any, ...], ...] = ()) -> Report:
    """The report on what the tracing exporter makes of one call."""
    with muffled():
        artifact = export("torchscript", module, sample)
        return verify(artifact, module, [sample, *samples])


def seen(report: Report) -> str:
    return "\n".join(f"{check.name} ({check.inputs}): {check.outcome} {check.detail}" for check in report.failed)


@pytest.mark.parametrize("model", PLANTED, ids=lambda model: model.name)
def test_one_natural_sample_shows_the_branch(model: Planted) -> None:
    assert traced_and_verified(model.module, model.sample).outcome == "wrong"


@pytest.mark.parametrize("model", [model for model in PLANTED if model.other], ids=lambda model: model.name)
def test_so_does_one_of_the_other_side(model: Planted) -> None:
    assert model.other
    assert traced_and_verified(model.module, model.other).outcome == "wrong"


@pytest.mark.parametrize("model", SOUND, ids=lambda model: f"{model.name}-{SOUND.index(model)}")
def test_a_sound_model_is_ok(model: Planted) -> None:
    report = traced_and_verified(model.module, model.sample)
    assert report.outcome == "ok", seen(report)
