"""The error for runs that do not make the same calls."""

from __future__ import annotations

from .events import OpEvent
from .refusal import CallSequenceDiverged
from .source_location import line_in


def error_of_other_calls(row: OpEvent | None, other: OpEvent | None, setting: str) -> CallSequenceDiverged:
    """Return the error for a call of the run at the example's sizes that is another one, or none, in a run at this setting."""
    usually = f"{row.op} at {line_in(row.line)}" if row is not None else "no further operator"
    return CallSequenceDiverged(f"the operators called depend on the sizes: {usually}, but {format_call(other)} at {setting}")


def format_call(row: OpEvent | None) -> str:
    """Return which operator is called."""
    return str(row.op) if row is not None else "no further operator"
