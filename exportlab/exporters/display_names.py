"""Map exporter names in records to the names shown in tables and figures."""

from __future__ import annotations

from collections.abc import Mapping

SPOKEN: Mapping[str, str] = {
    "to_onnx": "to_onnx",
    "dynamo": "torch.onnx.export",
    "torchscript": "torchscript",
    "openvino": "OpenVINO",
    "executorch": "ExecuTorch",
    "aoti": "AOTInductor",
}


def spoken(name: str, joint: str = " with ") -> str:
    """Return the display name of an exporter, such as `torch.onnx.export with optimize=False`. The part after a comma is the option."""
    who, *how = name.split(", ")
    return joint.join([SPOKEN[who], *how]) if who in SPOKEN else name
