"""Errors of the capture that the model itself caught: what stands in its `except` was captured instead."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from unittest.mock import patch

from torch._subclasses.fake_tensor import DataDependentOutputException, DynamicOutputShapeException
from torch.fx.experimental.symbolic_shapes import GuardOnDataDependentSymNode

from ..errors import TORCH, CaptureError, shown_path

KINDS = (GuardOnDataDependentSymNode, DataDependentOutputException, DynamicOutputShapeException)
TRACERS = (TORCH, "/sympy/", "<eval_with_key>")  # they catch such errors themselves, and go on rightly


@contextmanager
def no_error_caught() -> Iterator[None]:
    """Keep, while it lasts, errors that say "this depends on values"; at its end, none of them may have been caught by the model.

    Raises:
        CaptureError: the model caught one.
    """
    kept: list[BaseException] = []
    with ExitStack() as stack:
        for kind in KINDS:
            stack.enter_context(_kept(kind, kept))
        yield
    _check(kept)


@contextmanager
def _kept(kind: type[BaseException], kept: list[BaseException]) -> Iterator[None]:
    """Keep each error of this kind as it is made, since no handler tells of what it caught; the class is as before afterwards."""
    own: Callable[..., None] = kind.__init__

    def made(error: BaseException, *args: object) -> None:
        kept.append(error)
        own(error, *args)

    with patch.object(kind, "__init__", made):
        yield


def _check(kept: Sequence[BaseException]) -> None:
    for error in kept:
        frame = next(iter(traceback.extract_tb(error.__traceback__, limit=1)), None)  # of those it passed, the one that caught it
        if frame is not None and not any(part in frame.filename for part in TRACERS):
            line = f"{shown_path(frame.filename)}:{frame.lineno} in {frame.name}"
            raise CaptureError(
                f"the model evaluates a condition on a tensor value at {line}, and catches the error that the capture raises: "
                "the code in its `except` would be exported for all values. Move the condition out of the `try`, or use torch.cond."
            ) from error
