"""The error for runs that make different calls."""

from __future__ import annotations

from .events import OpEvent
from .refusal import CallSequenceDiverged
from .source_location import line_in


def error_of_other_calls(row: OpEvent | None, other: OpEvent | None, setting: str) -> CallSequenceDiverged:
    """Return the error for a call of the example's run that is missing or different in the run at `setting`."""
    usually = f"{row.op} at {line_in(row.line)}" if row is not None else "no further operator"
    return CallSequenceDiverged(f"the operators called depend on the sizes: {usually}, but {format_call(other)} at {setting}")


def format_call(row: OpEvent | None) -> str:
    """Return the name of the operator called."""
    return str(row.op) if row is not None else "no further operator"
