"""The parts of torch's own ONNX exporter that call onnxscript functions. They are imported only where a model needs them."""

from __future__ import annotations

from typing import Any

import torch.onnx._internal.exporter._core  # noqa: F401 - it is patched
from torch.onnx._internal.exporter import _schemas as schemas
from torch.onnx._internal.exporter._building import OpRecorder
from torch.onnx._internal.exporter._building import _allowed_types_are_sequence_types as allowed_types_are_sequence_types
from torch.onnx._internal.exporter._building import _construct_named_inputs_and_attrs as construct_named_inputs_and_attrs
from torch.onnx._internal.exporter._building import _determine_input_dtype as determine_input_dtype
from torch.onnx._internal.exporter._building import _resolve_parameter_dtypes as resolve_parameter_dtypes
from torch.onnx._internal.exporter._registration import ONNXRegistry
from torch.onnx._internal.exporter._tensors import SymbolicTensor

__all__ = [
    "ONNXRegistry", "OpRecorder", "SymbolicTensor", "allowed_types_are_sequence_types", "construct_named_inputs_and_attrs",
    "determine_input_dtype", "resolve_parameter_dtypes", "signature_of_function",
]  # fmt: skip


def signature_of_function(function: Any, domain: str, version: int) -> Any:
    """Return the signature of an onnxscript function."""
    if hasattr(schemas, "op_signature_from_function"):  # from torch 2.11 on
        return schemas.op_signature_from_function(function, domain, function.name, since_version=version)
    return schemas.OpSignature.from_function(function, domain, function.name)  # type: ignore[attr-defined]
