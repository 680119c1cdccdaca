"""Eager on copies: without gradients, but a model that computes some by itself still can; what cannot be copied is no fault of eager's."""

from __future__ import annotations

import threading

import pytest
import torch
from test_copies import normed
from torch import Tensor, nn

from exportlab import Sample, export, verify
from exportlab.eager import called_once, fresh
from exportlab.outcomes import Outcome

X = torch.randn(4, 3, generator=torch.Generator().manual_seed(0))


class Forces(nn.Module):
    """The energy of a potential, and its gradient: the forces."""

    def __init__(self) -> None:
        super().__init__()
        self.energy = nn.Sequential(nn.Linear(3, 8), nn.Tanh(), nn.Linear(8, 1))

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        with torch.enable_grad():
            places = x.detach().requires_grad_(True)
            energy = self.energy(places).sum()
            (slope,) = torch.autograd.grad(energy, places)
        return energy, -slope


class Locked(nn.Module):
    """Holds what cannot be copied."""

    def __init__(self) -> None:
        super().__init__()
        self.lock = threading.Lock()

    def forward(self, x: Tensor) -> Tensor:
        return x + 1


def test_a_model_that_computes_gradients_is_run_and_verified() -> None:
    module = Forces().eval()
    assert not any(tensor.requires_grad for tensor in called_once(module, Sample((X,))))
    report = verify(export("to_onnx", module, (X,), dynamic_shapes=({0: "atoms"},)), module, [(X,), (X[:2],)])
    assert report.outcome is Outcome.OK
    assert not any(check.refused for check in report.checks)


def test_a_normed_layer_is_verified_after_a_forward_with_gradients() -> None:
    module = normed()
    report = verify(export("to_onnx", module, (X,)), module, (X,))
    assert report.outcome is Outcome.OK
    assert not any(check.refused for check in report.checks)


def test_a_module_that_cannot_be_copied_is_an_error_and_not_a_refusal_of_eager() -> None:
    with pytest.raises(TypeError, match=r"Locked\.lock cannot be copied"):
        fresh(Locked())
    with pytest.raises(TypeError, match=r"Locked\.lock cannot be copied"):
        verify(export("torch.export", nn.Identity(), (X,)), Locked(), (X,))
