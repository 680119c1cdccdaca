"""Numbers made of tensors, by `.item()`: right in ONNX Runtime for other values and at another size."""

from __future__ import annotations

import pytest
import torch
from operators import check_both

NUMBERS = {
    "item of a float": lambda x: x * (x.sum().item() + 1.5),
    "item of an int32": lambda x: x * (x.sum().to(torch.int32).item() // 2),
    "item of a bool": lambda x: x * (x.sum() > 0).item(),
}


@pytest.mark.parametrize("name", NUMBERS)
def test_sizes_and_values_as_numbers_are_right_at_other_sizes(name: str) -> None:
    check_both(NUMBERS[name], torch.rand(4, 3, generator=torch.Generator().manual_seed(0)))
