"""The error for runs that do not make the same calls."""

from __future__ import annotations

from .lines import line_in
from .notes import Row
from .refusal import LeftOut


def error_of_other_calls(row: Row | None, other: Row | None, setting: str) -> LeftOut:
    """Return the error for a call of the run at the example's sizes that is another one, or none, in a run at this setting."""
    usually = f"{row.op} at {line_in(row.line)}" if row is not None else "no further operator"
    return LeftOut(f"the operators called depend on the sizes: {usually}, but {called(other)} at {setting}")


def called(row: Row | None) -> str:
    """Return which operator is called."""
    return str(row.op) if row is not None else "no further operator"
