"""What the reader of a table or a figure calls an exporter; records have the short names of the package."""

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
    """Return a name as a reader knows it, `torch.onnx.export with optimize=False`; behind the comma stands how an exporter was used."""
    who, *how = name.split(", ")
    return joint.join([SPOKEN[who], *how]) if who in SPOKEN else name
