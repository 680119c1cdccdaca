"""Find which of several conditions in one source line an instruction tests, as in `0 < x < 1` or `a and b`."""

from __future__ import annotations

import ast
import dis
import linecache
from functools import lru_cache
from types import CodeType


@lru_cache(maxsize=4096)
def part_of(code: CodeType, offset: int) -> str:
    """Return the expression that an instruction tests, if its line tests several; empty if the line has one test.

    A loop may test one expression with two instructions, so expressions are identified by source position, and parts of a chain by order.
    """
    instructions = list(dis.get_instructions(code))
    here = next((i.positions for i in instructions if i.offset == offset), None)
    text = _source(code.co_filename, here) if here else ""
    if here is None or not text:
        return ""
    jumps = [i for i in instructions if "JUMP" in i.opname and "IF" in i.opname and i.positions and i.positions.lineno == here.lineno]
    links = _links(text)
    order = sum(jump.offset < offset for jump in jumps if jump.positions == here)
    several = len(links) > 1 or len({jump.positions for jump in jumps}) > 1
    return links[order % len(links)] if several else ""


def _source(file: str, place: dis.Positions) -> str:
    """Return the source at a position within one line."""
    if place.lineno is None or place.lineno != place.end_lineno:
        return ""
    line = linecache.getline(file, place.lineno).encode()
    return line[place.col_offset : place.end_col_offset].decode()


def _links(text: str) -> list[str]:
    """Split a chained comparison; return any other expression unchanged."""
    try:
        found = ast.parse(text, mode="eval").body
    except SyntaxError:
        return [text]
    if not isinstance(found, ast.Compare):
        return [text]
    sides = [found.left, *found.comparators]
    return [ast.unparse(ast.Compare(sides[i], [by], [sides[i + 1]])) for i, by in enumerate(found.ops)]
