"""Print the table of all patches: `python -m fx2onnx.patches`."""

from __future__ import annotations

from .registry import table

print(table())
