"""Tell errors of this package's own code from errors of the model, of the caller and of torch's operators."""

from __future__ import annotations

import dis
import traceback
from collections.abc import Iterator
from contextlib import contextmanager
from types import FrameType, TracebackType

import torch

from .errors import InternalError, ToOnnxError, first_sentence, shown_path
from .libraries import PACKAGE, TORCH, is_in

BUGS = (AttributeError, NameError, LookupError, AssertionError, TypeError, ImportError)
FORWARDING = tuple(f"{PACKAGE}{name}" for name in ("patches/", "trace/symbolic_", "trace/module_list_index", "canaries"))
NOT_OURS = (ToOnnxError, OSError, MemoryError, torch.OutOfMemoryError)
LIBRARIES = ("builtins", "torch", "onnx", "onnx_ir", "onnxscript", "sympy", "numpy", "google")  # where a class of our mistakes is defined


def is_raised_on_purpose(error: BaseException) -> bool:
    """Return whether a Python `raise` or `assert` raised this error."""
    last = _innermost(error)
    return last is not None and dis.opname[last.tb_frame.f_code.co_code[last.tb_lasti]] == "RAISE_VARARGS"


def is_internal(error: BaseException, package: str = PACKAGE) -> bool:
    """Return whether an error is a mistake in a package: it looks up a missing name, or its code raises by accident or by `assert`."""
    if not isinstance(error, BUGS):
        return False
    frames = [frame for frame, _ in traceback.walk_tb(error.__traceback__)]
    looked_up = [frame for frame in frames[-2:] if _looks_up(frame)]
    path = frames[-1 - len(looked_up)].f_code.co_filename if len(frames) > len(looked_up) else ""
    by_accident = looked_up or isinstance(error, AssertionError) or not is_raised_on_purpose(error)
    return bool(by_accident) and is_in(path, package) and not is_in(path, *FORWARDING)


def _looks_up(frame: FrameType) -> bool:
    """Return whether a frame is torch's or the import system's, and looks for a name in a module, such as `torch.ops.aten`."""
    path = frame.f_code.co_filename
    return path.startswith("<frozen importlib") or (frame.f_code.co_name == "__getattr__" and is_in(path, TORCH))


def describe_internal_error(error: BaseException, stage: str) -> InternalError:
    """Return the error to raise in place of a mistake in this package."""
    frames = [frame for frame in traceback.extract_tb(error.__traceback__) if is_in(frame.filename, PACKAGE)]
    at = f" at {shown_path(frames[-1].filename)}:{frames[-1].lineno} in {frames[-1].name}" if frames else ""
    found = InternalError(
        f"internal error in to_onnx: {type(error).__name__}: {first_sentence(error)}{at}. "
        "This is a defect of to_onnx and not of your model: please report it with the traceback"
    )
    found.stage = stage
    return found


@contextmanager
def internal_errors_explained() -> Iterator[None]:
    """Raise `InternalError` in place of any error that `to_onnx` does not document."""
    try:
        yield
    except NOT_OURS:
        raise
    except Exception as error:
        if type(error).__module__.partition(".")[0] not in LIBRARIES or _is_documented(error):
            raise
        raise describe_internal_error(error, ToOnnxError.stage) from error


def _is_documented(error: BaseException) -> bool:
    """Return whether a `raise` statement of this package raised a built-in error, such as the TypeError for a table that is no mapping."""
    last = _innermost(error)
    is_own = last is not None and is_in(last.tb_frame.f_code.co_filename, PACKAGE)
    return is_own and is_raised_on_purpose(error) and not isinstance(error, AssertionError)


def _innermost(error: BaseException) -> TracebackType | None:
    last = error.__traceback__
    while last is not None and last.tb_next is not None:
        last = last.tb_next
    return last
