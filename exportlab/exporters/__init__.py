"""How a module becomes an artifact: one file per exporter behind one protocol."""

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
from .to_onnx import ONE_AT_A_TIME, as_eval, changed_names, names_of
from .to_onnx_exporter import StatefulArtifact, ToOnnx
from .torch_export import ProgramArtifact, TorchExport
from .torchscript import TorchScript
from .transformers_onnx import TransformersOnnx

__all__ = [
    "Artifact", "Exported", "Exporter", "Interface", "OnnxArtifact", "Stats", "artifact_of", "available", "export", "from_file", "get",
]  # fmt: skip

Exported = Artifact | torch.onnx.ONNXProgram | torch.export.ExportedProgram  # what `artifact_of` takes
RUNTIMES: tuple[Exporter, ...] = (OpenVino(), ExecuTorch(), Inductor(), TransformersOnnx())
BUILT_IN: tuple[Exporter, ...] = (TorchExport(), ToOnnx(), Dynamo(), TorchScript(), *RUNTIMES)


def available() -> dict[str, Exporter]:
    """Return every exporter by name: the built-in ones first, then those of installed packages. Some may be `missing()`."""
    return {exporter.name: exporter for exporter in BUILT_IN} | discover()


def get(name: str) -> Exporter:
    """Return the exporter of this name.

    Raises:
        TypeError: it is no name. ValueError: there is none, or what it needs is not installed.
    """
    must_be(str, exporter=name)
    known = available()
    if name not in known:
        raise ValueError(f"no exporter {name!r}: there are {', '.join(known)}")
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
    """Export `module`, called with `args` and `kwargs`, by the exporter of this name.

    What is in training mode is exported as `eval()`, with a warning; `module` itself stays as it is.

    Args:
        dynamic_shapes: as `torch.onnx.export` takes it: the axes that move, of each input, named by strings or `torch.export.Dim`.
        train: whether it is exported in the mode that it is in.
        options: what the exporter takes besides: `input_names`, `output_names`, `opset_version`, `strict`, …

    Threads that call this wait for each other: torch.export changes what all of them see while it lasts.

    Raises:
        TypeError: an argument is of another kind. ValueError: there is no such exporter here, or names are no list of names. What the
            exporter raises is raised as it is.
    """
    chosen = get(exporter)
    if not isinstance(module, torch.export.ExportedProgram) and not inspect.isroutine(module):  # what one says of a function is its own
        check_module(module)
    names_of(options.get("input_names"), options.get("output_names"))
    must_be(Mapping, type(None), kwargs=kwargs)
    must_be(bool, train=train)
    asked = module if train else as_eval(module, "train=True")
    with ONE_AT_A_TIME:
        return chosen.export(asked, args, kwargs, dynamic_shapes=dynamic_shapes, **options)


def artifact_of(exported: Exported) -> Artifact:
    """Return `exported` as an artifact: one already, a `torch.onnx.ONNXProgram`, or a `torch.export.ExportedProgram`.

    Raises:
        TypeError: it is none of these.
    """
    if isinstance(exported, Artifact):
        return exported
    if isinstance(exported, torch.onnx.ONNXProgram):
        return from_program(exported, written_by(exported.model))
    if isinstance(exported, torch.export.ExportedProgram):
        return ProgramArtifact(exported)
    raise TypeError(f"cannot run a {type(exported).__name__}: pass an Artifact, an ONNXProgram or an ExportedProgram")


def from_file(path: str | Path, args: tuple[Any, ...], kwargs: Mapping[str, Any], returned: Any) -> OnnxArtifact:
    """Return an ONNX file as an artifact, weights beside it included; one call of the module, with what it returned, tells how to call it.

    Raises:
        OSError: a file is missing, or cannot be read. ValueError: it holds no ONNX model, or its weights are not where it says.
    """
    model = read_model(Path(path))
    kind = StatefulArtifact if changed_names(model) else OnnxArtifact
    return kind(model, by_example(args, kwargs, returned), f"{Path(path).name}, written by {written_by(model)}")
