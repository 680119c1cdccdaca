"""Re-export everything that this package uses from `fx2onnx`; other modules import it only from here."""

from __future__ import annotations

from fx2onnx import ToOnnxError, to_onnx
from fx2onnx.arguments import names_of
from fx2onnx.caches import caches_known, containers_kept
from fx2onnx.errors import InternalError, op_title, shown_path, users_line
from fx2onnx.guards.dims import moves
from fx2onnx.ir.captured_program import RunProgram
from fx2onnx.libraries import is_library_file
from fx2onnx.locking import CAPTURE_LOCK
from fx2onnx.lower.aliasing import returns_its_argument, writes
from fx2onnx.mode import SAID, is_in_training, set_to_eval, switch_to_eval
from fx2onnx.program import EXTERNAL_DATA_ABOVE
from fx2onnx.saving import save_atomically
from fx2onnx.state import changed_names, initial_state
from fx2onnx.structure.outline import DOMAIN as FUNCTION_DOMAIN
from fx2onnx.trace.keywords import keywords_named
from fx2onnx.validate.numbered import specialise_program

__all__ = [
    "CAPTURE_LOCK",
    "EXTERNAL_DATA_ABOVE",
    "FUNCTION_DOMAIN",
    "SAID",
    "InternalError",
    "RunProgram",
    "ToOnnxError",
    "caches_known",
    "changed_names",
    "containers_kept",
    "initial_state",
    "is_in_training",
    "is_library_file",
    "keywords_named",
    "moves",
    "names_of",
    "op_title",
    "returns_its_argument",
    "save_atomically",
    "set_to_eval",
    "shown_path",
    "specialise_program",
    "switch_to_eval",
    "to_onnx",
    "users_line",
    "writes",
]
