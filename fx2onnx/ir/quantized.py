"""Values of torch's quantised types, which ONNX lacks: integers, with their scale and zero point."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch

from .tensor import Tensor

STORED = {torch.qint8: torch.int8, torch.quint8: torch.uint8}  # the types that ONNX supports and ONNX Runtime has kernels for


@dataclass(frozen=True)
class Quantized:
    """A quantised value: (values − zero_point) · scale, with one scale for all elements, or one for each row along an axis.

    Attributes:
        values: the integers, int8 or uint8.
        scale: float32, without axes or with one.
        zero_point: in the dtype of `values` and the sizes of `scale`.
    """

    values: Tensor
    scale: Tensor
    zero_point: Tensor
    axis: int | None = None


def has_quantized(values: Any) -> bool:
    """Return whether one of these values is quantised, also in lists."""
    return any(has_quantized(value) if isinstance(value, (list, tuple)) else isinstance(value, Quantized) for value in values)
