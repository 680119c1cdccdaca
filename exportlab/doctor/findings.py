"""Tell what a failed export means: the defect, the user's own line, the known error, the smallest change."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from ..errors.known import KnownError, get, recognise, smallest_change
from ..isolation import Failure
from ..outcomes import Outcome
from ..verification.report import Check
from .events import Captured, Trial
from .facts import FLOOR, Facts, best
from .lines import SourceLine, of_failure

DISPATCH = re.compile(r"OpOverload\(op='([\w.:]+)', overload='(\w+)'\)")
DECOMPOSE = {"run_decompositions", "decompose_with_registry", "_decompose_exported_program"}


@dataclass(frozen=True)
class Finding:
    """One defect.

    Attributes:
        stage: one of the stages of known errors, or `timeout`, `crash`.
        exporters: those that have it.
        defect: what is wrong, in one sentence. place: the user's own line, where it is known.
        fix: the smallest change. known: title of the known error.
        silent: whether nothing is raised. refused: exporters that refuse the same line.
        detail: the whole message.
    """

    stage: str
    exporters: tuple[str, ...]
    defect: str
    place: SourceLine | None = None
    fix: str = ""
    known: str = ""
    silent: bool = False
    detail: str = ""
    refused: tuple[str, ...] = ()


def told(finding: Finding) -> str:
    """Return in one line who has it, at which stage, and what it is."""
    refused = f" ({', '.join(finding.refused)} refuse{'s' * (len(finding.refused) == 1)} it)" if finding.refused else ""
    return f"{', '.join(finding.exporters)}, {finding.stage}: {finding.defect}{refused}"


def findings_of(facts: Facts) -> list[Finding]:
    """Return what is wrong with each plain export that failed; the same line is told once. Silent ones first, torch.export's own last."""
    found = [finding for trial in facts.tried if trial.plain for finding in _findings(trial, facts)]
    merged = _merged(sorted(found, key=lambda finding: (not finding.silent, FLOOR in finding.exporters)))
    return [replace(finding, fix=_or_another(finding, facts)) for finding in merged]


def _or_another(finding: Finding, facts: Facts) -> str:
    """The change, or the export that was seen to be right."""
    chosen = best(facts)
    if chosen is None or chosen.label in finding.exporters:
        return finding.fix
    return "; or: ".join(filter(None, (finding.fix, f"use {chosen.label}, which is right here")))


def _merged(found: Sequence[Finding]) -> list[Finding]:
    """One for each line and stage; what one exporter is silent about and another refuses is one as well."""
    merged: list[Finding] = []
    for finding in found:
        same = next((first for first in merged if _is_same(first, finding)), None)
        if same is None:
            merged.append(finding)
        else:
            merged[merged.index(same)] = _and(same, finding)
    return merged


def _is_same(first: Finding, other: Finding) -> bool:
    if first.place is None or other.place is None:
        return first.stage == other.stage and first.defect == other.defect
    return first.place.where == other.place.where and (first.stage == other.stage or first.silent)


def _and(first: Finding, other: Finding) -> Finding:
    """The first, and that the other exporter has it too, or refuses it."""
    if first.silent and not other.silent:
        return replace(first, refused=(*first.refused, *other.exporters))
    return replace(first, exporters=(*first.exporters, *other.exporters))


def _findings(trial: Trial, facts: Facts) -> Iterator[Finding]:
    if trial.save is not None:
        yield _of_failure(trial, trial.save, "saving", facts)
    if trial.outcome.silent:
        yield _silent(trial, facts)
    elif trial.outcome in (Outcome.TIMEOUT, Outcome.CRASH) and trial.failure:
        yield Finding(str(trial.outcome), (trial.label,), f"the export does not end well: {trial.failure.error}", _begin(facts))
    elif trial.failure is not None:
        yield _of_failure(trial, trial.failure, stage_of(trial.outcome, trial.failure), facts)
    elif trial.outcome is Outcome.RUN:
        yield _refused_run(trial)


def stage_of(outcome: Outcome, failure: Failure) -> str:
    """Return the stage of known errors that a refusal belongs to: of a conversion, from the functions that it went through."""
    if outcome is not Outcome.CONVERT:
        return str(outcome)
    files = " ".join(frame.file for frame in failure.frames)
    if any(part in files for part in ("onnxscript/optimizer", "onnxscript/rewriter", "onnx_passes", "version_converter", "onnx_ir/passes")):
        return "optimiser"
    functions = {frame.function for frame in failure.frames}
    decomposes = "Failed to decompose the FX graph" in failure.message or functions & DECOMPOSE
    return "decomposition" if decomposes else "translation"


def _of_failure(trial: Trial, failure: Failure, stage: str, facts: Facts) -> Finding:
    known = _known(failure.message, silent=False)
    return Finding(
        stage=stage,
        exporters=(trial.label,),
        defect=sentence(failure),
        place=_place(trial, failure, facts),
        fix=smallest_change(failure.message, known),
        known=known.title if known else "",
        detail=failure.message,
    )


def _place(trial: Trial, failure: Failure, facts: Facts) -> SourceLine | None:
    """The line: where the traceback or the message goes through it; the node's; the operator's; where a buffer is written."""
    if failure is trial.save:
        return _begin(facts)
    if "MutationError" in failure.types:
        return of_failure(failure) or _written(facts)
    if "functional graph" in failure.message:
        return trial.at or _in_place(facts)
    return of_failure(failure) or _of_operator(failure.message, facts) or trial.at or _of_others(facts)


def _in_place(facts: Facts) -> SourceLine | None:
    """Where an operator first writes into its argument, which has a name that ends so."""
    lines = next((found.lines for found in facts.captures.values() if isinstance(found, Captured)), {})
    return next((place for op, place in lines.items() if op.split(".")[1:2] and op.split(".")[1].endswith("_")), None)


def _written(facts: Facts) -> SourceLine | None:
    """Where the captured graph writes into what it holds."""
    return next((found.writes for found in facts.captures.values() if isinstance(found, Captured) and found.writes), None)


def sentence(failure: Failure) -> str:
    """Return what it says: of ours without the type, of others that of the first cause, which their own is only wrapped around."""
    if "ToOnnxError" in failure.types:
        return failure.error.partition(": ")[2]
    return failure.message.splitlines()[0] if failure.message else failure.error


def _of_operator(message: str, facts: Facts) -> SourceLine | None:
    """Where the operator is called that a message names."""
    captured = next((found for found in facts.captures.values() if isinstance(found, Captured)), None)
    for name, overload in DISPATCH.findall(message):
        if captured and f"{name}.{overload}" in captured.lines:
            return captured.lines[f"{name}.{overload}"]
    return None


def _of_others(facts: Facts) -> SourceLine | None:
    """The line at which another exporter or the capture refuses the model."""
    failures = [found for found in facts.captures.values() if isinstance(found, Failure)]
    return next(filter(None, map(of_failure, [*failures, *(t.failure for t in facts.tried)])), None)


def _known(text: str, silent: bool) -> KnownError | None:
    return next((known for known in recognise(text) if (known.stage == "silent") == silent), None)


def _refused_run(trial: Trial) -> Finding:
    check = _first(trial, Outcome.RUN)
    known = _known(check.detail, silent=False)
    where = f"the runtime refuses the call at node {trial.node}" + (f" ({trial.op})" if trial.op else "")
    defect = f"{where if trial.node else 'the runtime refuses the call'}: {check.detail}"
    return Finding("run", (trial.label,), defect, trial.at, smallest_change(check.detail, known), known.title if known else "")


def _first(trial: Trial, outcome: Outcome) -> Check:
    return next(check for check in trial.checks if check.outcome == outcome)


def _silent(trial: Trial, facts: Facts) -> Finding:
    """Nothing was raised, and the answer is wrong: why, by which check failed."""
    failed = [check for check in trial.checks if check.outcome.silent or check.outcome is Outcome.RUN]
    names = {check.name for check in failed}
    for check, explain in EXPLAINED:
        if check in names:
            return explain(trial, failed, facts)
    return _by_contract(trial, failed, facts)


def _text(failed: Sequence[Check]) -> str:
    return "\n".join(f"{check.name}: {check.detail}" for check in failed)


def _made(trial: Trial, failed: Sequence[Check], defect: str, place: SourceLine | None, fix: str) -> Finding:
    known = _known(_text(failed), silent=True)
    return Finding(
        "silent", (trial.label,), defect, place, fix or smallest_change(_text(failed), known), known.title if known else "",
        silent=True, detail=_text(failed),
    )  # fmt: skip


def _of_numbers(trial: Trial, failed: Sequence[Check], facts: Facts) -> Finding:
    """Wrong at the very inputs of the export: the node that adds the most to it."""
    if facts.eager is not None and facts.eager.random:
        return _made(trial, failed, "the model draws random numbers, so no two calls agree", _begin(facts), _for_random(facts))
    divergence = facts.diverged.get(trial.label)
    worst = f"{failed[0].detail.removeprefix('output').lstrip(':')}".strip()
    if divergence is None:
        return _made(trial, failed, f"another answer than eager: {worst}", trial.at, "")
    made_by = f", made by {' and '.join(divergence.onnx)}" if divergence.onnx else ""
    return _made(trial, failed, f"the node that does it is {divergence.node} ({divergence.op}{made_by}): {worst}", divergence.at, "")


def _for_random(facts: Facts) -> str:
    in_training = facts.eager is not None and facts.eager.training
    return "model.eval() before the export, if this is a dropout" if in_training else "draw the numbers outside, and pass them as an input"


def _of_sizes(trial: Trial, failed: Sequence[Check], facts: Facts) -> Finding:
    """Right where it was exported, and not at another size: what became a constant."""
    check = next(check for check in failed if check.name == "unseen size")
    refusal = _refusal("FrozenDimension", facts)
    if facts.summary is not None and facts.summary.changing:
        listed = "; ".join(facts.summary.changing)
        return _made(
            trial, failed, f"numbers become constants in the file, and these change: {listed}", _begin(facts), "pass it as a tensor"
        )
    divergence = facts.diverged.get(trial.label)
    place = of_failure(refusal) or (divergence.at if divergence else None) or trial.at
    why = f"{refusal.error.partition(': ')[2].partition('. ')[0]}; " if refusal else ""
    defect = f"right at the size of the export, and not at {check.inputs}: {check.detail.removeprefix('output').lstrip(': ')}"
    fix = "" if refusal is None else get("branch_on_a_size").advice
    return replace(_made(trial, [check], why + defect, place, fix), silent=trial.exporter != FLOOR)  # whose program checks its sizes


def _of_identity(trial: Trial, failed: Sequence[Check], facts: Facts) -> Finding:
    names = " and ".join(facts.summary.twice) if facts.summary else ""
    defect = f"{names} are the same tensor in the first sample, so the file takes one for the other"
    return _made(trial, failed, defect, _begin(facts), f"give each a tensor of its own in the example: {names.rpartition(' ')[2]}.clone()")


def _of_state(trial: Trial, failed: Sequence[Check], facts: Facts) -> Finding:
    refusal = _refusal("MutationError", facts)
    place, fix = of_failure(refusal) or _written(facts) or _begin(facts), get("state_in_a_buffer").advice
    return _made(trial, failed, "the model changes its state in every call, and the file forgets it", place, fix)


def _of_values(trial: Trial, failed: Sequence[Check], facts: Facts) -> Finding:
    place = _of_others(facts) or (facts.diverged[trial.label].at if trial.label in facts.diverged else None)
    check = next(check for check in failed if check.name == "other values")
    return _made(trial, failed, f"right for the values of the sample, and not for others: {check.detail}", place, "")


def _by_contract(trial: Trial, failed: Sequence[Check], facts: Facts) -> Finding:
    return _made(trial, failed, f"the file is not what was asked for: {failed[0].name}: {failed[0].detail}", None, "")


Explain = Callable[[Trial, Sequence[Check], Facts], Finding]
EXPLAINED: tuple[tuple[str, Explain], ...] = (  # in this order: what fails at the inputs of the export fails everywhere
    ("export inputs", _of_numbers),
    ("separate tensors", _of_identity),
    ("unseen size", _of_sizes),
    ("called twice", _of_state),
    ("other values", _of_values),
)


def _refusal(kind: str, facts: Facts) -> Failure | None:
    """The refusal of `to_onnx` that names what others keep silent about."""
    return next((t.failure for t in facts.tried if t.failure is not None and kind in t.failure.types), None)


def _begin(facts: Facts) -> SourceLine | None:
    return facts.summary.at if facts.summary else None
