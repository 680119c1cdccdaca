"""Write files atomically, with the functions that `to_onnx` uses."""

from __future__ import annotations

from fx2onnx.files import atomic_write as atomic_write
from fx2onnx.files import check_replaceable as check_replaceable
