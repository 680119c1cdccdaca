"""Say what a failure of an export means by itself: its stage, and in a sentence what was refused. Not here: the line (findings)."""

from __future__ import annotations

from ..isolation import Failure
from ..outcomes import Outcome
from .lines import find_note_with_line

AS_WELL = "it is refused as well: "  # so `to_onnx` notes why it refused to capture the model by running it
DECOMPOSE = {"run_decompositions", "decompose_with_registry", "_decompose_exported_program"}


def stage_of(outcome: Outcome, failure: Failure) -> str:
    """Return the stage of known errors that a refusal belongs to: of a conversion, from the functions that it went through."""
    if outcome is not Outcome.CONVERT:
        return str(outcome)
    files = " ".join(frame.file for frame in failure.frames)
    if any(part in files for part in ("onnxscript/optimizer", "onnxscript/rewriter", "onnx_passes", "version_converter", "onnx_ir/passes")):
        return "optimiser"
    functions = {frame.function for frame in failure.frames}
    decomposes = "Failed to decompose the FX graph" in failure.message or functions & DECOMPOSE
    return "decomposition" if decomposes else "translation"


def sentence(failure: Failure) -> str:
    """Return what it says: of ours without the type, of others that of the first cause, which their own is only wrapped around."""
    if "ToOnnxError" in failure.types:
        own = failure.error.partition(": ")[2].removeprefix("torch.export refuses the model: ")
        noted = find_note_with_line(failure)[0].rpartition(AS_WELL)[2]
        return f"{noted}. A capture by torch.export is refused as well: {own}" if noted else own
    return failure.message.splitlines()[0] if failure.message else failure.error
