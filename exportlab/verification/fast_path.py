"""Whether eager itself answers otherwise without PyTorch's fast path: a kernel for a whole encoder layer, which no export takes."""

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
WORDS = "eager answers as the file does without PyTorch's fast path for encoders (torch.backends.mha), and otherwise with it"


@contextmanager
def disable_fast_path() -> Iterator[None]:
    """Let encoder layers compute by their operators, as they are exported; then as before."""
    before = torch.backends.mha.get_fastpath_enabled()
    torch.backends.mha.set_fastpath_enabled(False)
    try:
        yield
    finally:
        torch.backends.mha.set_fastpath_enabled(before)


def is_of_the_fast_path(module: nn.Module, calls: Sequence[Sample], actual: Any, tolerances: Tolerances | None) -> bool:
    """Return whether eager gives the file's answer once the fast path is off: it answers NaN where a mask hides everything, for one."""
    if not torch.backends.mha.get_fastpath_enabled() or not any(isinstance(part, WITH_FAST_PATH) for part in module.modules()):
        return False
    with disable_fast_path():
        expected = run_calls(fresh(module), tuple(calls))
    return not difference_of(expected, actual, tolerances).problem
