"""Summarise a diagnosis in one line: the best correct export, or the first problem. Write the code for the best export."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ..isolation import Failure
from ..outcomes import Outcome
from ..verification.report import most_rounded
from .advice import model_of, shapes_of
from .events import MODEL, Trial
from .facts import FLOOR, Facts, find_best_trial, rights
from .finding import Finding, headline
from .lines import find_line_of_failure

RIGHT, NOT_RIGHT, UNUSABLE = 0, 1, 2


@dataclass(frozen=True)
class Verdict:
    """The summary line, the exit code, the best export, the reason for the choice, and the code that repeats it."""

    line: str
    code: int
    best: Trial | None = None
    why: str = ""
    recipe: tuple[str, ...] = ()


def verdict_of(facts: Facts, findings: Sequence[Finding]) -> Verdict:
    """Return the verdict, also for input that can't be used."""
    if facts.unusable is not None:
        label = "" if facts.unusable.internal else "unusable input: "
        return Verdict(f"{label}{facts.unusable.error}{_format_location(facts.unusable)}", UNUSABLE)
    chosen = find_best_trial(facts)
    if chosen is None:
        return Verdict(_not_right(facts, findings), NOT_RIGHT)
    others = "".join(f"; {_describe_silent_error(finding)}" for finding in findings if finding.silent and FLOOR not in finding.exporters)
    line = f"correct: {chosen.label} exports the model {_sizes(facts)}{_rounds(chosen)}{others}"
    return Verdict(line, RIGHT, chosen, _why(facts, chosen), _recipe(facts, chosen))


def _format_location(failure: Failure) -> str:
    """Return the line of an error, unless the error text includes it."""
    place = find_line_of_failure(failure)
    return f" (at {place.where})" if place and "(at " not in failure.error else ""


def _sizes(facts: Facts) -> str:
    moving = facts.summary.moving if facts.summary else ()
    if not moving:
        return "at the size of the sample" if facts.summary and len(facts.summary.samples) == 1 else "at the size of the samples"
    return "for " + " and ".join(f"{size.name} {min(size.seen)} to {max(size.seen)}" for size in moving)


def _rounds(chosen: Trial) -> str:
    """Return the rounding difference from eager for the samples. Inputs that `verify` rescaled are ignored: they are less relevant."""
    worst = most_rounded(check for check in chosen.checks if not check.values)
    return "" if worst is None else f"; the results differ from eager by {worst.detail} ({worst.name})"


def _describe_silent_error(finding: Finding) -> str:
    """`dynamo is silently wrong: model.py:14 (x.shape[0] > 4)`."""
    at = f": {finding.place.where} ({finding.place.source})" if finding.place else f": {finding.defect}"
    return f"{' and '.join(finding.exporters)} {'are' if len(finding.exporters) > 1 else 'is'} silently wrong{at}"


def _not_right(facts: Facts, findings: Sequence[Finding]) -> str:
    """`no correct export: dynamo silently exports a wrong model, because of model.py:14 (x.shape[0] > 4)`."""
    if not findings:
        return f"no correct export: {'the time limit was reached' if facts.left_out else 'no exporter was run'}"
    first = findings[0]
    at = f", because of {first.place.where} ({first.place.source})" if first.place else ""
    narrow = next((f"; {t.label} is correct for {t.only}" for t in facts.tried if t.only and t.outcome is Outcome.OK), "")
    return f"no correct export: {headline(first)}{at}{narrow}"


def _why(facts: Facts, chosen: Trial) -> str:
    others = [trial for trial in rights(facts) if trial is not chosen]
    if not others:
        files = [trial for trial in facts.tried if trial.exporter != FLOOR]
        if len(files) < 2:
            return "no other export was tried"
        hidden = "".join(f"; {trial.label} is correct except where a mask hides everything" for trial in files if trial.only_closed)
        besides = " besides torch.export" if len(files) < len(facts.tried) else ""
        return f"the only {'fully ' if hidden else ''}correct one of the {len(files)} exports tried{besides}{hidden}"
    counts = ", ".join(f"{trial.label} with {trial.nodes} nodes" for trial in others)
    return f"correct, with {chosen.nodes} nodes; also correct: {counts}"


def _recipe(facts: Facts, chosen: Trial) -> tuple[str, ...]:
    """Return Python lines that repeat the best export."""
    shapes = f", dynamic_shapes={chosen.shapes}" if chosen.shapes else shapes_of(facts)
    exports, before = (text.replace("{model}", model_of(facts)).replace("{shapes}", shapes) for text in (chosen.exports, chosen.before))
    asked = shapes if MODEL in chosen.exports else ""
    train = facts.summary is not None and facts.summary.train
    more = "".join(f", {name}={value!r}" for name, value in chosen.options.items()) + ", train=True" * train
    call = f'exportlab.export("{chosen.exporter}", {exports}, args, kwargs{asked}{more}).save("model{_suffix(chosen)}")'
    return tuple(line for line in (*before.splitlines(), f"    {call}" if before.endswith(":") else call) if line)


def _suffix(chosen: Trial) -> str:
    return ".pt2" if chosen.exporter == FLOOR else ".onnx"
