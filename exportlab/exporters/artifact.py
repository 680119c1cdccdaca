"""What an exporter leaves behind: something that can be called, saved and measured."""

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
    """What the caller asked the file to look like; `verify` holds the file against it."""

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
        """Return the same from any sequences."""
        return cls(_tuple(input_names), _tuple(output_names), opset_version)


def _tuple(names: Sequence[str] | None) -> tuple[str, ...] | None:
    return tuple(names) if names else None


@dataclass(frozen=True)
class Stats:
    """The size of an artifact: of the saved file in bytes, and its nodes, subgraphs and functions included."""

    bytes: int
    ops: Counter[str] = field(default_factory=Counter)

    @property
    def nodes(self) -> int:
        """How many nodes there are."""
        return sum(self.ops.values())


def devices_of(tensors: Iterable[Any]) -> tuple[str, ...]:
    """Return the devices of some tensors, each once; the CPU where there is no tensor."""
    return tuple(dict.fromkeys(str(tensor.device) for tensor in tensors)) or ("cpu",)


class Artifact(show.Tabular):
    """An exported model. Calling it takes the arguments the module takes and returns outputs of the same structure."""

    exporter: str
    asked: Interface
    model: Any  # what show.graph draws
    suffix: str = ".onnx"

    @abstractmethod
    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Runs it."""

    @abstractmethod
    def save(self, path: str | Path) -> Path:
        """Write the file, whole or not at all, and return its path."""

    @abstractmethod
    def ops(self) -> Counter[str]:
        """Return how often each op occurs, subgraphs and functions included."""

    def stats(self) -> Stats:
        """Return bytes, nodes and ops."""
        with tempfile.TemporaryDirectory() as folder:
            self.save(Path(folder) / f"model{self.suffix}")
            size = sum(file.stat().st_size for file in Path(folder).iterdir())
        return Stats(size, self.ops())

    def prepared(self, *args: Any, **kwargs: Any) -> Callable[[], Any]:
        """Return a call of it with these arguments, handed over beforehand where that can be done: what is timed."""
        return lambda: self(*args, **kwargs)

    def load(self) -> None:
        """Make it ready to run, which the first call does otherwise."""
        return None

    def unloaded(self) -> Self:
        """Return the same, to be loaded anew on the providers asked for; the artifact itself where none has a say."""
        return self

    def ran_on(self) -> tuple[str, ...]:
        """Return what it runs on, as its runtime calls it: providers of ONNX Runtime, the first one first, or a device."""
        return ("cpu",)

    def moving_axes(self, sample: Sample) -> Axes:
        """Return the dynamic axes of these arguments, by leaf and axis, each with the name of its size."""
        return {}

    def compared_sizes(self) -> set[int]:
        """Return the numbers that it compares sizes with, and the upper bounds that it was captured for."""
        return set()

    def limits(self) -> Sequence[str]:
        """Return what the export lists as sizes or values that it does not cover, one line each, by the line of the model."""
        return ()

    def settings(self) -> str:
        """Return the options that its providers were given; nothing where they have their own."""
        return ""

    def unused(self) -> str:
        """Say in a line which provider that was asked for its runtime does not have, and why; nothing where it has all."""
        return self.instead()

    def instead(self) -> str:
        """Say in a line which provider that was asked for it does not run on, and why; nothing where it does."""
        if get_requested_providers() == (CPU,):
            return ""
        return f"providers are those of ONNX Runtime, which does not run this file of {self.exporter}: {', '.join(self.ran_on())} was used"

    def fresh(self) -> Callable[..., Any]:
        """Return something to call that no earlier call has changed; the artifact itself where it holds no state."""
        return self

    def got(self) -> Interface:
        """Return the names and the opset that the file has; None where it has no such thing."""
        return Interface()

    def _table(self) -> show.Table:
        stats = self.stats()
        most = ", ".join(f"{op} {n}" for op, n in stats.ops.most_common(6))
        return show.table([{"exporter": self.exporter, "nodes": stats.nodes, "bytes": f"{stats.bytes:,}", "most used": most}])
