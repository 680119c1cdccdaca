"""Hold one defect, and say in a sentence who has it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ..errors.known import KnownError
from ..sweep.records import CLOSED_ALONE
from .events import Trial
from .lines import SourceLine


@dataclass(frozen=True)
class Finding:
    """One defect.

    Attributes:
        stage: one of the stages of known errors, or `timeout`, `crash`, `closed`.
        exporters: those that have it.
        defect: what is wrong, in one sentence. place: the user's own line, where it is known.
        fix: the smallest change, in words. code: the same as lines to paste. known: the known error that was recognised.
        silent: whether nothing is raised. refused: exporters that refuse the same line. warned: those that warn of it.
        detail: the whole message.
    """

    stage: str
    exporters: tuple[str, ...]
    defect: str
    place: SourceLine | None = None
    fix: str = ""
    known: KnownError | None = None
    code: str = ""
    silent: bool = False
    detail: str = ""
    refused: tuple[str, ...] = ()
    warned: tuple[str, ...] = ()


HEADLINES = {  # by stage: of one exporter, and of several
    "silent": ("writes a file that is wrong without a word", "write files that are wrong without a word"),
    "closed": (f"differs from eager {CLOSED_ALONE}", f"differ from eager {CLOSED_ALONE}"),
    "warned": ("writes a file that leaves your arguments as they were, and warns of it",) * 2,
    "capture": ("cannot capture the model", "cannot capture the model"),
    "decomposition": ("cannot take an operator apart", "cannot take an operator apart"),
    "translation": ("cannot translate the model", "cannot translate the model"),
    "optimiser": ("fails while it makes the graph smaller", "fail while they make the graph smaller"),
    "saving": ("makes what cannot be written", "make what cannot be written"),
    "load": ("writes a file that ONNX Runtime does not load", "write files that ONNX Runtime does not load"),
    "run": ("writes a file that ONNX Runtime does not run", "write files that ONNX Runtime does not run"),
    "narrow": ("refuses a call that eager takes", "refuse a call that eager takes"),
    "timeout": ("does not come to an end", "do not come to an end"),
    "crash": ("dies", "die"),
}


def make_hidden_mask_finding(trial: Trial) -> Finding:
    """Return what an export has that is wrong only where a mask hides everything."""
    check = next(check for check in trial.checks if check.failed)
    fix = "none, if no call of yours hides everything"
    return Finding("closed", (trial.label,), f"{check.given}: {check.detail}", fix=fix, detail=check.detail)


def headline(finding: Finding) -> str:
    """Return in a sentence who has it, and what they do: `dynamo and torch.export cannot capture the model`."""
    several = len(finding.exporters) > 1
    return f"{join_names(finding.exporters)} {HEADLINES[finding.stage][several]}"


def describe_finding(finding: Finding) -> str:
    """Return the sentence, who refuses the same line, and what it is."""
    return f"{claim(finding)}: {finding.defect}"


def claim(finding: Finding) -> str:
    """Return the sentence, and who warns of the same line or refuses it."""
    refused = f"; {join_names(finding.refused)} refuse{'s' * (len(finding.refused) == 1)} it" if finding.refused else ""
    warned = f"; {join_names(finding.warned)} warn{'s' * (len(finding.warned) == 1)} of it" if finding.warned else ""
    return f"{headline(finding)}{warned}{refused}"


def join_names(names: Sequence[str]) -> str:
    """Return `a, b and c`."""
    return " and ".join(filter(None, (", ".join(names[:-1]), names[-1])))
