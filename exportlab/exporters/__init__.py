"""Export modules to artifacts with any registered exporter, through one interface."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
from torch import nn

from ..cases import DynamicShapes
from ..checks import must_be
from ..samples import check_module
from .aot_inductor import Inductor
from .artifact import Artifact, Interface, Stats
from .calling import by_example
from .dynamo import Dynamo, from_program
from .executorch_program import ExecuTorch
from .onnx_artifact import OnnxArtifact, written_by
from .onnx_file import read_model
from .openvino_model import OpenVino
from .protocol import Exporter, discover
from .to_onnx import CAPTURE_LOCK, changed_names, names_of, switch_to_eval
from .to_onnx_exporter import StatefulArtifact, ToOnnx
from .torch_export import ProgramArtifact, TorchExport
from .torchscript import TorchScript
from .transformers_onnx import TransformersOnnx

__all__ = [
    "Artifact", "Exported", "Exporter", "Interface", "OnnxArtifact", "Stats", "artifact_of", "available", "export", "from_file", "get",
]  # fmt: skip

Exported = Artifact | torch.onnx.ONNXProgram | torch.export.ExportedProgram  # accepted by `artifact_of`
RUNTIMES: tuple[Exporter, ...] = (OpenVino(), ExecuTorch(), Inductor(), TransformersOnnx())
BUILT_IN: tuple[Exporter, ...] = (TorchExport(), ToOnnx(), Dynamo(), TorchScript(), *RUNTIMES)


def available() -> dict[str, Exporter]:
    """Return all exporters by name, built-in ones first. An exporter whose package isn't installed has a reason in `missing()`."""
    return {exporter.name: exporter for exporter in BUILT_IN} | discover()


def get(name: str) -> Exporter:
    """Return the exporter with this name.

    Raises:
        TypeError: the name is not a string.
        ValueError: the exporter doesn't exist, or a package that it needs isn't installed.
    """
    must_be(str, exporter=name)
    known = available()
    if name not in known:
        raise ValueError(f"no exporter {name!r}. Available: {', '.join(known)}")
    reason = known[name].missing()
    if reason:
        raise ValueError(f"exporter {name} cannot run here: {reason}")
    return known[name]


def export(
    exporter: str,
    module: nn.Module,
    args: tuple[Any, ...] = (),
    kwargs: Mapping[str, Any] | None = None,
    *,
    dynamic_shapes: DynamicShapes = None,
    train: bool = False,
    **options: Any,
) -> Artifact:
    """Export `module`, called with `args` and `kwargs`, with the exporter of this name.

    A module in training mode is exported in evaluation mode, with a warning. `module` itself isn't changed.
    Only one thread exports at a time, because torch.export changes global state.

    Args:
        dynamic_shapes: the dynamic axes of each input, as in `torch.onnx.export`, named by strings or `torch.export.Dim`.
        train: export the module in its current mode instead.
        options: further options of the exporter, such as `input_names`, `output_names`, `opset_version` or `strict`.

    Raises:
        TypeError: an argument has the wrong type.
        ValueError: the exporter isn't available, or the names are not a list. Errors of the exporter are passed through.
    """
    chosen = get(exporter)
    if not isinstance(module, torch.export.ExportedProgram) and not inspect.isroutine(module):  # exporters report their own error for those
        check_module(module)
    names_of(options.get("input_names"), options.get("output_names"))
    must_be(Mapping, type(None), kwargs=kwargs)
    must_be(bool, train=train)
    prepared = module if train else switch_to_eval(module, "train=True")
    with CAPTURE_LOCK:
        return chosen.export(prepared, args, kwargs, dynamic_shapes=dynamic_shapes, **options)


def artifact_of(exported: Exported) -> Artifact:
    """Convert a `torch.onnx.ONNXProgram` or `torch.export.ExportedProgram` to an artifact; return an artifact unchanged.

    Raises:
        TypeError: `exported` has another type.
    """
    if isinstance(exported, Artifact):
        return exported
    if isinstance(exported, torch.onnx.ONNXProgram):
        return from_program(exported, written_by(exported.model))
    if isinstance(exported, torch.export.ExportedProgram):
        return ProgramArtifact(exported)
    raise TypeError(f"cannot run a {type(exported).__name__}: pass an Artifact, an ONNXProgram or an ExportedProgram")


def from_file(path: str | Path, args: tuple[Any, ...], kwargs: Mapping[str, Any], returned: Any) -> OnnxArtifact:
    """Load an ONNX model with its external data. One call of the module and its result define the calling convention.

    Raises:
        OSError: a file is missing or cannot be read.
        ValueError: the file isn't an ONNX model, or its external data isn't where the model specifies.
    """
    model = read_model(Path(path))
    kind = StatefulArtifact if changed_names(model) else OnnxArtifact
    return kind(model, by_example(args, kwargs, returned), f"{Path(path).name}, written by {written_by(model)}")
