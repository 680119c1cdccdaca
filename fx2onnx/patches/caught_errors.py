"""Detects errors of the capture that the model itself catches, because its `except` branch would be captured."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from ..compat import fake_tensors, shape_env  # noqa: F401 - classes of both are patched
from ..errors import CaptureError, shown_path
from ..libraries import TORCH, normalise_separators
from .registry import apply_patches, register_patch

KINDS = (
    "torch.fx.experimental.symbolic_shapes.GuardOnDataDependentSymNode",
    "torch._subclasses.fake_tensor.DataDependentOutputException",
    "torch._subclasses.fake_tensor.DynamicOutputShapeException",
)
TRACERS = (TORCH, "/sympy/", "<eval_with_key>")  # whose code catches such errors correctly


@contextmanager
def refuse_caught_errors() -> Iterator[None]:
    """Record data-dependent errors that torch raises, and check at the end that the model caught none of them.

    Raises:
        CaptureError: the model caught one.
    """
    kept: list[BaseException] = []
    with apply_patches("caught_errors", kept=kept):
        yield
    _check(kept)


@register_patch(
    "caught_errors",
    *(f"{kind}.__init__" for kind in KINDS),
    reason="if the model catches this error, its except branch would be captured for all values",
)
def _kept(own: Callable[..., None], kept: list[BaseException]) -> Callable[..., None]:
    def made(error: BaseException, *args: object) -> None:
        kept.append(error)
        own(error, *args)

    return made


def _check(kept: Sequence[BaseException]) -> None:
    for error in kept:
        frame = next(iter(traceback.extract_tb(error.__traceback__, limit=1)), None)  # the frame that caught the error
        if frame is not None and not any(part in normalise_separators(frame.filename) for part in TRACERS):
            line = f"{shown_path(frame.filename)}:{frame.lineno} in {frame.name}"
            raise CaptureError(
                f"the model evaluates a condition on a tensor value at {line}, and catches the error that the capture raises: "
                "the code in its `except` would be exported for all values. Move the condition out of the `try`, or use torch.cond."
            ) from error
