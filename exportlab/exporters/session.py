"""Sessions of ONNX Runtime as every file here is run: on CPU, with the warnings that it gives by default."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import onnxruntime


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

    return onnxruntime.InferenceSession(file, options or session_options(), providers=["CPUExecutionProvider"])
