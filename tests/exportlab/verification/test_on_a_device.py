"""What verify makes of the inputs and results of a module stays on their device; the device here is a fake one."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from torch._subclasses import FakeTensorMode

from exportlab.cases import Sample
from exportlab.verification import float64_reference, noise, thresholds, values


def _longer(integers: torch.Tensor) -> torch.Tensor:
    made = thresholds.resize_axes(Sample((integers,)), {(0, 0): "rows"}, "rows", 7).args[0]
    assert isinstance(made, torch.Tensor)
    return made


def _spread(integers: torch.Tensor) -> torch.Tensor:
    return values._part(0, {id(integers): 9})(integers)


CHANGES: dict[str, tuple[Callable[[torch.Tensor], torch.Tensor], torch.dtype]] = {
    "longer": (_longer, torch.int64),
    "integers spread": (_spread, torch.int64),
    "smaller": (thresholds._shrunk, torch.float32),
    "spread over scales": (values._spread, torch.float32),
    "half a rounding away": (lambda tensor: noise._Jittered(0)._moved(tensor), torch.float32),
    "some roundings away": (lambda tensor: float64_reference._Shaken(1e-7, 0)._moved(tensor), torch.float32),
}


@pytest.mark.parametrize("name", CHANGES)
def test_a_changed_tensor_stays_on_its_device(name: str) -> None:
    change, dtype = CHANGES[name]
    with FakeTensorMode(allow_non_fake_inputs=True):
        changed = change(torch.zeros(3, 4, device="cuda", dtype=dtype))
    assert changed.device.type == "cuda"
