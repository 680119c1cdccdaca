"""The ONNX exporter of the transformers library, and its way of running the file."""

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
    """A `transformers.exporters.ExportedModel`, which matches inputs by name and rebuilds the model's own output classes."""

    def __init__(self, exported: Any, module: nn.Module, calling: Calling, asked: Interface) -> None:
        super().__init__(exported.program, calling, TransformersOnnx.name, asked)
        self._exported = exported
        self._signature = inspect.signature(module.forward)

    @cached_property
    def session(self) -> Any:
        """The exported model, its session made, on CPU."""
        return self._exported.to("cpu", session_options=session_options())

    def ran_on(self) -> tuple[str, ...]:
        """Return the CPU's provider: the library makes the session by itself."""
        return (CPU,) if "session" in vars(self) else ()

    def instead(self) -> str:
        """Say which provider that was asked for the library does not take."""
        return instead(get_requested_providers(), self.ran_on()) if self.ran_on() else ""

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Runs the file; tensors are taken and given on CPU.

        Raises:
            TypeError, ValueError: the arguments are not those of the export.
        """
        self.calling.feed(args, kwargs)
        return self.session(**_bind_by_name(self._signature, args, kwargs))

    def prepared(self, *args: Any, **kwargs: Any) -> Callable[[], Any]:
        """Return a call, which hands its arguments over by itself."""
        return lambda: self(*args, **kwargs)


class TransformersOnnx:
    """`transformers.exporters.OnnxExporter`. It passes every argument by name, and is made for models of that library."""

    name = "transformers"

    def missing(self) -> str | None:
        """Return how to install the package, where it is not, or that its version has no exporters."""
        found = importlib.util.find_spec("transformers")
        if found is None:
            return "transformers is not installed: pip install transformers"
        folders = found.submodule_search_locations or []
        return None if any((Path(f) / "exporters").is_dir() for f in folders) else "this version of transformers has no exporters"

    def stage(self, error: Exception) -> Outcome:
        """Return where the error came from: the capture marks its own."""
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
        """Export; `options` go to `OnnxConfig` as they are."""
        kwargs = dict(kwargs or {})
        given = _bind_by_name(inspect.signature(module.forward), *copy.deepcopy((args, kwargs)))
        returned = called_once(module, Sample(args, kwargs))
        forget_earlier_captures()
        with muffled(), native_output_dropped(), redirect_stdout(io.StringIO()):  # torch.onnx prints its steps, and takes no wish here
            exporter, config = _marking_exporter(), _config(given, dynamic_shapes, opset_version, options)
            exported = exporter.export(module, given, config)
        return TransformersArtifact(exported, module, by_example(args, kwargs, returned), Interface.of(opset_version=opset_version))


def _bind_by_name(signature: inspect.Signature, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> dict[str, Any]:
    """All arguments by name, since the library passes them so.

    Raises:
        TypeError: some have no name.
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
    """An `OnnxExporter` whose capture marks its errors; in the order of its bases, the mark comes just before the capture."""
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
