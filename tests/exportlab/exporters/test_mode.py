"""`export` follows one rule for every exporter: training mode is exported as eval() and said so, by `train=True` as it is."""

from __future__ import annotations

import warnings

import pytest
import torch
from torch import nn

from exportlab import export, verify

X = torch.randn(4, 3)


def trained() -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(3, 3), nn.BatchNorm1d(3), nn.Dropout(0.5))


@pytest.mark.parametrize("exporter", ["torch.export", "to_onnx", "dynamo", "torchscript"])
def test_training_mode_is_exported_as_evaluation_and_said_so(exporter: str) -> None:
    model = trained()
    with pytest.warns(UserWarning, match=r"^the model was in training mode; exported as eval\(\): pass train=True to keep training mode"):
        artifact = export(exporter, model, (X,))
    assert model.training
    verify(artifact, model.eval(), [(X,)]).check()


def test_asked_for_it_is_exported_as_it_is() -> None:
    artifact = export("dynamo", trained(), (X,), train=True)
    assert artifact.ops()["Dropout"] == 1


def test_nothing_is_said_of_a_model_that_is_the_same_in_both_modes() -> None:
    with warnings.catch_warnings():
        warnings.filterwarnings("error", message="the model was in training mode")
        export("to_onnx", nn.Linear(3, 3), (X,))
