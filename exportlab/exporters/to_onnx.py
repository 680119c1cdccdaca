"""Re-export everything that this package uses from `fx2onnx`; other modules import it only from here."""

from __future__ import annotations

from fx2onnx import ToOnnxError, to_onnx
from fx2onnx.arguments import names_of
from fx2onnx.blocks.sharing import NAMESPACE
from fx2onnx.build.aliasing import returns_its_argument, writes
from fx2onnx.caches import caches_known, containers_kept
from fx2onnx.capture.dims import moves
from fx2onnx.capture.keywords import keywords_named
from fx2onnx.capture.running.numbered import at_sizes
from fx2onnx.capture.running.program import RunProgram
from fx2onnx.errors import op_title, shown_path, users_line
from fx2onnx.mode import SAID, as_eval, evaluated, in_training
from fx2onnx.one_at_a_time import ONE_AT_A_TIME
from fx2onnx.program import EXTERNAL_DATA_ABOVE
from fx2onnx.saving import save_whole
from fx2onnx.state import changed_names, initial_state

__all__ = [
    "EXTERNAL_DATA_ABOVE",
    "NAMESPACE",
    "ONE_AT_A_TIME",
    "SAID",
    "RunProgram",
    "ToOnnxError",
    "as_eval",
    "at_sizes",
    "caches_known",
    "changed_names",
    "containers_kept",
    "evaluated",
    "in_training",
    "initial_state",
    "keywords_named",
    "moves",
    "names_of",
    "op_title",
    "returns_its_argument",
    "save_whole",
    "shown_path",
    "to_onnx",
    "users_line",
    "writes",
]
