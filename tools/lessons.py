"""Prints the stored lessons that can be run here; of the others, on standard error, which programs they need.

usage: lessons.py
"""

from __future__ import annotations

import ast
import re
import sys
from pathlib import Path

from exportlab.programs import MissingProgram, require

LESSONS = Path(__file__).parent.parent / "tutorials"


def needs(lesson: Path) -> list[str]:
    """The programs that a lesson calls `require` with."""
    calls = re.findall(r"^(?:exportlab\.)?require\((.*?)\)", lesson.read_text(encoding="utf-8"), re.MULTILINE)
    return [program for call in calls for program in ast.literal_eval(f"({call},)")]


def runnable() -> list[Path]:
    """The pairs of those lessons that need nothing which is not here."""
    found = []
    for lesson in sorted(LESSONS.glob("[0-9]*.md")):
        try:
            require(*needs(lesson))
            found.append(lesson.with_suffix(".ipynb"))
        except MissingProgram as absent:
            print(f"left out: {lesson.stem}: {absent}", file=sys.stderr)
    return found


if __name__ == "__main__":
    print(*runnable())
