"""Check whether eager's result changes without PyTorch's fast path, a fused kernel for encoder layers that exports don't use."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch import nn

from ..cases import Sample
from ..eager import fresh, run_calls
from .difference import Tolerances, difference_of

WITH_FAST_PATH = (nn.MultiheadAttention, nn.TransformerEncoderLayer, nn.TransformerEncoder)
WORDS = "eager gives the same answer only without PyTorch's fast path for encoders (torch.backends.mha)"


@contextmanager
def disable_fast_path() -> Iterator[None]:
    """Disable the fast path in a block, so that encoder layers use the same operators as in an export."""
    before = torch.backends.mha.get_fastpath_enabled()
    torch.backends.mha.set_fastpath_enabled(False)
    try:
        yield
    finally:
        torch.backends.mha.set_fastpath_enabled(before)


def is_of_the_fast_path(module: nn.Module, calls: Sequence[Sample], actual: Any, tolerances: Tolerances | None) -> bool:
    """Return whether eager without the fast path matches the model. The fast path returns NaN where a mask hides all positions."""
    if not torch.backends.mha.get_fastpath_enabled() or not any(isinstance(part, WITH_FAST_PATH) for part in module.modules()):
        return False
    with disable_fast_path():
        expected = run_calls(fresh(module), tuple(calls))
    return not difference_of(expected, actual, tolerances).problem
