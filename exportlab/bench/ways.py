"""Define the ways to run a model in a benchmark: all exporters, plus eager mode and torch.compile, which don't write a file."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import torch
from torch import nn

from ..cases import DynamicShapes
from ..eager import fresh
from ..exporters import Artifact, Exporter, Interface, available, get
from ..exporters.artifact import devices_of
from ..exporters.display_names import SPOKEN
from ..outcomes import Outcome
from ..target import BadInput

RUNTIMES: Mapping[str, tuple[str, ...]] = {  # the ways of each name in `--runtimes`
    "onnxruntime": ("to_onnx", "dynamo", "torchscript"),
    "eager": ("eager",),
    "torch.compile": ("torch.compile",),
    "aoti": ("aoti",),
    "openvino": ("openvino",),
    "executorch": ("executorch",),
}
ON_DEVICE = ("eager", "torch.compile", "aoti", "torch.export")  # run on the model's device; ONNX models run on a provider


class ModuleArtifact(Artifact):
    """A module that is called directly, without an export or a file."""

    suffix = ""

    def __init__(self, exporter: str, module: nn.Module, call: Callable[..., Any]) -> None:
        self.exporter, self.model, self.asked = exporter, None, Interface()
        self.module, self._call = module, call

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call the module."""
        return self._call(*args, **kwargs)

    def ran_on(self) -> tuple[str, ...]:
        """Return the devices of its weights."""
        return devices_of(self.module.parameters())

    def save(self, path: str | Path) -> Path:
        """Raise a TypeError, because there is no file."""
        raise TypeError(f"{self.exporter} does not write a file")

    def ops(self) -> Counter[str]:
        """Return an empty counter, because there is no graph."""
        return Counter()


class Eager:
    """Eager mode: a copy of the module."""

    name = "eager"

    def missing(self) -> str | None:
        """Return None, because only torch is needed."""
        return None

    def stage(self, error: Exception) -> Outcome:
        """Return `capture`. Copying doesn't fail in practice."""
        return Outcome.CAPTURE

    def export(
        self, module: nn.Module, args: tuple[Any, ...] = (), kwargs: Mapping[str, Any] | None = None, *,
        dynamic_shapes: DynamicShapes = None, **options: Any,
    ) -> ModuleArtifact:  # fmt: skip
        """Return a copy of the module as an artifact."""
        own = fresh(module)
        return ModuleArtifact(self.name, own, own)


class Compiled:
    """`torch.compile`, with dynamic shapes if requested. It compiles at the first call, which counts as the export here."""

    name = "torch.compile"

    def missing(self) -> str | None:
        """Return why AOTInductor can't compile, because both use the same compiler."""
        return available()["aoti"].missing()

    def stage(self, error: Exception) -> Outcome:
        """Return `capture`, because the first call does all steps at once."""
        return Outcome.CAPTURE

    def export(
        self, module: nn.Module, args: tuple[Any, ...] = (), kwargs: Mapping[str, Any] | None = None, *,
        dynamic_shapes: DynamicShapes = None, **options: Any,
    ) -> ModuleArtifact:  # fmt: skip
        """Compile the module by calling it once."""
        own = fresh(module)
        compiled: Any = torch.compile(own, dynamic=dynamic_shapes is not None or None, **options)
        with torch.no_grad():
            compiled(*args, **(kwargs or {}))
        return ModuleArtifact(self.name, own, compiled)


WITHOUT_FILE: Mapping[str, Exporter] = {way.name: way for way in (Eager(), Compiled())}


def way(name: str) -> Exporter:
    """Return the way with this name in records. Raises what `exporters.get` raises."""
    return WITHOUT_FILE[name] if name in WITHOUT_FILE else get(name)


def to_record_name(name: str) -> str:
    """Convert a display name to the name in records, such as `torch.onnx.export` to `dynamo`."""
    by_reader = {spoken: name for name, spoken in SPOKEN.items()}
    return by_reader.get(name, name)


def ways_of(exporters: tuple[str, ...], runtimes: tuple[str, ...]) -> tuple[tuple[str, ...], list[str]]:
    """Return the requested ways, eager first, and a line with the reason for each way that isn't available.

    Raises:
        BadInput: a name is unknown.
    """
    if unknown := [name for name in runtimes if name not in RUNTIMES]:
        raise BadInput(f"no runtime {unknown[0]!r}: there are {', '.join(RUNTIMES)}")
    asked = [*map(to_record_name, exporters), *(name for runtime in runtimes for name in RUNTIMES[runtime])]
    names = tuple(dict.fromkeys(["eager", *asked]))
    known = {**WITHOUT_FILE, **available()}
    if lost := [name for name in names if name not in known]:
        raise BadInput(f"no exporter {lost[0]!r}: there are {', '.join(SPOKEN.get(name, name) for name in known)}")
    why = {name: known[name].missing() for name in names}
    return tuple(name for name in names if not why[name]), [f"{SPOKEN.get(n, n)} is skipped: {line}" for n, line in why.items() if line]
