"""Interpret failed exports: the defect, the line of the user's code, the known error and the smallest change."""

from __future__ import annotations

import linecache
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from ..errors.known import KnownError, get, recognise, smallest_change
from ..isolation import Failure
from ..outcomes import Outcome
from ..verification.report import Check
from .advice import CHANGED, advise_on_line, returns, suggest_code_for_change, suggest_code_for_refusal, suggest_code_for_test
from .apply_fixes import attach_change
from .events import Captured, CarriedState, Summary, Trial
from .facts import FLOOR, Facts, find_best_trial
from .failures import sentence, stage_of
from .finding import Finding, join_names, make_hidden_mask_finding, make_internal_finding
from .hang import hangs
from .lines import SourceLine, find_line_of_failure, find_note_with_line, own_frames, source_line

DISPATCH = re.compile(r"OpOverload\(op='([\w.:]+)', overload='(\w+)'\)")
LACKS = re.compile(r"cannot export ([\w.]*\w)")
RECORD = re.compile(r"Found <class '[\w.]*\.(\w+)'> in output, which is not a known type")
NARROW = re.compile(r"\bb?float16\b|autocast")
OF_THE_CAPTURE = "make the export behave like eager: this condition depends on how the model is run, not on its inputs"
RANDOM = re.compile(r"\b(rand\w*|normal|bernoulli|multinomial|poisson|dropout|native_dropout|uniform)_?\.")


def findings_of(facts: Facts) -> list[Finding]:
    """Return the findings for exports without workarounds, merged by line. Silent ones are first, those of torch.export last."""
    found = [finding for trial in facts.tried if trial.plain for finding in _findings(trial, facts)]
    merged = _merge_findings(sorted(found, key=lambda finding: (not finding.silent, FLOOR in finding.exporters)))
    return [replace(finding, fix=_or_another(finding, facts)) for finding in attach_change(merged, facts)]


def suspects(facts: Facts) -> list[SourceLine]:
    """Return the lines that may cause the failures, starting with those of the findings."""
    named = [finding.place for trial in facts.tried if trial.plain for finding in _findings(trial, facts)]
    whole = [source_line(file, line) for trial in facts.tried if trial.plain and trial.failure for file, line in own_frames(trial.failure)]
    found = [place for place in (*facts.parted.values(), *named, *whole) if place is not None]
    return list(dict.fromkeys(found))


def _or_another(finding: Finding, facts: Facts) -> str:
    """Return the suggested change and, as an alternative, the export that is correct."""
    chosen = find_best_trial(facts)
    if chosen is None or chosen.label in finding.exporters:
        return finding.fix
    return "; or ".join(filter(None, (finding.fix, f"use {chosen.label}, which exports this model correctly")))


def _merge_findings(found: Sequence[Finding]) -> list[Finding]:
    """Return one finding per line and stage. A silent failure and an error of another exporter at the same line are merged."""
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
    """Add the exporters of the other finding to the first one: as affected, warning or raising an error."""
    first = replace(first, known=first.known or other.known, fix=first.fix or other.fix, code=first.code or other.code)
    if first.silent and other.stage == "warned":
        return replace(first, warned=(*first.warned, *other.exporters))
    if first.silent and not other.silent:
        return replace(first, refused=(*first.refused, *other.exporters))
    return replace(first, exporters=(*first.exporters, *other.exporters))


def _findings(trial: Trial, facts: Facts) -> Iterator[Finding]:
    if trial.save is not None:
        yield _make_failure_finding(trial, trial.save, "saving", facts)
    if facts.forgets(trial):
        yield _make_arguments_finding(trial, facts)
    if trial.outcome.silent:
        yield make_hidden_mask_finding(trial) if trial.only_closed else _silent(trial, facts)
    elif trial.outcome is Outcome.NARROW:
        yield _narrow(trial, facts)
    elif trial.failure is not None and trial.failure.internal:
        yield make_internal_finding(trial, trial.failure)
    elif trial.outcome in (Outcome.TIMEOUT, Outcome.CRASH) and trial.failure:
        yield _make_end_finding(trial, trial.failure, facts)
    elif trial.failure is not None:
        yield _make_failure_finding(trial, trial.failure, stage_of(trial.outcome, trial.failure), facts)
    elif trial.outcome is Outcome.RUN:
        yield _refused_run(trial)


def _make_end_finding(trial: Trial, failure: Failure, facts: Facts) -> Finding:
    place = find_line_of_failure(failure)
    defect = f"the time limit was reached at this line ({failure.error.partition(': ')[2]})" if hangs(failure) and place else failure.error
    return Finding(str(trial.outcome), (trial.label,), defect, place or _begin(facts))


def _make_failure_finding(trial: Trial, failure: Failure, stage: str, facts: Facts) -> Finding:
    place = _place(trial, failure, facts)
    kept = facts.kept is not None and "MutationError" in failure.types
    message = find_note_with_line(failure)[0] or failure.message  # the message about the line
    by_line = advise_on_line(message, place)
    known = None if kept else _recognise_error(message, place)
    if known is not None and known.name == "branch_on_value" and by_line:
        known = None  # the line is not a branch
    name = next(iter(CHANGED.findall(failure.message)), "")
    if facts.summary is not None and name in facts.summary.arguments:
        code, fix = suggest_code_for_change(name, facts), _advise_on_arguments(name, facts)
        return Finding(stage, (trial.label,), sentence(failure), place, fix, code=code, detail=failure.message)
    return Finding(
        stage=stage,
        exporters=(trial.label,),
        defect=sentence(failure),
        place=place,
        fix=(by_line if known is None else "") or smallest_change(message, known, _source(place)),
        known=known,
        code=suggest_code_for_refusal(message, place, facts),
        detail=failure.message,
    )


def _place(trial: Trial, failure: Failure, facts: Facts) -> SourceLine | None:
    """Return the line of a failure: from its traceback or message, its node, its operator, or the write to a buffer."""
    if failure is trial.save or "Unsupported input type" in failure.message:
        return _begin(facts)
    if "MutationError" in failure.types:
        return find_line_of_failure(failure) or _find_state_write(facts)
    if "functional graph" in failure.message:
        return trial.at or _find_inplace_operator(facts)
    if (record := RECORD.search(failure.message)) is not None:
        return _made_at(record[1], facts) or _begin(facts)
    if (noted := find_note_with_line(failure)[1]) is not None:
        return noted
    operator = _find_operator_line(failure.message, facts) or _find_narrow_cast(failure.message, facts)
    return (
        (operator if "UnsupportedOps" in failure.types else None)
        or find_line_of_failure(failure)
        or operator
        or trial.at
        or _find_other_refusal(facts)
        or facts.parted.get("sample")
    )


def _made_at(name: str, facts: Facts) -> SourceLine | None:
    """Return the line in the model's source file that creates an instance of a class."""
    begin = _begin(facts)
    lines = enumerate(linecache.getlines(begin.file), 1) if begin is not None else ()
    made = re.compile(rf"(?<!class )\b{name}\(")
    return next((source_line(begin.file, line) for line, text in lines if begin is not None and made.search(text)), None)


def _find_narrow_cast(message: str, facts: Facts) -> SourceLine | None:
    """Return the line in the model's source file that uses autocast, if a message without a line is about a low-precision dtype."""
    begin = _begin(facts)
    lines = enumerate(linecache.getlines(begin.file), 1) if begin is not None and NARROW.search(message) else ()
    return next((source_line(begin.file, line) for line, text in lines if begin is not None and "autocast(" in text), None)


def _find_inplace_operator(facts: Facts) -> SourceLine | None:
    """Return the line of the first in-place operator, whose name ends with an underscore."""
    lines = next((found.lines for found in facts.captures.values() if isinstance(found, Captured)), {})
    return next((place for op, place in lines.items() if op.split(".")[1:2] and op.split(".")[1].endswith("_")), None)


def _find_state_write(facts: Facts) -> SourceLine | None:
    """Return the line at which the captured graph writes to a buffer or an input."""
    return next((found.writes for found in facts.captures.values() if isinstance(found, Captured) and found.writes), None)


def _find_operator_line(message: str, facts: Facts) -> SourceLine | None:
    """Return the line that calls the operator in a message. A strict capture also has lines within functions that `forward` calls."""
    captured = [found for how in ("strict", *facts.captures) if isinstance(found := facts.captures.get(how), Captured)]
    named = [f"{name}.{overload}" for name, overload in DISPATCH.findall(message)] + LACKS.findall(message)
    return next((found.lines[op] for found in captured for op in named if op in found.lines), None)


def _find_other_refusal(facts: Facts) -> SourceLine | None:
    """Return the line at which another exporter or the capture fails."""
    failures = [found for found in facts.captures.values() if isinstance(found, Failure)]
    return next(filter(None, map(find_line_of_failure, [*failures, *(t.failure for t in facts.tried)])), None)


def _recognise_error(text: str, place: SourceLine | None) -> KnownError | None:
    """Return the known error that matches a message and its line. Silent errors have no message and are ignored."""
    return next((known for known in recognise(text, _source(place)) if known.stage != "silent"), None)


def _source(place: SourceLine | None) -> str:
    return place.source if place else ""


def _known_by_operator(failed: Sequence[Check], op: str) -> KnownError | None:
    """Return the known silent error of the operator with the largest difference, if the numbers match it."""
    return next((known for known in recognise(_text(failed), op) if known.stage == "silent" and known.op), None)


def _refused_run(trial: Trial) -> Finding:
    check = _first(trial, Outcome.RUN)
    known = _recognise_error(check.detail, trial.at)
    where = f" at node {trial.node}" + (f" ({trial.op})" if trial.op else "") if trial.node else ""
    defect = f"the runtime raises an error{where}: {check.detail}"
    return Finding("run", (trial.label,), defect, trial.at, smallest_change(check.detail, known), known)


def _first(trial: Trial, outcome: Outcome) -> Check:
    return next(check for check in trial.checks if check.outcome == outcome)


def _silent(trial: Trial, facts: Facts) -> Finding:
    """Explain wrong results without an error, by the check that failed."""
    failed = [check for check in trial.checks if check.outcome.silent or check.outcome is Outcome.RUN]
    if facts.eager is not None and facts.eager.random:
        return _make_random_finding(trial, failed, facts)
    names = {check.name for check in failed}
    for check, explain in EXPLAINED:
        if check in names:
            return explain(trial, failed, facts)
    return _make_contract_finding(trial, failed, facts)


def _text(failed: Sequence[Check]) -> str:
    return "\n".join(f"{check.name}: {check.detail}" for check in failed)


def _make_silent_finding(
    trial: Trial,
    failed: Sequence[Check],
    defect: str,
    place: SourceLine | None,
    fix: str = "",
    known: KnownError | None = None,
    code: str = "",
) -> Finding:
    advice = fix or (smallest_change("", known) if known else "")
    return Finding("silent", (trial.label,), defect, place, advice, known, code, silent=True, detail=_text(failed))


def _make_numbers_finding(trial: Trial, failed: Sequence[Check], facts: Facts) -> Finding:
    """Explain an export that is wrong for the sample it was exported with, by the node with the largest difference."""
    divergence, parted = facts.diverged.get(trial.label), facts.parted.get("capture")
    worst = f"{failed[0].detail.removeprefix('output').lstrip(':')}".strip()
    if parted is not None:
        defect = f"after this line, the capture runs different code from eager: {worst}"
        return _make_silent_finding(trial, failed, defect, parted, OF_THE_CAPTURE)
    if facts.kept is not None:
        return _make_attribute_finding(trial, failed, facts.kept)
    if divergence is None:
        return _make_silent_finding(trial, failed, f"the results differ from eager: {worst}", trial.at)
    made_by = f", exported as {' and '.join(divergence.onnx)}" if divergence.onnx else ""
    defect = f"the difference arises at node {divergence.node} ({divergence.op}{made_by}): {worst}"
    return _make_silent_finding(trial, failed, defect, divergence.at, known=_known_by_operator(failed, divergence.op))


def _make_random_finding(trial: Trial, failed: Sequence[Check], facts: Facts) -> Finding:
    place = find_random_draw(facts)
    defect = "the model draws random numbers, so its results differ from call to call"
    return _make_silent_finding(trial, failed, defect, place or _begin(facts), _advise_on_random(facts))


def find_random_draw(facts: Facts) -> SourceLine | None:
    """Return the line at which the model draws random numbers, if a capture includes it."""
    lines = next((found.lines for found in facts.captures.values() if isinstance(found, Captured)), {})
    return next((place for op, place in lines.items() if RANDOM.search(op)), None)


def _graph(facts: Facts) -> str:
    return "\n".join(line for found in facts.captures.values() if isinstance(found, Captured) for line in found.graph)


def _advise_on_random(facts: Facts) -> str:
    training = facts.eager is not None and facts.eager.training
    return "call model.eval() first, if this is dropout" if training else "draw the numbers outside the model and pass them as an input"


def _make_sizes_finding(trial: Trial, failed: Sequence[Check], facts: Facts) -> Finding:
    """Explain an export that is correct at its own size but not at another: find the value that became a constant."""
    check = next(check for check in failed if check.name == "unseen size")
    if facts.summary is not None and facts.summary.changing:
        return _make_burnt_in_finding(trial, failed, facts.summary)
    refusal, divergence = _refusal("FrozenDimension", facts), facts.diverged.get(trial.label)
    place = find_line_of_failure(refusal) or (divergence.at if divergence else None) or trial.at or facts.parted.get("sample")
    why = f"{refusal.error.partition(': ')[2].partition('. ')[0]}; " if refusal else ""
    defect = f"correct at the size of the export, but not at {check.inputs}: {check.detail.removeprefix('output').lstrip(': ')}"
    known = _recognise_error(refusal.message, place) if refusal else _known_by_operator([check], divergence.op) if divergence else None
    fix = "" if refusal is None else smallest_change(refusal.message, known if known and known.stage != "silent" else None)
    finding = _make_silent_finding(trial, [check], why + defect, place, fix, known, suggest_code_for_test(place))
    return replace(finding, silent=trial.exporter != FLOOR)  # a program of torch.export checks its sizes


def _narrow(trial: Trial, facts: Facts) -> Finding:
    """Explain an exported model that raises an error for another sample: find the condition that the first sample decided."""
    failed = [check for check in trial.checks if check.outcome is Outcome.NARROW]
    if facts.summary is not None and facts.summary.changing:
        finding = _make_burnt_in_finding(trial, failed, facts.summary)
    else:
        refusal = _refusal("FrozenDimension", facts)
        place = find_line_of_failure(refusal) or trial.at or facts.parted.get("sample")
        known = _recognise_error(failed[0].detail, place)
        fix, code = smallest_change(failed[0].detail, known), suggest_code_for_test(find_line_of_failure(refusal))
        finding = _make_silent_finding(trial, failed, f"error at {failed[0].inputs}: {failed[0].detail}", place, fix, known, code)
    return replace(finding, stage="narrow", silent=False)


def _make_burnt_in_finding(trial: Trial, failed: Sequence[Check], summary: Summary) -> Finding:
    """Explain a Python number among the arguments that became a constant of the exported model."""
    names = [name.partition(" ")[0] for name in summary.changing]
    code = "\n".join(f"{name} = torch.tensor({name})  # in each sample, and in each later call" for name in names)
    defect = f"numbers become constants in the exported model, but these arguments change: {'; '.join(summary.changing)}"
    return _make_silent_finding(trial, failed, defect, summary.at, "pass it as a tensor", get("number_burnt_in"), code)


def _make_identity_finding(trial: Trial, failed: Sequence[Check], facts: Facts) -> Finding:
    names = " and ".join(facts.summary.twice) if facts.summary else ""
    defect = f"{names} are the same tensor in the first sample, so the exported model uses one of them for both"
    fix = f"pass separate tensors in the example: {names.rpartition(' ')[2]}.clone()"
    return _make_silent_finding(trial, failed, defect, _begin(facts), fix, get("same_tensor_twice"))


def _make_state_finding(trial: Trial, failed: Sequence[Check], facts: Facts) -> Finding:
    if facts.kept is not None:
        return _make_attribute_finding(trial, failed, facts.kept)
    refusal = _refusal("MutationError", facts)
    place, fix = find_line_of_failure(refusal) or _find_state_write(facts) or _begin(facts), get("state_in_a_buffer").advice
    defect = "the model changes its state in every call, but the exported model does not keep the new state"
    return _make_silent_finding(trial, failed, defect, place, fix, get("buffer_that_stays"), suggest_code_for_change("", facts))


def _make_attribute_finding(trial: Trial, failed: Sequence[Check], kept: CarriedState) -> Finding:
    """Explain state in attributes, which an exported model doesn't update."""
    if kept.once:
        defect = f"the first call initialises {join_names(kept.names)}, and the exported model repeats this in every call"
        fix = f"call the model once before the export; verified with {join_names(kept.exporters)}"
        return _make_silent_finding(trial, failed, defect, kept.at, fix, code=kept.code)
    defect = f"the model updates {join_names(kept.names)} in each call, but the exported model keeps the value from the capture"
    fix = (
        f"pass the state in and return it; verified with {join_names(kept.exporters)}"
        if kept.code
        else "make the state an argument and a return value of forward"
    )
    return _make_silent_finding(trial, failed, defect, kept.at, fix, code=kept.code)


def _make_arguments_finding(trial: Trial, facts: Facts) -> Finding:
    """Explain correct outputs with arguments that are not modified as in eager."""
    names = facts.eager.changes if facts.eager else ()
    place = find_line_of_failure(_refusal("MutationError", facts)) or _find_state_write(facts) or _begin(facts)
    defect = f"the model writes into {join_names(names)}, which the caller can read after the call; the exported model does not change it"
    finding = _make_silent_finding(
        trial, [], defect, place, _advise_on_arguments(names[0], facts), code=suggest_code_for_change(names[0], facts)
    )
    return replace(finding, stage="warned", silent=False) if trial.warns_of_its_arguments else finding


def _advise_on_arguments(name: str, facts: Facts) -> str:
    copied = f"write into a copy: {name}.clone()"
    if not returns(facts):
        return copied
    return f"return it as an output and pass it to the next call; or, if you do not read it after the call, {copied}"


def _make_values_finding(trial: Trial, failed: Sequence[Check], facts: Facts) -> Finding:
    place = _find_other_refusal(facts) or (facts.diverged[trial.label].at if trial.label in facts.diverged else None)
    place = place or facts.parted.get("sample") or _find_narrow_cast(_graph(facts), facts)
    check = next(check for check in failed if check.name == "other values")
    defect = f"correct for the values of the sample, but not for others: {check.detail}"
    return _make_silent_finding(trial, failed, defect, place, code=suggest_code_for_test(place))


def _make_contract_finding(trial: Trial, failed: Sequence[Check], facts: Facts) -> Finding:
    return _make_silent_finding(trial, failed, f"the exported model does not match the request: {failed[0].name}: {failed[0].detail}", None)


Explain = Callable[[Trial, Sequence[Check], Facts], Finding]
EXPLAINED: tuple[tuple[str, Explain], ...] = (  # in this order: an export that fails for its own inputs fails everywhere
    ("export inputs", _make_numbers_finding),
    ("separate tensors", _make_identity_finding),
    ("unseen size", _make_sizes_finding),
    ("called twice", _make_state_finding),
    ("other values", _make_values_finding),
)


def _refusal(kind: str, facts: Facts) -> Failure | None:
    """Return the error of `to_onnx` for a problem that is silent in other exporters."""
    refusals = (*(trial.failure for trial in facts.tried), facts.refusal)
    return next((failure for failure in refusals if failure is not None and kind in failure.types), None)


def _begin(facts: Facts) -> SourceLine | None:
    return facts.summary.at if facts.summary else None
