"""Define how a step of a program is written as code."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Form:
    """The expression of a step, and the expression that creates its module, if it has one."""

    source: str
    made: str = ""
