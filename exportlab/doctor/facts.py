"""Collect the results of all steps for one model, and choose the best export."""

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

FLOOR = "torch.export"  # the other exporters build on it; its output is not ONNX
OFFICIAL = "dynamo"


@dataclass
class Facts:
    """The results of all steps so far.

    Attributes:
        unusable: the reason why the input can't be used, with its line.
        captures: captures by kind. refusal: the error of `to_onnx` for the program of torch.export. diverged: by label of the export.
        parted: the line at which a call diverges from the first eager call, by kind of call.
        kept: state in attributes. mended: the verified change of the user's code. searched: whether all changes were tried.
        left_out: skipped steps with the reason.
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
        """Store an event."""
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
        """Return whether the exported model is correct except that it doesn't modify arguments that the original modifies."""
        changes = self.eager is not None and bool(self.eager.changes)
        return trial.right and changes and trial.exporter != FLOOR and not trial.options.get("mutations")

    def is_unexplained(self, trial: Trial) -> bool:
        """Return whether an export finished, but has a problem without a message that names the line."""
        return trial.outcome.silent or trial.outcome is Outcome.NARROW or self.forgets(trial)

    def is_right(self, trial: Trial) -> bool:
        """Return whether an export is correct for all samples, including the arguments it modifies."""
        return trial.right and not self.forgets(trial)


def rights(facts: Facts) -> list[Trial]:
    """Return the exports that are correct at all sizes and can be saved. `torch.export` counts only if no other exporter was tried."""
    right = [trial for trial in facts.tried if facts.is_right(trial) and not trial.only]
    onnx = [trial for trial in right if trial.exporter != FLOOR]
    return onnx if any(trial.exporter != FLOOR for trial in facts.tried) else right


def find_best_trial(facts: Facts) -> Trial | None:
    """Return the best correct export: first without a workaround, then with the fewest nodes, then of the official exporter."""
    return min(rights(facts), key=lambda trial: (not trial.plain, trial.nodes or 0, trial.exporter != OFFICIAL), default=None)
