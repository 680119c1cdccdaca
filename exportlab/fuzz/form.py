"""How a step of a program is written."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Form:
    """The expression of a step, and the expression that makes its module, where it has one."""

    source: str
    made: str = ""
