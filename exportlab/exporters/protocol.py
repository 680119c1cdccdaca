"""The protocol that every exporter keeps, and the list of those that other packages register."""

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
    """How a module becomes an artifact. Third parties register an instance under the entry-point group `exportlab.exporters`."""

    name: str

    def missing(self) -> str | None:
        """Return why it cannot run here (a package that is not installed), in one line; None when it can."""

    def stage(self, error: Exception) -> Outcome:
        """Return where `error`, raised by `export`, came from: `capture` (torch.export or a trace) or `convert` (whatever follows)."""

    def export(
        self,
        module: nn.Module,
        args: tuple[Any, ...] = (),
        kwargs: Mapping[str, Any] | None = None,
        *,
        dynamic_shapes: DynamicShapes = None,
        **options: Any,
    ) -> Artifact:
        """Export; `dynamic_shapes` may name its axes by strings, as `torch.onnx.export` allows. Raises what the exporter raises."""


def discover() -> dict[str, Exporter]:
    """Return the exporters that installed packages register, by name.

    Raises:
        BrokenEntryPoint: one that registers cannot be imported, or is no `Exporter`.
    """
    found: dict[str, Exporter] = {}
    for entry, exporter in load_entry_points(GROUP):
        if not isinstance(exporter, Exporter):
            raise BrokenEntryPoint(entry, "is not an Exporter")
        found[exporter.name] = exporter
    return found
