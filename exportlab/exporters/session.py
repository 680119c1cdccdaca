"""Sessions of ONNX Runtime as every file here is run: with the warnings that it gives by default, and on CPU unless asked otherwise."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import onnxruntime


CPU = "CPUExecutionProvider"
USUAL = ("cpu", CPU)  # where things run unless asked otherwise
_asked: ContextVar[tuple[tuple[str, ...], int]] = ContextVar("asked", default=((CPU,), 0))


@contextmanager
def running_on(providers: Sequence[str] = (CPU,), threads: int = 0) -> Iterator[None]:
    """Make the sessions of a block run on these providers, the first one first, and on so many threads; 0: as many as there are cores."""
    token = _asked.set((tuple(providers), threads))
    try:
        yield
    finally:
        _asked.reset(token)


def asked() -> tuple[str, ...]:
    """Return the providers that sessions shall run on here."""
    return _asked.get()[0]


def present(providers: Sequence[str]) -> tuple[tuple[str, ...], str]:
    """Return those that this ONNX Runtime has, the CPU's where there is none, and in a line what is absent and was taken instead."""
    import onnxruntime

    known = onnxruntime.get_available_providers()
    found = tuple(name for name in providers if name in known) or (CPU,)
    return found, instead(providers, found)


def instead(providers: Sequence[str], used: Sequence[str]) -> str:
    """Say in a line which of these providers were not used, why, and what was; nothing where all were.

    One that was built into ONNX Runtime and is not used could not be started: the session goes on without it, and says nothing.
    """
    import onnxruntime

    known, unused = onnxruntime.get_available_providers(), [name for name in providers if name not in used]
    absent, broken = [name for name in unused if name not in known], [name for name in unused if name in known]
    why = [f"{', '.join(absent)} is not in this ONNX Runtime, which has {', '.join(known)}"] * bool(absent)
    why += [f"{', '.join(broken)} is in this ONNX Runtime, but did not start"] * bool(broken)
    return f"{'; '.join(why)}: {', '.join(used)} was used instead" if why else ""


def session_options(threads: int = 0) -> onnxruntime.SessionOptions:
    """Return options to be completed where more is wanted.

    Args:
        threads: how many a run may take; 0 for as many as there are cores.
    """
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = threads
    return options


def session(file: bytes | Path, options: onnxruntime.SessionOptions | None = None) -> onnxruntime.InferenceSession:
    """Return the session of a file, or of its bytes.

    Raises:
        onnxruntime.capi.onnxruntime_pybind11_state.Fail (and its siblings): ONNX Runtime refuses the file.
    """
    import onnxruntime

    providers, threads = _asked.get()
    return onnxruntime.InferenceSession(file, options or session_options(threads), providers=list(present(providers)[0]))
