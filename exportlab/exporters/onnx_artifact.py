"""Run ONNX models with ONNX Runtime through the module's own signature."""

from __future__ import annotations

import copy
import json
import tempfile
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, Self

import onnx_ir as ir
import torch

from fx2onnx.compat import trees as pytree

from ..cases import Sample
from ..checks import kind_of
from ..messages import first_line
from ..show.text import op_counts
from .artifact import Artifact, Interface
from .calling import Calling, Flat
from .compared_sizes import Axes, bounds_of_program, moving_axes, numbers_compared
from .session import count_nodes_by_provider, describe_provider_shares, get_requested_providers, instead, session, settings
from .to_onnx import EXTERNAL_DATA_ABOVE, initial_state, save_atomically

NUMBERS = {"tensor(float)": torch.float32, "tensor(double)": torch.float64, "tensor(int64)": torch.int64, "tensor(bool)": torch.bool}
WRITERS = {"fx2onnx": "to_onnx", "pytorch": "torch.onnx.export"}  # exporters by producer name


class OnnxArtifact(Artifact):
    """An onnx-ir model with its calling convention, the requested interface and, if known, the captured graph.

    Attributes:
        state: additional inputs and their values.
    """

    def __init__(
        self,
        model: ir.Model,
        calling: Calling,
        exporter: str,
        asked: Interface | None = None,
        captured: torch.export.ExportedProgram | None = None,
    ) -> None:
        self.model = model
        self.calling = calling
        self.exporter = exporter
        self.asked = asked or Interface()
        self.captured = captured
        self.state = initial_state(model)

    @cached_property
    def session(self) -> Any:
        """The `onnxruntime.InferenceSession`, created on first use with the requested providers, by default the CPU.

        Raises:
            onnxruntime.capi.onnxruntime_pybind11_state.Fail (and its siblings): ONNX Runtime rejects the model.
        """
        if not is_large(self.model):
            return session(ir.to_proto(self.model).SerializeToString())
        with tempfile.TemporaryDirectory() as folder:
            return session(self.save(Path(folder) / "model.onnx"))

    def load(self) -> None:
        """Create the session."""
        assert self.session

    def unloaded(self) -> Self:
        """Return a copy without a session."""
        found = copy.copy(self)
        vars(found).pop("session", None)
        return found

    def ran_on(self) -> tuple[str, ...]:
        """Return the providers that run its nodes, most nodes first; nothing before the session is created."""
        if "session" not in vars(self):
            return ()
        nodes = count_nodes_by_provider(self.session)
        return tuple(name for name, _ in nodes.most_common()) or tuple(self.session.get_providers())

    def moving_axes(self, sample: Sample) -> Axes:
        """Return the dynamic axes of the model."""
        places = [place for place, slot in enumerate(self.calling.inputs) if isinstance(slot, Flat)]
        inputs = [v for v in self.model.graph.inputs if v.name not in self.state and v.name not in self.model.graph.initializers]
        if len(places) != len(inputs) or pytree.tree_structure((sample.args, dict(sample.kwargs))) != self.calling.in_spec:
            return {}
        return {(places[number], axis): name for (number, axis), name in moving_axes(inputs).items()}

    def compared_sizes(self) -> set[int]:
        """Return the numbers that the model compares sizes with, and the upper bounds of its capture."""
        return numbers_compared(self.model) | (bounds_of_program(self.captured) if self.captured is not None else set())

    def limits(self) -> Sequence[str]:
        """Return the limits that `to_onnx` stored in the model's metadata."""
        return tuple(json.loads(self.model.metadata_props.get("fx2onnx.limits", "[]")))

    def settings(self) -> str:
        """Return the provider options in use."""
        return settings(self.session) if "session" in vars(self) else ""

    def unused(self) -> str:
        """Describe the requested providers that the session doesn't have."""
        return instead(get_requested_providers(), self.session.get_providers()) if "session" in vars(self) else ""

    def instead(self) -> str:
        """Describe the requested providers that the session doesn't have, or the number of nodes per provider if others run some."""
        if "session" not in vars(self):
            return ""
        return self.unused() or describe_provider_shares(get_requested_providers(), count_nodes_by_provider(self.session))

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Run the model. Inputs and outputs are on the CPU.

        Raises:
            TypeError, ValueError: the arguments don't match those of the export. Errors of ONNX Runtime are passed through.
        """
        return self.calling.assemble([_tensor(value) for value in self._run(self._feeds(args, kwargs))])

    def prepared(self, *args: Any, **kwargs: Any) -> Callable[[], Any]:
        """Return a function that only runs the model: inputs are converted to arrays in advance, and outputs stay arrays."""
        feeds = self._feeds(args, kwargs)
        return lambda: self._run(feeds)

    def _feeds(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> dict[str, Any]:
        leaves = self.calling.feed(args, kwargs)
        declared = {value.name: value for value in self.session.get_inputs()}
        state = {name: _to_feed_value(value, declared[name].type) for name, value in self.state.items()}
        inputs = [value for name, value in declared.items() if name not in state]
        if len(inputs) != len(leaves):
            raise ValueError(f"the file has {len(inputs)} inputs ({', '.join(i.name for i in inputs)}), the call gives {len(leaves)}")
        return {value.name: _to_feed_value(leaf, value.type) for value, leaf in zip(inputs, leaves, strict=True)} | state

    def _run(self, feeds: dict[str, Any]) -> list[Any]:
        """Run the model and return arrays, or tensors for bfloat16, which numpy doesn't support."""
        declared = {value.name: value.type for value in (*self.session.get_inputs(), *self.session.get_outputs())}
        if "tensor(bfloat16)" not in declared.values():
            return self.session.run(None, feeds)
        names = [value.name for value in self.session.get_outputs()]
        found = self.session.run_with_ort_values(names, {name: _ort_value(value) for name, value in feeds.items()})
        return [
            torch.utils.dlpack.from_dlpack(value) if declared[name] == "tensor(bfloat16)" else value.numpy()
            for name, value in zip(names, found, strict=True)
        ]

    def save(self, path: str | Path) -> Path:
        """Write one file, or a file and its external data if the weights are too large for one file."""
        return write(self.model, path)

    def ops(self) -> Counter[str]:
        """Return the number of nodes of each op type."""
        return op_counts(self.model)

    def got(self) -> Interface:
        """Return the names and opset of the model."""
        main = self.model.graph
        inputs, outputs = (tuple(str(value.name) for value in values) for values in (main.inputs, main.outputs))
        return Interface(inputs, outputs, self.model.opset_imports.get(""))


def write(model: ir.Model, path: str | Path) -> Path:
    """Write a model atomically and return its path. Weights that are too large for one file go to a second file in the same folder.

    Raises:
        OSError: the file cannot be written.
    """
    save_atomically(model, path, is_large(model))
    return Path(path)


def written_by(model: ir.Model) -> str:
    """Return the exporter that wrote a model: the function's name, or the producer name in the model."""
    return WRITERS.get(model.producer_name or "", model.producer_name or "an unknown exporter")


def is_large(model: ir.Model) -> bool:
    """Whether the weights are too large to be stored in the model file."""
    weights = (value.const_value for value in model.graph.initializers.values())
    return sum(weight.nbytes for weight in weights if weight is not None) > EXTERNAL_DATA_ABOVE


def _to_feed_value(leaf: Any, declared: str) -> Any:
    """Convert an argument to an array, or to a tensor for bfloat16. Python numbers get the declared type of the input.

    Raises:
        TypeError: the argument is neither a number nor a dense tensor with data.
        ValueError: the declared type cannot represent the number.
    """
    if not isinstance(leaf, torch.Tensor):
        leaf = _number(leaf, declared)
    if leaf.is_meta or leaf.layout != torch.strided:
        raise TypeError(f"ONNX Runtime needs dense tensors with data, but this one is {leaf.layout}, on the device {leaf.device}")
    leaf = leaf.detach().cpu().resolve_conj().resolve_neg()
    return leaf if leaf.dtype == torch.bfloat16 else leaf.numpy()


def _number(value: Any, declared: str) -> torch.Tensor:
    try:
        return torch.tensor(value, dtype=NUMBERS.get(declared))
    except (TypeError, RuntimeError) as error:
        raise TypeError(f"an input of the model is {declared}, but the argument is {kind_of(value)}") from error
    except (ValueError, OverflowError) as error:
        raise ValueError(f"an input of the model is {declared}, which cannot represent the argument: {first_line(error)}") from error


def _ort_value(value: Any) -> Any:
    import onnxruntime

    kind = onnxruntime.OrtValue
    return kind.from_dlpack(value.contiguous()) if isinstance(value, torch.Tensor) else kind.ortvalue_from_numpy(value)


def _tensor(value: Any) -> torch.Tensor:
    """Convert a result to a tensor. It is copied, because ONNX Runtime also returns numpy scalars and read-only arrays."""
    import numpy

    return value if isinstance(value, torch.Tensor) else torch.from_numpy(numpy.array(value))
