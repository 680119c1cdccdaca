"""Define the protocol of exporters, and find those that other packages register."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol, runtime_checkable

from torch import nn

from ..cases import DynamicShapes
from ..entry_points import BrokenEntryPoint, load_entry_points
from ..outcomes import Outcome
from .artifact import Artifact

GROUP = "exportlab.exporters"


@runtime_checkable
class Exporter(Protocol):
    """The interface of exporters. Other packages register an instance in the entry-point group `exportlab.exporters`."""

    name: str

    def missing(self) -> str | None:
        """Return in one line why it cannot run here, such as a package that isn't installed; None if it can."""

    def stage(self, error: Exception) -> Outcome:
        """Return the stage of an error from `export`: `capture` (torch.export or tracing) or `convert` (any later step)."""

    def export(
        self,
        module: nn.Module,
        args: tuple[Any, ...] = (),
        kwargs: Mapping[str, Any] | None = None,
        *,
        dynamic_shapes: DynamicShapes = None,
        **options: Any,
    ) -> Artifact:
        """Export the module. `dynamic_shapes` may name axes by strings, as in `torch.onnx.export`. Errors are passed through."""


def discover() -> dict[str, Exporter]:
    """Return the exporters that installed packages register, by name.

    Raises:
        BrokenEntryPoint: a registered exporter cannot be imported, or is not an `Exporter`.
    """
    found: dict[str, Exporter] = {}
    for entry, exporter in load_entry_points(GROUP):
        if not isinstance(exporter, Exporter):
            raise BrokenEntryPoint(entry, "is not an Exporter")
        found[exporter.name] = exporter
    return found
