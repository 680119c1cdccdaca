"""All that was seen of one model, as plain data that crosses a pipe. Not here: how it was seen, nor what it means."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from ..exporters.to_onnx import moves
from ..isolation import Failure
from ..verification.verify import describe
from .lines import SourceLine
from .patient import Patient
from .samples import Moving
from .steps import Captured, Diverged, Eager, Tried

FLOOR = "torch.export"  # what the others stand on; its file is no ONNX
OFFICIAL = "dynamo"


@dataclass(frozen=True)
class Summary:
    """A patient without its weights."""

    samples: tuple[str, ...]
    made: tuple[str, ...]
    moving: tuple[Moving, ...]
    changing: tuple[str, ...]
    unlike: str
    twice: tuple[str, ...]
    dynamic_shapes: str
    declared: bool
    at: SourceLine | None


@dataclass
class Facts:
    """What the steps brought so far.

    Attributes:
        unusable: why the input cannot be used, and where.
        left_out: steps that there was no time for.
    """

    target: str
    summary: Summary | None = None
    unusable: Failure | None = None
    eager: Eager | None = None
    captures: dict[str, Captured | Failure] = field(default_factory=dict)
    tried: list[Tried] = field(default_factory=list)
    diverged: dict[str, Diverged] = field(default_factory=dict)
    left_out: list[str] = field(default_factory=list)
    saved: str = ""
    environment: Mapping[str, Any] = field(default_factory=dict)


def rights(facts: Facts) -> list[Tried]:
    """The exports that are right at all sizes and can be saved; that of torch.export counts where nothing else was tried."""
    right = [tried for tried in facts.tried if tried.outcome == "ok" and tried.save is None and not tried.only]
    onnx = [tried for tried in right if tried.exporter != FLOOR]
    return onnx if any(tried.exporter != FLOOR for tried in facts.tried) else right


def best(facts: Facts) -> Tried | None:
    """Of those that are right: nothing done differently, then the fewest nodes, then the official exporter."""
    return min(rights(facts), key=lambda tried: (not tried.plain, tried.nodes or 0, tried.exporter != OFFICIAL), default=None)


def summary_of(patient: Patient) -> Summary:
    """The patient as plain data."""
    sizes = patient.sizes
    return Summary(
        samples=tuple(map(describe, patient.samples)),
        made=tuple(what for what, _ in patient.made),
        moving=sizes.moving,
        changing=sizes.changing,
        unlike=sizes.unlike,
        twice=sizes.twice,
        dynamic_shapes=_written(patient.dynamic_shapes),
        declared=patient.declared,
        at=patient.at(),
    )


def _written(shapes: Any) -> str:
    """`dynamic_shapes` as one would write them; a `Dim` by its name."""
    if isinstance(shapes, dict):
        return "{" + ", ".join(f"{key!r}: {_written(value)}" for key, value in shapes.items()) + "}"
    if isinstance(shapes, list):
        return "[" + ", ".join(map(_written, shapes)) + "]"
    if isinstance(shapes, tuple):
        return "(" + ", ".join(map(_written, shapes)) + "," * (len(shapes) == 1) + ")"
    return repr(getattr(shapes, "__name__", shapes)) if moves(shapes) else repr(shapes)
