"""AOTInductor: a program compiled to a shared library by the C++ compiler of this machine."""

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

from ..cases import DynamicShapes
from ..files import written_whole
from ..messages import native_output_dropped
from ..outcomes import Outcome
from .artifact import Artifact, Interface
from .calling import Calling, by_signature
from .capture import marked_program, stage_of


class InductorArtifact(Artifact):
    """A compiled package; its file is a `.pt2` for processors like this one. What it writes into its buffers stays until `fresh`."""

    exporter = "aoti"
    suffix = ".pt2"

    def __init__(self, package: bytes, calling: Calling) -> None:
        self.model = None  # there is no graph in a library
        self.calling = calling
        self.asked = Interface()
        self._package = package

    @cached_property
    def library(self) -> Any:
        """The loaded package, made at first use.

        Raises:
            RuntimeError: it was compiled for another machine, or is broken.
        """
        with tempfile.TemporaryDirectory() as folder, native_output_dropped():
            return torch._inductor.aoti_load_package(str(self.save(Path(folder) / "model.pt2")))

    def load(self) -> None:
        """Load the library."""
        assert self.library

    def ran_on(self) -> tuple[str, ...]:
        """Return the device that it was compiled for; nothing where it is not loaded yet."""
        return (self.library.get_metadata()["AOTI_DEVICE_KEY"],) if "library" in vars(self) else ()

    def fresh(self) -> InductorArtifact:
        """Return the same package, to be loaded anew."""
        return InductorArtifact(self._package, self.calling)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Runs the library.

        Raises:
            TypeError, ValueError: the arguments are not those of the export. RuntimeError: the library refuses them.
        """
        self.calling.feed(args, kwargs)
        with native_output_dropped():
            return self.library(*args, **kwargs)

    def save(self, path: str | Path) -> Path:
        """Write the `.pt2`."""
        with written_whole(path) as draft:
            draft.write_bytes(self._package)
        return Path(path)

    def ops(self) -> Counter[str]:
        """Return nothing: a library has no graph."""
        return Counter()


class Inductor:
    """`torch.export`, then `aoti_compile_and_package`."""

    name = "aoti"

    def missing(self) -> str | None:
        """Return where a C++ compiler comes from, where there is none."""
        from torch._inductor.cpp_builder import get_cpp_compiler
        from torch._inductor.exc import InvalidCxxCompiler

        try:
            get_cpp_compiler()
        except InvalidCxxCompiler:
            return "there is no C++ compiler: install g++ or clang, or name one in the variable CXX"
        return None

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
        strict: bool = False,
        **options: Any,
    ) -> InductorArtifact:
        """Capture and compile; `options` are Inductor's own settings."""
        program = marked_program(module, args, kwargs, dynamic_shapes, strict)
        package = io.BytesIO()
        with native_output_dropped():
            torch._inductor.aoti_compile_and_package(program, package_path=package, inductor_configs=options)
        return InductorArtifact(package.getvalue(), by_signature(program))
