"""Export with `torch.export`, which most other exporters use for the capture."""

from __future__ import annotations

import copy
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import torch
from torch import nn

from fx2onnx.compat import trees as pytree

from ..cases import DynamicShapes, Sample
from ..files import atomic_write
from ..outcomes import Outcome
from ..show.text import op_name
from .artifact import Artifact, Interface, devices_of
from .capture import exported_program
from .compared_sizes import Axes, axes_of_program, bounds_of_program


class ProgramArtifact(Artifact):
    """A `torch.export.ExportedProgram`, saved as a `.pt2`."""

    exporter = "torch.export"
    suffix = ".pt2"

    def __init__(self, program: torch.export.ExportedProgram) -> None:
        self.model = program
        self.asked = Interface()
        self._module = program.module()

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Run the graph, including guards. Changes to buffers last until `fresh`."""
        return self._module(*args, **kwargs)

    def ran_on(self) -> tuple[str, ...]:
        """Return the devices of the weights."""
        return devices_of(self.model.state_dict.values())

    def moving_axes(self, sample: Sample) -> Axes:
        """Return the axes whose sizes are symbols."""
        same = pytree.tree_structure((sample.args, dict(sample.kwargs))) == self.model.call_spec.in_spec
        return axes_of_program(self.model) if same else {}

    def compared_sizes(self) -> set[int]:
        """Return the upper bounds of the sizes in the capture."""
        return bounds_of_program(self.model)

    def fresh(self) -> Callable[..., Any]:
        """Return a new module with its own buffers and shared weights. It isn't a deep copy, because that would lose the input checks."""
        module = self.model.module()
        for child in module.modules():
            child._buffers.update({name: copy.deepcopy(buffer) for name, buffer in child._buffers.items()})
        return module

    def save(self, path: str | Path) -> Path:
        """Write the `.pt2` file."""
        with atomic_write(path) as draft:
            torch.export.save(self.model, draft)
        return Path(path)

    def ops(self) -> Counter[str]:
        """Return the number of calls of each op."""
        return Counter(op_name(node) for node in self.model.graph.nodes if node.op == "call_function")


class TorchExport:
    """`torch.export.export`, non-strict by default."""

    name = "torch.export"

    def missing(self) -> str | None:
        """Return None: it is part of torch."""
        return None

    def stage(self, error: Exception) -> Outcome:
        """Return `capture`, the only stage of this exporter."""
        return Outcome.CAPTURE

    def export(
        self,
        module: nn.Module,
        args: tuple[Any, ...] = (),
        kwargs: Mapping[str, Any] | None = None,
        *,
        dynamic_shapes: DynamicShapes = None,
        strict: bool = False,
        **options: Any,
    ) -> ProgramArtifact:
        """Capture the module; `options` are passed to torch.export, and axes named by strings are `Dim.DYNAMIC`."""
        return ProgramArtifact(exported_program(module, args, kwargs, dynamic_shapes, strict, **options))
