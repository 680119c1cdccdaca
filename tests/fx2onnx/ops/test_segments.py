"""Reductions over segments: each kind, empty segments, axes before and after, NaN, and lengths that the export never saw."""

from __future__ import annotations

from collections.abc import Callable

import pytest
import torch
from inputs import NAN, ints, normal
from operators import check_further
from torch.export import Dim

KINDS = ["sum", "mean", "prod", "max", "min"]
LENGTHS = ints(2, 0, 3, 1)


def reduced(x: torch.Tensor, kind: str, **given: object) -> torch.Tensor:
    """Segments of an axis, as torch names them."""
    return torch.segment_reduce(x, kind, **given)  # type: ignore[arg-type]


def check(function: Callable[..., torch.Tensor], *given: torch.Tensor) -> None:
    """Compare at these values alone: of lengths that reach over the end eager returns what memory holds."""
    check_further(function, given, given, ({},) * len(given))


@pytest.mark.parametrize("initial", [None, 2.0])
@pytest.mark.parametrize("kind", KINDS)
def test_each_kind(kind: str, initial: float | None) -> None:
    x = normal(6, 3)
    x[2, 1] = NAN
    for dtype in (torch.float32, torch.float64, torch.float16):
        check(lambda x, n: reduced(x, kind, lengths=n, initial=initial), x.to(dtype), LENGTHS)
    check(lambda x, n: reduced(x, kind, offsets=n, initial=initial), x, ints(0, 2, 2, 5, 6))
    check(lambda x, n: reduced(x, kind, lengths=n, axis=1, initial=initial), normal(2, 6, 3), torch.stack([LENGTHS] * 2))


@pytest.mark.parametrize("kind", KINDS)
def test_what_is_in_no_segment_counts_nowhere(kind: str) -> None:
    check(lambda x, n: reduced(x, kind, lengths=n, unsafe=True), normal(9, 2), LENGTHS)
    check(lambda x, n: reduced(x, kind, offsets=n), normal(9, 2), ints(1, 3, 3, 7))


@pytest.mark.parametrize("kind", KINDS)
def test_at_sizes_that_the_export_never_saw(kind: str) -> None:
    def function(x: torch.Tensor, n: torch.Tensor) -> torch.Tensor:
        return reduced(x, kind, lengths=n, unsafe=True)

    example, axes = (normal(6, 3), LENGTHS), ({0: Dim("rows")}, {0: Dim("segments")})
    for further in ((normal(20, 3), ints(5, 0, 0, 14, 1, 0)), (normal(2, 3), ints(2)), (normal(1, 3), ints(0, 1))):
        check_further(function, example, further, axes)
