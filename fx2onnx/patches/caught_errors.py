"""Errors of the capture that the model itself caught: what stands in its `except` was captured instead."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

import torch._subclasses.fake_tensor
import torch.fx.experimental.symbolic_shapes  # noqa: F401 - it is patched

from ..errors import TORCH, CaptureError, shown_path
from .registry import patched, register_patch

KINDS = (
    "torch.fx.experimental.symbolic_shapes.GuardOnDataDependentSymNode",
    "torch._subclasses.fake_tensor.DataDependentOutputException",
    "torch._subclasses.fake_tensor.DynamicOutputShapeException",
)
TRACERS = (TORCH, "/sympy/", "<eval_with_key>")  # they catch such errors themselves, and go on rightly


@contextmanager
def no_error_caught() -> Iterator[None]:
    """Keep, while it lasts, errors that say "this depends on values"; at its end, none of them may have been caught by the model.

    Raises:
        CaptureError: the model caught one.
    """
    kept: list[BaseException] = []
    with patched("caught_errors", kept=kept):
        yield
    _check(kept)


@register_patch(
    "caught_errors",
    *(f"{kind}.__init__" for kind in KINDS),
    reason="a model that catches such an error of the capture would be captured as it is in its except, and no handler tells",
)
def _kept(own: Callable[..., None], kept: list[BaseException]) -> Callable[..., None]:
    def made(error: BaseException, *args: object) -> None:
        kept.append(error)
        own(error, *args)

    return made


def _check(kept: Sequence[BaseException]) -> None:
    for error in kept:
        frame = next(iter(traceback.extract_tb(error.__traceback__, limit=1)), None)  # of those it passed, the one that caught it
        if frame is not None and not any(part in frame.filename for part in TRACERS):
            line = f"{shown_path(frame.filename)}:{frame.lineno} in {frame.name}"
            raise CaptureError(
                f"the model evaluates a condition on a tensor value at {line}, and catches the error that the capture raises: "
                "the code in its `except` would be exported for all values. Move the condition out of the `try`, or use torch.cond."
            ) from error
