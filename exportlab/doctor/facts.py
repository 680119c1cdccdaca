"""Keep all that was seen of one model, and choose the export that is best."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, assert_never

from ..isolation import Failure
from ..outcomes import Outcome
from .events import (
    AppliedFix,
    Capture,
    Captured,
    CarriedState,
    Diverged,
    Eager,
    Event,
    LeftOut,
    PathSplit,
    Refusal,
    Saved,
    Started,
    Summary,
    Trial,
    Unusable,
)
from .lines import SourceLine

FLOOR = "torch.export"  # what the others stand on; its file is no ONNX
OFFICIAL = "dynamo"


@dataclass
class Facts:
    """All that the steps brought so far.

    Attributes:
        unusable: why the input cannot be used, and where.
        captures: by how it was captured. refusal: of the program of torch.export, by `to_onnx`. diverged: by label of the export.
        parted: where the lines that run part from those of eager's first call, by what it was held against.
        kept: what is changed in attributes. mended: the change that was seen to be right. searched: whether all were tried.
        left_out: steps that were not done, and why.
    """

    target: str
    summary: Summary | None = None
    unusable: Failure | None = None
    eager: Eager | None = None
    captures: dict[str, Captured | Failure] = field(default_factory=dict)
    refusal: Failure | None = None
    tried: list[Trial] = field(default_factory=list)
    diverged: dict[str, Diverged] = field(default_factory=dict)
    parted: dict[str, SourceLine] = field(default_factory=dict)
    kept: CarriedState | None = None
    mended: AppliedFix | None = None
    searched: bool = False
    left_out: list[str] = field(default_factory=list)
    saved: str = ""
    environment: Mapping[str, Any] = field(default_factory=dict)

    def keep(self, event: Event) -> None:
        """Add what an event brings."""
        match event:
            case Started():
                return
            case LeftOut():
                self.left_out.append(f"{event.step} ({event.why})")
            case Summary():
                self.summary = event
            case Unusable():
                self.unusable = event.failure
            case Eager():
                self.eager = event
            case Capture():
                self.captures[event.how] = event.found
            case Refusal():
                self.refusal = event.failure
            case Trial():
                self.tried.append(event)
            case Diverged():
                self.diverged[event.label] = event
            case PathSplit():
                self.parted[event.how] = event.at
            case CarriedState():
                self.kept = event
            case AppliedFix():
                self.mended, self.searched = (event, self.searched) if event.at else (self.mended, True)
            case Saved():
                self.saved = event.path
            case _:
                assert_never(event)

    def forgets(self, trial: Trial) -> bool:
        """Return whether the caller has another argument after a call of the model, and not after one of this file, which is right else."""
        changes = self.eager is not None and bool(self.eager.changes)
        return trial.right and changes and trial.exporter != FLOOR and not trial.options.get("mutations")

    def is_unexplained(self, trial: Trial) -> bool:
        """Return whether an export came to its end, and what is not right about it has no message that names the line."""
        return trial.outcome.silent or trial.outcome is Outcome.NARROW or self.forgets(trial)

    def is_right(self, trial: Trial) -> bool:
        """Return whether its results are right, at every size, and so is what it leaves in its arguments."""
        return trial.right and not self.forgets(trial)


def rights(facts: Facts) -> list[Trial]:
    """Return the exports that are right at all sizes and can be saved; that of torch.export counts where nothing else was tried."""
    right = [trial for trial in facts.tried if facts.is_right(trial) and not trial.only]
    onnx = [trial for trial in right if trial.exporter != FLOOR]
    return onnx if any(trial.exporter != FLOOR for trial in facts.tried) else right


def find_best_trial(facts: Facts) -> Trial | None:
    """Return, of those that are right, the one with nothing done differently, then the fewest nodes, then of the official exporter."""
    return min(rights(facts), key=lambda trial: (not trial.plain, trial.nodes or 0, trial.exporter != OFFICIAL), default=None)
