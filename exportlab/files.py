"""Write files atomically, with the functions that `to_onnx` uses."""

from __future__ import annotations

from fx2onnx.files import check_replaceable as check_replaceable
from fx2onnx.files import written_whole as written_whole
