"""Write advice for a line of the user's code, and code to paste: a changed line, a translation skeleton, or lines that pass state."""

from __future__ import annotations

import re

from fx2onnx.compat.operators import parse_schema

from .facts import Facts
from .lines import SourceLine
from .rewrite import checked_in_python, loops_around, render_change, to_cond

VALUES = re.compile(r"is the constant \d+ after|data-dependent expression|data-dependent branching|FrozenDimension|only .* is exported")
FOREIGN = re.compile(r"op='([\w.:]+)', overload='(\w+)'|cannot export ([\w.]+)")
CHANGED = re.compile(r"the model changes ([\w.]+)[, ]")
STATE = """program = exportlab.to_onnx({model}, args, "model.onnx", kwargs=kwargs{shapes}, mutations="outputs")
state = {{name: value.numpy() for name, value in program.report.state.items()}}  # for the first call
results = session.run(None, {{{feeds}, **state}})  # session = onnxruntime.InferenceSession("model.onnx")
state = dict(zip(state, results[-len(state):]))  # for the next call"""
RETURNED = """program = exportlab.to_onnx({model}, args, "model.onnx", kwargs=kwargs{shapes}, mutations="outputs")
changed, feeds = program.report.mutations, {{{given}}}
results = session.run(None, feeds)  # session = onnxruntime.InferenceSession("model.onnx")
feeds |= dict(zip(changed, results[-len(changed):]))  # the modified arguments, for the next call"""
SKELETON = '''def {name}(g, {arguments}):
    """{schema}"""
    raise NotImplementedError("write the operator with ONNX nodes: g.Mul(x, y) adds a node and returns its output; y may be a number")


exportlab.export("{exporter}", {model}, args, kwargs{shapes}, custom_translation_table={{torch.ops.{op}: {name}}}).save("model.onnx")'''


LOOPED, BRANCHED, READ = re.compile(r"^for\b"), re.compile(r"\b(if|elif|while|assert)\b"), re.compile(r"\bint\(|\.item\(|\.tolist\(")
BY_VALUE, BY_SIZE = re.compile(r"data-dependent"), re.compile(r"user-specified ranges|is the constant \d+ after")
LOOP_OVER_NUMBERS = "compute on the whole tensor, because this loop iterates over numbers read from a tensor"
LOOP = "compute all iterations at once, with an operator or torch.vmap; or use to_onnx, which exports the loop"
NUMBER = "keep the number a tensor; if it is a size, use the shape of an input, or pass the size as an argument"
WITHIN = (
    "a function called in this line checks a value: disable the check (torch.distributions: validate_args=False), or replace the function"
)


def advise_on_line(message: str, place: SourceLine | None) -> str:
    """Return advice for a line that depends on a value or a size, by the kind of line; empty if the line is a branch."""
    if place is None or not (BY_VALUE.search(message) or BY_SIZE.search(message)):
        return ""
    if BY_SIZE.search(message):
        return LOOP if LOOPED.search(place.source) else ""
    if any(".tolist(" in head for head in loops_around(place)):
        return LOOP_OVER_NUMBERS
    if BRANCHED.search(place.source) or LOOPED.search(place.source):
        return ""
    return NUMBER if READ.search(place.source) else WITHIN


def suggest_code_for_refusal(message: str, place: SourceLine | None, facts: Facts) -> str:
    """Return code to paste that avoids an error; empty if the error has no such fix."""
    if place is not None and VALUES.search(message):
        return _changed_test(place)
    if changed := CHANGED.search(message):
        return suggest_code_for_change(changed[1], facts)
    op = next((name for groups in FOREIGN.findall(message) if (name := _title(groups)) in _schemas(facts)), "")
    return skeleton(op, _schemas(facts)[op], facts) if op else ""


def suggest_code_for_test(place: SourceLine | None) -> str:
    """Return the `if` at a line as a `torch.cond`; empty if the line has no `if`."""
    return _changed_test(place) if place is not None else ""


def _changed_test(place: SourceLine) -> str:
    return render_change(checked_in_python, place) or render_change(to_cond, place)


def suggest_code_for_change(name: str, facts: Facts) -> str:
    """Return code that passes a modified argument or buffer from call to call; empty if no export supports it."""
    arguments = facts.summary.arguments if facts.summary else ()
    given = ", ".join(f'"{argument}": {argument}.numpy()' for argument in arguments)
    if name in arguments:
        return RETURNED.format(model=model_of(facts), shapes=shapes_of(facts), given=given) if returns(facts) else ""
    if facts.kept is not None and name in ("", *facts.kept.names):
        return facts.kept.code
    if any(trial.options.get("mutations") and not trial.right for trial in facts.tried):
        return ""
    return STATE.format(model=model_of(facts), shapes=shapes_of(facts), feeds=given)


def returns(facts: Facts) -> bool:
    """Return whether an export that returns the modified arguments as outputs was correct."""
    names = facts.eager.changes if facts.eager else ()
    right = any(trial.right and trial.options.get("mutations") for trial in facts.tried)
    return right and set(names) <= set(facts.summary.arguments if facts.summary else ())


def skeleton(op: str, schema: str, facts: Facts) -> str:
    """Return the skeleton of a translation for an operator, with its arguments, and the line that passes it to the exporter."""
    parsed = parse_schema(schema)
    arguments = ", ".join(argument.name for argument in parsed.arguments)
    return SKELETON.format(
        name=op.split(".")[1], arguments=arguments, schema=schema, exporter="to_onnx", model=model_of(facts), shapes=shapes_of(facts), op=op
    )


def model_of(facts: Facts) -> str:
    """Return the model as it appears in printed code: `module.eval()`, or `module` with `train=True`."""
    return "module" if facts.summary is not None and facts.summary.train else "module.eval()"


def shapes_of(facts: Facts) -> str:
    """Return `, dynamic_shapes=…`; empty without dynamic dimensions."""
    return f", dynamic_shapes={facts.summary.dynamic_shapes}" if facts.summary and facts.summary.dynamic_shapes != "None" else ""


def _title(groups: tuple[str, ...]) -> str:
    return groups[2] or f"{groups[0].replace('::', '.')}.{groups[1]}"


def _schemas(facts: Facts) -> dict[str, str]:
    return {op: schema for found in facts.captures.values() for op, schema in getattr(found, "schemas", {}).items()}
