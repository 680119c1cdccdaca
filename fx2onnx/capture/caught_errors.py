"""Errors of the capture that the model itself caught: what stands in its `except` was captured instead. Not here: errors that got out."""

from __future__ import annotations

import traceback
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager

from torch._subclasses.fake_tensor import DataDependentOutputException, DynamicOutputShapeException
from torch.fx.experimental.symbolic_shapes import GuardOnDataDependentSymNode

from ..errors import CaptureError, shown_path

KINDS = (GuardOnDataDependentSymNode, DataDependentOutputException, DynamicOutputShapeException)
TRACERS = ("/torch/", "/sympy/", "<eval_with_key>")  # they catch such errors themselves, and go on rightly


@contextmanager
def nothing_swallowed() -> Iterator[None]:
    """While it lasts, errors that say "this depends on values" are kept; at its end, none of them may have ended in the model.

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
    """No handler tells of what it caught, so each error is kept as it is made; the class is as before afterwards."""
    own = kind.__init__

    def made(error: BaseException, *args: object) -> None:
        kept.append(error)
        own(error, *args)

    kind.__init__ = made
    try:
        yield
    finally:
        kind.__init__ = own


def _check(kept: Sequence[BaseException]) -> None:
    for error in kept:
        frame = next(iter(traceback.extract_tb(error.__traceback__, limit=1)), None)  # of those it passed, the one that caught it
        if frame is not None and not any(part in frame.filename for part in TRACERS):
            place = f"{shown_path(frame.filename)}:{frame.lineno} in {frame.name}"
            raise CaptureError(
                f"the model tests a value at {place}, and catches the error that says so: "
                "what follows its `except` would be exported for all values. Move the test out of the `try`, or use torch.cond."
            ) from error
