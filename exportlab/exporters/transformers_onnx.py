"""Export and run models with the ONNX exporter of the transformers library."""

from __future__ import annotations

import copy
import importlib.util
import inspect
import io
from collections.abc import Callable, Mapping
from contextlib import redirect_stdout
from functools import cached_property
from pathlib import Path
from typing import Any

from torch import nn

from ..cases import DynamicShapes, Sample
from ..eager import called_once
from ..messages import first_line, muffled, native_output_dropped
from ..outcomes import Outcome
from .artifact import Interface
from .calling import Calling, by_example
from .capture import CaptureFailed, dims_from_names, forget_earlier_captures, stage_of
from .onnx_artifact import OnnxArtifact
from .session import CPU, get_requested_providers, instead, session_options


class TransformersArtifact(OnnxArtifact):
    """A `transformers.exporters.ExportedModel`, which matches inputs by name and returns the model's own output classes."""

    def __init__(self, exported: Any, module: nn.Module, calling: Calling, asked: Interface) -> None:
        super().__init__(exported.program, calling, TransformersOnnx.name, asked)
        self._exported = exported
        self._signature = inspect.signature(module.forward)

    @cached_property
    def session(self) -> Any:
        """The exported model with a CPU session."""
        return self._exported.to("cpu", session_options=session_options())

    def ran_on(self) -> tuple[str, ...]:
        """Return the CPU provider, because the library creates the session itself."""
        return (CPU,) if "session" in vars(self) else ()

    def instead(self) -> str:
        """Describe the requested providers, which the library doesn't support."""
        return instead(get_requested_providers(), self.ran_on()) if self.ran_on() else ""

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Run the model. Inputs and outputs are on the CPU.

        Raises:
            TypeError, ValueError: the arguments don't match those of the export.
        """
        self.calling.feed(args, kwargs)
        return self.session(**_bind_by_name(self._signature, args, kwargs))

    def prepared(self, *args: Any, **kwargs: Any) -> Callable[[], Any]:
        """Return a call that includes the conversion of its arguments."""
        return lambda: self(*args, **kwargs)


class TransformersOnnx:
    """`transformers.exporters.OnnxExporter`, which is made for models of that library and passes each argument by name."""

    name = "transformers"

    def missing(self) -> str | None:
        """Return how to install the package, or that its version has no exporters; None if it can be used."""
        found = importlib.util.find_spec("transformers")
        if found is None:
            return "transformers is not installed: pip install transformers"
        folders = found.submodule_search_locations or []
        return None if any((Path(f) / "exporters").is_dir() for f in folders) else "this version of transformers has no exporters"

    def stage(self, error: Exception) -> Outcome:
        """Return the stage of the error, `capture` or `convert`."""
        return stage_of(error)

    def export(
        self,
        module: nn.Module,
        args: tuple[Any, ...] = (),
        kwargs: Mapping[str, Any] | None = None,
        *,
        dynamic_shapes: DynamicShapes = None,
        opset_version: int | None = None,
        **options: Any,
    ) -> TransformersArtifact:
        """Export the module; `options` are passed to `OnnxConfig`."""
        kwargs = dict(kwargs or {})
        given = _bind_by_name(inspect.signature(module.forward), *copy.deepcopy((args, kwargs)))
        returned = called_once(module, Sample(args, kwargs))
        forget_earlier_captures()
        with muffled(), native_output_dropped(), redirect_stdout(io.StringIO()):  # torch.onnx prints its progress, without an option here
            exporter, config = _marking_exporter(), _config(given, dynamic_shapes, opset_version, options)
            exported = exporter.export(module, given, config)
        return TransformersArtifact(exported, module, by_example(args, kwargs, returned), Interface.of(opset_version=opset_version))


def _bind_by_name(signature: inspect.Signature, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> dict[str, Any]:
    """Return all arguments by name, as the library passes them.

    Raises:
        TypeError: an argument has no name.
    """
    named = signature.bind_partial(*args).arguments
    if any(signature.parameters[name].kind is inspect.Parameter.VAR_POSITIONAL for name in named):
        raise TypeError("transformers passes every argument by name, and this forward takes *args")
    return dict(named) | dict(kwargs)


def _config(given: Mapping[str, Any], dynamic_shapes: DynamicShapes, opset_version: int | None, options: Mapping[str, Any]) -> Any:
    from transformers.exporters.configs import OnnxConfig

    shapes = dims_from_names(dynamic_shapes)
    if shapes is not None:
        by_name = shapes if isinstance(shapes, dict) else dict(zip(given, shapes, strict=True))
        shapes = {name: by_name.get(name) for name in given}
    return OnnxConfig(dynamic_shapes=shapes, opset_version=opset_version, **options)


def _marking_exporter() -> Any:
    """Return an `OnnxExporter` that marks errors of the capture. The base classes are ordered so that the mark wraps only the capture."""
    from transformers.exporters.exporter_dynamo import DynamoExporter
    from transformers.exporters.exporter_onnx import OnnxExporter

    class Marking(DynamoExporter):
        def export_program(self, model: Any, sample_inputs: Any, config: Any) -> Any:
            try:
                return super().export_program(model, sample_inputs, config=config)
            except Exception as error:
                raise CaptureFailed(f"torch.export refuses the model: {first_line(error)}") from error

    class Exporter(OnnxExporter, Marking):
        pass

    made: Any = Exporter  # its initialiser has no types
    return made()
