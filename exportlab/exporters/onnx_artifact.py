"""An ONNX model run by ONNX Runtime, called as the module is called. Not here: who wrote the model."""

from __future__ import annotations

import tempfile
from collections import Counter
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import onnx_ir as ir
import torch

from ..files import written_whole
from ..show.text import op_counts
from .artifact import Artifact, Asked
from .calling import Calling

EXTERNAL_DATA_ABOVE = 1_500_000_000  # bytes of weights; one protobuf file holds at most 2 GiB


class OnnxArtifact(Artifact):
    """An onnx-ir model, its calling convention, and what was asked of it."""

    def __init__(self, model: ir.Model, calling: Calling, exporter: str, asked: Asked | None = None) -> None:
        self.model = model
        self.calling = calling
        self.exporter = exporter
        self.asked = asked or Asked()

    @cached_property
    def session(self) -> Any:
        """The `onnxruntime.InferenceSession`, on CPU, made at first use.

        Raises:
            onnxruntime.capi.onnxruntime_pybind11_state.Fail (and its siblings): ONNX Runtime refuses the file.
        """
        import onnxruntime

        options = onnxruntime.SessionOptions()
        options.log_severity_level = 4  # what goes wrong is raised; it need not be logged as well
        start = partial(onnxruntime.InferenceSession, sess_options=options, providers=["CPUExecutionProvider"])
        if not self._is_large():
            return start(ir.to_proto(self.model).SerializeToString())
        with tempfile.TemporaryDirectory() as folder:
            return start(self.save(Path(folder) / "model.onnx"))

    def load(self) -> None:
        """Makes the session."""
        assert self.session

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Runs the file; tensors are taken and given on CPU.

        Raises:
            TypeError, ValueError: the arguments are not those of the export.
        """
        leaves = self.calling.feed(args, kwargs)
        names = [value.name for value in self.session.get_inputs()]
        if len(names) != len(leaves):
            raise ValueError(f"the file has {len(names)} inputs ({', '.join(names)}), the call gives {len(leaves)}")
        feeds = {name: torch.as_tensor(leaf).detach().cpu().numpy() for name, leaf in zip(names, leaves, strict=True)}
        return self.calling.assemble([torch.from_numpy(value) for value in map(_array, self._run(feeds))])

    def _run(self, feeds: dict[str, Any]) -> list[Any]:
        return self.session.run(None, feeds)

    def save(self, path: str | Path) -> Path:
        """Writes one file, or a file and its external data when the weights are too large for one."""
        with written_whole(path) as draft:
            ir.save(self.model, draft, external_data=f"{draft.name}.data" if self._is_large() else None)
        return Path(path)

    def _is_large(self) -> bool:
        weights = (value.const_value for value in self.model.graph.initializers.values())
        return sum(weight.nbytes for weight in weights if weight is not None) > EXTERNAL_DATA_ABOVE

    def ops(self) -> Counter[str]:
        """How often each op type occurs."""
        return op_counts(self.model)

    def got(self) -> Asked:
        """Names and opset as they stand in the model."""
        main = self.model.graph
        names = (tuple(str(value.name) for value in values) for values in (main.inputs, main.outputs))
        return Asked(*names, self.model.opset_imports.get(""))


def _array(value: Any) -> Any:
    """A writable array: ONNX Runtime gives numpy scalars and read-only arrays too, and torch warns at those."""
    import numpy

    return numpy.array(value)
