"""Batch norms that train with `momentum=None`: the state of a file is that of eager, call after call, at batches the export never saw."""

from __future__ import annotations

import copy

import pytest
import torch
from torch import Tensor, nn

from fx2onnx import to_onnx
from fx2onnx.errors import MutationError
from fx2onnx.program import Program

KEPT = torch.onnx.TrainingMode.PRESERVE
NORMS = {
    "1d": (nn.BatchNorm1d(3, momentum=None), (3,)),
    "2d": (nn.BatchNorm2d(3, momentum=None), (3, 4, 5)),
    "3d, without weights": (nn.BatchNorm3d(3, momentum=None, affine=False), (3, 2, 2, 2)),
    "two": (nn.Sequential(nn.BatchNorm1d(3, momentum=None), nn.Linear(3, 3), nn.BatchNorm1d(3, momentum=None)), (3,)),
}


def numbers(batch: int, sizes: tuple[int, ...]) -> Tensor:
    return torch.randn(batch, *sizes, generator=torch.Generator().manual_seed(batch)) * 3 + 1


def exported(module: nn.Module, sizes: tuple[int, ...], mutations: str = "outputs") -> Program:
    return to_onnx(module, (numbers(4, sizes),), dynamic_shapes=({0: "batch"},), mutations=mutations, training=KEPT)


@pytest.mark.parametrize("name", NORMS)
def test_the_state_follows_eager_call_after_call(name: str) -> None:
    module, sizes = NORMS[name]
    eager = copy.deepcopy(module).train()
    eager(numbers(5, sizes))  # so that the count does not begin at 0
    program = exported(copy.deepcopy(eager), sizes)
    changed = program.report.mutations
    state = [eager.state_dict()[key].clone() for key in changed]
    for batch in (4, 9, 2, 3):
        y, *state = program(numbers(batch, sizes), *state)
        torch.testing.assert_close(y, eager(numbers(batch, sizes)), rtol=1e-4, atol=1e-5)
        for key, value in zip(changed, state, strict=True):
            torch.testing.assert_close(value, eager.state_dict()[key], rtol=1e-5, atol=1e-6)
    assert int(state[-1]) == 5


def test_without_being_asked_for_state_is_refused_and_the_model_is_as_before() -> None:
    module, sizes = NORMS["2d"]
    forward = nn.BatchNorm2d.forward
    with pytest.raises(MutationError, match=r"running_mean, running_var, num_batches_tracked.*mutations=\"outputs\""):
        exported(module.train(), sizes, "error")
    assert int(module.num_batches_tracked) == 0
    assert nn.BatchNorm2d.forward is forward


def test_in_evaluation_it_is_the_norm_of_its_averages() -> None:
    module, sizes = copy.deepcopy(NORMS["2d"][0]).eval(), NORMS["2d"][1]
    module.running_mean += 2
    torch.testing.assert_close(exported(module, sizes)(numbers(7, sizes))[0], module(numbers(7, sizes)), rtol=1e-4, atol=1e-5)
