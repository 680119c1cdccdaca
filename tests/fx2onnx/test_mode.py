"""What is given in training mode is exported as eval(), with a warning, and stays as it was; by PRESERVE it is exported as it is."""

from __future__ import annotations

import threading

import pytest
import torch
from torch import nn
from torch.onnx import TrainingMode

from fx2onnx import to_onnx
from fx2onnx.errors import MutationError, UnsupportedArgument
from fx2onnx.mode import is_in_training

X = torch.randn(4, 3)


class ByMode(nn.Module):
    """Reads its mode in a function of its own."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return (lambda: x * 2 if self.training else x * 3)()


class Merging(nn.Module):
    """Does something when its mode changes."""

    def train(self, mode: bool = True) -> nn.Module:
        return super().train(mode)


def trained() -> nn.Module:
    torch.manual_seed(0)
    return nn.Sequential(nn.Linear(3, 3), nn.BatchNorm1d(3), nn.Dropout(0.5))


def test_training_mode_is_exported_as_evaluation_and_said_so() -> None:
    model = trained()
    with pytest.warns(UserWarning, match=r"^the model was in training mode; exported as eval\(\): pass training=TrainingMode.PRESERVE"):
        program = to_onnx(model, (X,), verify=False)
    assert all(module.training for module in model.modules())
    torch.testing.assert_close(program(X)[0], model.eval()(X))


def test_asked_for_it_is_exported_as_it_is() -> None:
    for training in (TrainingMode.PRESERVE, TrainingMode.TRAINING):
        with pytest.raises(MutationError, match=r"changes 1\.running_mean"):
            to_onnx(trained(), (X,), training=training)


def test_a_part_in_training_mode_is_enough() -> None:
    model = trained().eval()
    model[2].train()
    with pytest.warns(UserWarning, match="in training mode"):
        to_onnx(model, (X,))
    assert [module.training for module in model] == [False, False, True]


@pytest.mark.parametrize(
    ("model", "heeds"),
    [
        (ByMode(), True),
        (Merging(), True),
        (nn.Dropout(0.1), True),
        (nn.LSTM(3, 3, 2, dropout=0.1), True),
        (nn.Linear(3, 3), False),
        (nn.Dropout(0.0), False),
        (nn.LSTM(3, 3), False),
        (nn.MultiheadAttention(4, 2), False),
        (nn.TransformerEncoderLayer(4, 2, dropout=0.0), False),
        (nn.Sequential(nn.Linear(3, 3), nn.Dropout(0.1)).eval(), False),
        (torch.export.export(nn.Linear(3, 3), (X,)).module(), False),
    ],
    ids=lambda value: type(value).__name__,
)
def test_it_counts_where_it_makes_a_difference(model: nn.Module, heeds: bool) -> None:
    assert is_in_training(model) is heeds


def test_a_model_that_cannot_be_copied_is_refused() -> None:
    model = ByMode()
    model.lock = threading.Lock()
    with pytest.raises(UnsupportedArgument, match=r"cannot be copied: call model\.eval\(\)"):
        to_onnx(model, (X,))
