"""Classify a failed export by stage, and summarise its message. The line of code is determined in `findings`."""

from __future__ import annotations

from ..isolation import Failure
from ..outcomes import Outcome
from .lines import find_note_with_line

AS_WELL = "also fails: "  # marks the note of `to_onnx` about why tracing a real run failed
DECOMPOSE = {"run_decompositions", "decompose_with_registry", "_decompose_exported_program"}


def stage_of(outcome: Outcome, failure: Failure) -> str:
    """Return the stage of a failure, as used by known errors. For a conversion, it's derived from the functions in the traceback."""
    if failure.internal:
        return "internal"
    if outcome is not Outcome.CONVERT:
        return str(outcome)
    files = " ".join(frame.file for frame in failure.frames)
    if any(part in files for part in ("onnxscript/optimizer", "onnxscript/rewriter", "onnx_passes", "version_converter", "onnx_ir/passes")):
        return "optimiser"
    functions = {frame.function for frame in failure.frames}
    decomposes = "Failed to decompose the FX graph" in failure.message or functions & DECOMPOSE
    return "decomposition" if decomposes else "translation"


def sentence(failure: Failure) -> str:
    """Return the message of a failure: for `to_onnx` without the type, for other exporters that of the first cause, which they wrap."""
    if "ToOnnxError" in failure.types:
        own = failure.error.partition(": ")[2].removeprefix("torch.export cannot capture the model: ")
        noted = find_note_with_line(failure)[0].rpartition(AS_WELL)[2]
        return f"{noted}. A capture with torch.export also fails: {own}" if noted else own
    return failure.message.splitlines()[0] if failure.message else failure.error
