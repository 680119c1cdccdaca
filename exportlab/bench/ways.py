"""The ways to run a model that a bench knows: every exporter, and beside them eager and torch.compile, which leave no file."""

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

RUNTIMES: Mapping[str, tuple[str, ...]] = {  # which ways `--runtimes` stands for
    "onnxruntime": ("to_onnx", "dynamo", "torchscript"),
    "eager": ("eager",),
    "torch.compile": ("torch.compile",),
    "aoti": ("aoti",),
    "openvino": ("openvino",),
    "executorch": ("executorch",),
}
ON_DEVICE = ("eager", "torch.compile", "aoti", "torch.export")  # run where the model is; files run on a provider


class ModuleArtifact(Artifact):
    """A module that is called as it is: nothing was exported, and there is no file."""

    suffix = ""

    def __init__(self, exporter: str, module: nn.Module, call: Callable[..., Any]) -> None:
        self.exporter, self.model, self.asked = exporter, None, Interface()
        self.module, self._call = module, call

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Calls it."""
        return self._call(*args, **kwargs)

    def ran_on(self) -> tuple[str, ...]:
        """Return the devices of its weights."""
        return devices_of(self.module.parameters())

    def save(self, path: str | Path) -> Path:
        """Refuse: there is no file."""
        raise TypeError(f"{self.exporter} leaves no file")

    def ops(self) -> Counter[str]:
        """Return nothing: there is no graph."""
        return Counter()


class Eager:
    """The module itself, a copy of it."""

    name = "eager"

    def missing(self) -> str | None:
        """Return None: it is torch."""
        return None

    def stage(self, error: Exception) -> Outcome:
        """Return `capture`, though a copy does not fail."""
        return Outcome.CAPTURE

    def export(
        self, module: nn.Module, args: tuple[Any, ...] = (), kwargs: Mapping[str, Any] | None = None, *,
        dynamic_shapes: DynamicShapes = None, **options: Any,
    ) -> ModuleArtifact:  # fmt: skip
        """Return the module."""
        own = fresh(module)
        return ModuleArtifact(self.name, own, own)


class Compiled:
    """`torch.compile`, of sizes that move where they do; what it compiles, it compiles at the first call: here, that is the export."""

    name = "torch.compile"

    def missing(self) -> str | None:
        """Return what keeps AOTInductor from compiling: they share their compiler."""
        return available()["aoti"].missing()

    def stage(self, error: Exception) -> Outcome:
        """Return `capture`: the first call does all at once."""
        return Outcome.CAPTURE

    def export(
        self, module: nn.Module, args: tuple[Any, ...] = (), kwargs: Mapping[str, Any] | None = None, *,
        dynamic_shapes: DynamicShapes = None, **options: Any,
    ) -> ModuleArtifact:  # fmt: skip
        """Compile the module, and call it once."""
        own = fresh(module)
        compiled: Any = torch.compile(own, dynamic=dynamic_shapes is not None or None, **options)
        with torch.no_grad():
            compiled(*args, **(kwargs or {}))
        return ModuleArtifact(self.name, own, compiled)


WITHOUT_FILE: Mapping[str, Exporter] = {way.name: way for way in (Eager(), Compiled())}


def way(name: str) -> Exporter:
    """Return the way of this name, as records call it. Raises what `exporters.get` raises."""
    return WITHOUT_FILE[name] if name in WITHOUT_FILE else get(name)


def to_record_name(name: str) -> str:
    """Return the name that records have for a name that a reader knows: `dynamo` for `torch.onnx.export`."""
    by_reader = {spoken: name for name, spoken in SPOKEN.items()}
    return by_reader.get(name, name)


def ways_of(exporters: tuple[str, ...], runtimes: tuple[str, ...]) -> tuple[tuple[str, ...], list[str]]:
    """Return the ways that are asked for, eager first, and for each that cannot run here a line that says why.

    Raises:
        BadInput: there is none of this name.
    """
    if unknown := [name for name in runtimes if name not in RUNTIMES]:
        raise BadInput(f"no runtime {unknown[0]!r}: there are {', '.join(RUNTIMES)}")
    asked = [*map(to_record_name, exporters), *(name for runtime in runtimes for name in RUNTIMES[runtime])]
    names = tuple(dict.fromkeys(["eager", *asked]))
    known = {**WITHOUT_FILE, **available()}
    if lost := [name for name in names if name not in known]:
        raise BadInput(f"no exporter {lost[0]!r}: there are {', '.join(SPOKEN.get(name, name) for name in known)}")
    why = {name: known[name].missing() for name in names}
    return tuple(name for name in names if not why[name]), [f"{SPOKEN.get(n, n)} is left out: {line}" for n, line in why.items() if line]
