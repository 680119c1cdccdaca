"""Write what can be pasted: the user's own lines, changed; a translation of their operator, begun; the lines that carry state."""

from __future__ import annotations

import re
from collections.abc import Sequence

import torch

from .facts import Facts
from .lines import SourceLine
from .rewrite import as_cond, checked_in_python, rewritten
from .rewrite_calls import as_vmap, with_a_copy

VALUES = re.compile(r"is the constant \d+ after|data-dependent expression|data-dependent branching|FrozenDimension|only .* is exported")
FOREIGN = re.compile(r"op='([\w.:]+)', overload='(\w+)'|cannot export ([\w.]+)")
CHANGED = re.compile(r"the model changes ([\w.]+)[, ]")
STATE = """program = exportlab.to_onnx({model}, args, "model.onnx", kwargs=kwargs{shapes}, mutations="outputs")
state = {{name: value.numpy() for name, value in program.report.state.items()}}  # of the first call
results = session.run(None, {{{feeds}, **state}})  # session = onnxruntime.InferenceSession("model.onnx")
state = dict(zip(state, results[-len(state):]))  # of the next call"""
RETURNED = """program = exportlab.to_onnx({model}, args, "model.onnx", kwargs=kwargs{shapes}, mutations="outputs")
changed, feeds = program.report.mutations, {{{given}}}
results = session.run(None, feeds)  # session = onnxruntime.InferenceSession("model.onnx")
feeds |= dict(zip(changed, results[-len(changed):]))  # what the call left in its arguments, for the next one"""
OR_COPIED = "# or, where nobody reads it after the call"
SKELETON = '''def {name}(g, {arguments}):
    """{schema}"""
    raise NotImplementedError("the same in nodes of ONNX: g.Mul(x, y) appends one and returns what it gives; y may be a number")


exportlab.export("{exporter}", {model}, args, kwargs{shapes}, custom_translation_table={{torch.ops.{op}: {name}}}).save("model.onnx")'''


def of_refusal(message: str, place: SourceLine | None, facts: Facts) -> str:
    """Return what may be pasted to get past a refusal; empty where nothing is known."""
    if place is not None and VALUES.search(message):
        return _changed_test(place)
    if changed := CHANGED.search(message):
        return of_change(changed[1], place, facts)
    op = next((name for groups in FOREIGN.findall(message) if (name := _title(groups)) in _schemas(facts)), "")
    return skeleton(op, _schemas(facts)[op], facts) if op else ""


def of_test(place: SourceLine | None) -> str:
    """Return the `if` at a line as a `torch.cond`; empty where there is none."""
    return _changed_test(place) if place is not None else ""


def _changed_test(place: SourceLine) -> str:
    return rewritten(checked_in_python, place) or rewritten(as_cond, place) or rewritten(as_vmap, place)


def of_change(name: str, place: SourceLine | None, facts: Facts) -> str:
    """Return how an argument is copied before it is written into; of a buffer, how its state is carried from call to call."""
    arguments = facts.summary.arguments if facts.summary else ()
    if name in arguments:
        copied = rewritten(with_a_copy(name), place) if place is not None else ""
        return _returned(arguments, copied, facts) if returns(facts) else copied
    if facts.kept is not None and name in ("", *facts.kept.names):
        return facts.kept.code
    if any(trial.options.get("mutations") and not trial.right for trial in facts.tried):
        return ""
    feeds = ", ".join(f'"{argument}": {argument}.numpy()' for argument in arguments)
    return STATE.format(model=model_of(facts), shapes=shapes_of(facts), feeds=feeds)


def _returned(arguments: Sequence[str], copied: str, facts: Facts) -> str:
    """How what is left in the arguments comes out and goes in again; and the copy, where that is all that is written into."""
    given = ", ".join(f'"{argument}": {argument}.numpy()' for argument in arguments)
    lines = RETURNED.format(model=model_of(facts), shapes=shapes_of(facts), given=given)
    alone = facts.eager is not None and len(facts.eager.changes) == 1
    return f"{lines}\n{OR_COPIED}\n{copied}" if alone and copied else lines


def returns(facts: Facts) -> bool:
    """Return whether a file that gives the changed arguments back as outputs was seen to be right."""
    names = facts.eager.changes if facts.eager else ()
    right = any(trial.right and trial.options.get("mutations") for trial in facts.tried)
    return right and set(names) <= set(facts.summary.arguments if facts.summary else ())


def skeleton(op: str, schema: str, facts: Facts) -> str:
    """Return a translation of an operator, to be written by the user, with its arguments by name, and the line that passes it."""
    parsed = torch._C.parse_schema(schema)
    arguments = ", ".join(argument.name for argument in parsed.arguments)
    return SKELETON.format(
        name=op.split(".")[1], arguments=arguments, schema=schema, exporter="to_onnx", model=model_of(facts), shapes=shapes_of(facts), op=op
    )


def model_of(facts: Facts) -> str:
    """Return what is exported, as it stands in a printed line: `module.eval()`, or as it was given where that was asked for."""
    return "module" if facts.summary is not None and facts.summary.train else "module.eval()"


def shapes_of(facts: Facts) -> str:
    """Return `, dynamic_shapes=…`; empty where nothing moves."""
    return f", dynamic_shapes={facts.summary.dynamic_shapes}" if facts.summary and facts.summary.dynamic_shapes != "None" else ""


def _title(groups: tuple[str, ...]) -> str:
    return groups[2] or f"{groups[0].replace('::', '.')}.{groups[1]}"


def _schemas(facts: Facts) -> dict[str, str]:
    return {op: schema for found in facts.captures.values() for op, schema in getattr(found, "schemas", {}).items()}
