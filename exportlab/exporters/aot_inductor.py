"""Compile programs with AOTInductor to a shared library, with this machine's C++ compiler."""

from __future__ import annotations

import io
import tempfile
from collections import Counter
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import Any

import torch
from torch import nn

from fx2onnx.compat.exporting import has_cpp_compiler

from ..cases import DynamicShapes
from ..files import atomic_write
from ..messages import native_output_dropped
from ..outcomes import Outcome
from .artifact import Artifact, Interface
from .calling import Calling, by_signature
from .capture import marked_program, stage_of


class InductorArtifact(Artifact):
    """A compiled package, saved as a `.pt2` for processors like this one. Changes to its buffers last until `fresh`."""

    exporter = "aoti"
    suffix = ".pt2"

    def __init__(self, package: bytes, calling: Calling) -> None:
        self.model = None  # a compiled library has no graph
        self.calling = calling
        self.asked = Interface()
        self._package = package

    @cached_property
    def library(self) -> Any:
        """The loaded package, created on first use.

        Raises:
            RuntimeError: the package is broken, or was compiled for another machine.
        """
        with tempfile.TemporaryDirectory() as folder, native_output_dropped():
            return torch._inductor.aoti_load_package(str(self.save(Path(folder) / "model.pt2")))

    def load(self) -> None:
        """Load the library."""
        assert self.library

    def ran_on(self) -> tuple[str, ...]:
        """Return the device that the package was compiled for; nothing before it is loaded."""
        return (self.library.get_metadata()["AOTI_DEVICE_KEY"],) if "library" in vars(self) else ()

    def fresh(self) -> InductorArtifact:
        """Return a copy of the artifact that loads the package again."""
        return InductorArtifact(self._package, self.calling)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Run the library.

        Raises:
            TypeError, ValueError: the arguments don't match those of the export.
            RuntimeError: the library rejects the arguments.
        """
        self.calling.feed(args, kwargs)
        with native_output_dropped():
            return self.library(*args, **kwargs)

    def save(self, path: str | Path) -> Path:
        """Write the `.pt2` file."""
        with atomic_write(path) as draft:
            draft.write_bytes(self._package)
        return Path(path)

    def ops(self) -> Counter[str]:
        """Return an empty counter, because a compiled library has no graph."""
        return Counter()


class Inductor:
    """Export with `torch.export` and compile with `aoti_compile_and_package`."""

    name = "aoti"

    def missing(self) -> str | None:
        """Return how to install a C++ compiler, or None if there is one."""
        if has_cpp_compiler():
            return None
        return "no C++ compiler found: install g++ or clang, or set the environment variable CXX"

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
        strict: bool = False,
        **options: Any,
    ) -> InductorArtifact:
        """Capture and compile the module; `options` are passed to Inductor's configuration."""
        program = marked_program(module, args, kwargs, dynamic_shapes, strict)
        package = io.BytesIO()
        with native_output_dropped():
            torch._inductor.aoti_compile_and_package(program, package_path=package, inductor_configs=options)
        return InductorArtifact(package.getvalue(), by_signature(program))
