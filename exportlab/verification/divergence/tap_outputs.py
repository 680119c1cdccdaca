"""Run an exported model in ONNX Runtime with additional values as outputs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy
import onnx_ir as ir
import torch

from fx2onnx.compat import trees as pytree

from ...exporters import OnnxArtifact
from ...exporters.calling import Calling, Flat
from ...exporters.session import session, session_options
from .alignment import values_of

SHARED_ABOVE = 1024  # bytes; larger weights are shared with ONNX Runtime. Smaller ones may be shapes, which it needs early
SHARED = (ir.DataType.FLOAT, ir.DataType.DOUBLE, ir.DataType.FLOAT16, ir.DataType.INT64)


class Observed(OnnxArtifact):
    """The model with additional outputs. Large weights are shared with ONNX Runtime, not copied."""

    def __init__(self, model: ir.Model, calling: Calling, names: Sequence[str]) -> None:
        given = [str(output.name) for output in model.graph.outputs]
        self.names = list(dict.fromkeys([*given, *names]))
        spec = pytree.tree_structure([0] * len(self.names))
        calling = replace(calling, outputs=(Flat(),) * len(self.names), out_spec=spec)
        super().__init__(model.clone(), calling, "observed")
        values, outputs = values_of(self.model.graph), self.model.graph.outputs
        outputs.extend(values[name] for name in self.names if name not in given)
        self._weights = self._moved_out()

    def _moved_out(self) -> dict[str, Any]:
        """Return the large weights by name, and replace them in the model by references."""
        kept = {value.name for value in self.model.graph.inputs}
        found = {}
        for name, value in self.model.graph.initializers.items():
            tensor = value.const_value
            movable = name not in kept and bool(value.uses())  # ONNX Runtime removes unused weights before it looks for their data
            if movable and tensor is not None and tensor.nbytes > SHARED_ABOVE and tensor.dtype in SHARED:
                found[name] = numpy.ascontiguousarray(tensor.numpy())
                value.const_value = ir.ExternalTensor("weights", 0, tensor.nbytes, tensor.dtype, shape=tensor.shape, name=name)
        return found

    @cached_property
    def session(self) -> Any:
        """The `onnxruntime.InferenceSession` on the CPU, created on first use."""
        import onnxruntime

        options = session_options()
        weights = [onnxruntime.OrtValue.ortvalue_from_numpy(array) for array in self._weights.values()]
        options.add_external_initializers(list(self._weights), weights)
        return session(ir.to_proto(self.model).SerializeToString(), options)

    def values(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> dict[str, torch.Tensor]:
        """Return the values of one call by name, the model's original outputs first."""
        return dict(zip(self.names, self(*args, **kwargs), strict=True))
