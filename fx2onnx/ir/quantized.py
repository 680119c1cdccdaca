"""Values of torch's own quantised types: ONNX has none, so each is its whole numbers, and the grid that they stand on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch

from .tensor import Tensor

STORED = {torch.qint8: torch.int8, torch.quint8: torch.uint8}  # the types that ONNX has whole numbers and kernels for


@dataclass(frozen=True)
class Quantized:
    """A quantised value: (values − zero_point) · scale, with one step for all, or one for each row along an axis.

    Attributes:
        values: the whole numbers, int8 or uint8.
        scale: float32, without axes or with one.
        zero_point: in the type and the sizes of the scale's values.
    """

    values: Tensor
    scale: Tensor
    zero_point: Tensor
    axis: int | None = None


def has_quantized(values: Any) -> bool:
    """Return whether one of these values is a quantised one, also inside of lists."""
    return any(has_quantized(value) if isinstance(value, (list, tuple)) else isinstance(value, Quantized) for value in values)
