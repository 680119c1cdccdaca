"""Define the common interface of exported models: call, save, measure."""

from __future__ import annotations

import tempfile
from abc import abstractmethod
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

from .. import show
from ..cases import Sample
from .compared_sizes import Axes
from .session import CPU, get_requested_providers


@dataclass(frozen=True)
class Interface:
    """The names and opset that the caller requested; `verify` compares them with the exported model."""

    input_names: tuple[str, ...] | None = None
    output_names: tuple[str, ...] | None = None
    opset_version: int | None = None

    @classmethod
    def of(
        cls,
        input_names: Sequence[str] | None = None,
        output_names: Sequence[str] | None = None,
        opset_version: int | None = None,
    ) -> Interface:
        """Create an interface from sequences of names."""
        return cls(_tuple(input_names), _tuple(output_names), opset_version)


def _tuple(names: Sequence[str] | None) -> tuple[str, ...] | None:
    return tuple(names) if names else None


@dataclass(frozen=True)
class Stats:
    """The size of an artifact: the bytes of the saved files, and the nodes, including those of subgraphs and functions."""

    bytes: int
    ops: Counter[str] = field(default_factory=Counter)

    @property
    def nodes(self) -> int:
        """The number of nodes."""
        return sum(self.ops.values())


def devices_of(tensors: Iterable[Any]) -> tuple[str, ...]:
    """Return the distinct devices of some tensors, or the CPU without any tensors."""
    return tuple(dict.fromkeys(str(tensor.device) for tensor in tensors)) or ("cpu",)


class Artifact(show.Tabular):
    """An exported model. It is called with the module's arguments and returns outputs with the same structure."""

    exporter: str
    asked: Interface
    model: Any  # shown by show.graph
    suffix: str = ".onnx"

    @abstractmethod
    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Run the exported model."""

    @abstractmethod
    def save(self, path: str | Path) -> Path:
        """Write the file atomically and return its path."""

    @abstractmethod
    def ops(self) -> Counter[str]:
        """Return the number of nodes of each op type, including subgraphs and functions."""

    def stats(self) -> Stats:
        """Return the size in bytes, and the ops."""
        with tempfile.TemporaryDirectory() as folder:
            self.save(Path(folder) / f"model{self.suffix}")
            size = sum(file.stat().st_size for file in Path(folder).iterdir())
        return Stats(size, self.ops())

    def prepared(self, *args: Any, **kwargs: Any) -> Callable[[], Any]:
        """Return a function for timing that runs the model with these arguments; inputs are converted in advance where possible."""
        return lambda: self(*args, **kwargs)

    def load(self) -> None:
        """Load the model, which the first call does otherwise."""
        return None

    def unloaded(self) -> Self:
        """Return an unloaded copy that uses the requested providers when loaded; itself if providers don't apply."""
        return self

    def ran_on(self) -> tuple[str, ...]:
        """Return the ONNX Runtime providers in use, most used first, or the device."""
        return ("cpu",)

    def moving_axes(self, sample: Sample) -> Axes:
        """Return the names of the dynamic axes of these arguments, by leaf and axis."""
        return {}

    def compared_sizes(self) -> set[int]:
        """Return the numbers that the model compares sizes with, and the upper bounds of its capture."""
        return set()

    def limits(self) -> Sequence[str]:
        """Return the sizes or values that the export reports as unsupported, one line each, with the model's source line."""
        return ()

    def settings(self) -> str:
        """Return the provider options in use; empty if there are only default options."""
        return ""

    def unused(self) -> str:
        """Describe which requested providers are not available, and why; empty if all are available."""
        return self.instead()

    def instead(self) -> str:
        """Describe which requested providers are not used, and why; empty if all are used."""
        if get_requested_providers() == (CPU,):
            return ""
        return f"providers apply only to ONNX Runtime, which does not run models of {self.exporter}: {', '.join(self.ran_on())} was used"

    def fresh(self) -> Callable[..., Any]:
        """Return a callable without state from earlier calls; the artifact itself if it has no state."""
        return self

    def got(self) -> Interface:
        """Return the names and opset of the exported model; None for each that the format doesn't have."""
        return Interface()

    def _table(self) -> show.Table:
        stats = self.stats()
        most = ", ".join(f"{op} {n}" for op, n in stats.ops.most_common(6))
        return show.table([{"exporter": self.exporter, "nodes": stats.nodes, "bytes": f"{stats.bytes:,}", "most used": most}])
