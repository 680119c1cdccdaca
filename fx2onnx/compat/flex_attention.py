"""Torch's reference implementation of flex attention; a module of its own, since its import is slow."""

from __future__ import annotations

from torch._higher_order_ops.flex_attention import math_attention

__all__ = ["math_attention"]
