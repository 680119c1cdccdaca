"""Define a finding, and describe it in a sentence."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ..errors.known import KnownError
from ..exporters.to_onnx import shown_path
from ..isolation import Failure
from ..sweep.records import CLOSED_ALONE
from .events import Trial
from .failures import sentence
from .lines import SourceLine


@dataclass(frozen=True)
class Finding:
    """One defect.

    Attributes:
        stage: a stage of known errors, or `timeout`, `crash`, `closed`, `internal` (of the exporter), `doctor` (of exportlab).
        exporters: the affected exporters.
        defect: the problem, in one sentence. place: the line of the user's code, if known.
        fix: the smallest change, in words. code: the change as lines to paste. known: the matching known error.
        silent: whether the export is wrong without an error. refused: exporters that raise an error at the same line.
        warned: exporters that print a warning about it.
        detail: the full message.
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


REPORT = "This is a defect of exportlab and not of your model: please report it with this message"
HEADLINES = {  # by stage: for one exporter, and for several
    "silent": ("silently exports a wrong model", "silently export a wrong model"),
    "closed": (f"differs from eager {CLOSED_ALONE}", f"differ from eager {CLOSED_ALONE}"),
    "warned": (
        "exports a model that does not modify your arguments, with a warning",
        "export a model that does not modify your arguments, with a warning",
    ),
    "capture": ("cannot capture the model", "cannot capture the model"),
    "decomposition": ("cannot decompose an operator", "cannot decompose an operator"),
    "translation": ("cannot translate the model", "cannot translate the model"),
    "optimiser": ("fails while optimising the graph", "fail while optimising the graph"),
    "internal": ("has an internal error", "have internal errors"),
    "doctor": ("was not examined", "were not examined"),
    "saving": ("exports a model that cannot be saved", "export a model that cannot be saved"),
    "load": ("exports a model that ONNX Runtime cannot load", "export a model that ONNX Runtime cannot load"),
    "run": ("exports a model that ONNX Runtime cannot run", "export a model that ONNX Runtime cannot run"),
    "narrow": ("exports a model that rejects inputs that eager accepts", "export a model that rejects inputs that eager accepts"),
    "timeout": ("does not finish", "do not finish"),
    "crash": ("crashes", "crash"),
}


def make_hidden_mask_finding(trial: Trial) -> Finding:
    """Return the finding for an export that is wrong only where a mask hides everything."""
    check = next(check for check in trial.checks if check.failed)
    fix = "not needed if your inputs never mask an entire row"
    return Finding("closed", (trial.label,), f"{check.given}: {check.detail}", fix=fix, detail=check.detail)


def make_internal_finding(trial: Trial, failure: Failure) -> Finding:
    """Return the finding for a defect of `to_onnx` or of this package, for which no line of the model is named."""
    if "InternalError" in failure.types:
        return Finding("internal", (trial.label,), sentence(failure), detail=failure.message)
    frame = failure.frames[-1]
    defect = f"internal error in exportlab: {failure.error} at {shown_path(frame.file)}:{frame.line} in {frame.function}. {REPORT}"
    return Finding("doctor", (trial.label,), defect, detail=failure.message)


def headline(finding: Finding) -> str:
    """Return the exporters and the kind of failure: `dynamo and torch.export cannot capture the model`."""
    several = len(finding.exporters) > 1
    return f"{join_names(finding.exporters)} {HEADLINES[finding.stage][several]}"


def describe_finding(finding: Finding) -> str:
    """Return the whole finding in a sentence, ending with the defect."""
    return f"{claim(finding)}: {finding.defect}"


def claim(finding: Finding) -> str:
    """Return the headline, with the exporters that print a warning or raise an error at the same line."""
    refused = f"; {join_names(finding.refused)} raise{'s' * (len(finding.refused) == 1)} an error" if finding.refused else ""
    warned = f"; {join_names(finding.warned)} print{'s' * (len(finding.warned) == 1)} a warning" if finding.warned else ""
    return f"{headline(finding)}{warned}{refused}"


def join_names(names: Sequence[str]) -> str:
    """Return `a, b and c`."""
    return " and ".join(filter(None, (", ".join(names[:-1]), names[-1])))
