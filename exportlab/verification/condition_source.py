"""Which of several conditions of one line is tested at an instruction: of `0 < x < 1`, of `a and b`."""

from __future__ import annotations

import ast
import dis
import linecache
from functools import lru_cache
from types import CodeType


@lru_cache(maxsize=4096)
def part_of(code: CodeType, offset: int) -> str:
    """Return the expression that an instruction tests, where its line tests several; nothing where it tests one.

    A loop may test one expression by two instructions: it is told by its place in the source, and of a chain by its turn.
    """
    instructions = list(dis.get_instructions(code))
    here = next((i.positions for i in instructions if i.offset == offset), None)
    text = _source(code.co_filename, here) if here else ""
    if here is None or not text:
        return ""
    jumps = [i for i in instructions if "JUMP" in i.opname and "IF" in i.opname and i.positions and i.positions.lineno == here.lineno]
    links = _links(text)
    turn = sum(jump.offset < offset for jump in jumps if jump.positions == here)
    several = len(links) > 1 or len({jump.positions for jump in jumps}) > 1
    return links[turn % len(links)] if several else ""


def _source(file: str, place: dis.Positions) -> str:
    """The source at a place of one line."""
    if place.lineno is None or place.lineno != place.end_lineno:
        return ""
    line = linecache.getline(file, place.lineno).encode()
    return line[place.col_offset : place.end_col_offset].decode()


def _links(text: str) -> list[str]:
    """The comparisons of a chain, one by one; of anything else the text itself."""
    try:
        found = ast.parse(text, mode="eval").body
    except SyntaxError:
        return [text]
    if not isinstance(found, ast.Compare):
        return [text]
    sides = [found.left, *found.comparators]
    return [ast.unparse(ast.Compare(sides[i], [by], [sides[i + 1]])) for i, by in enumerate(found.ops)]
