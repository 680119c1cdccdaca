"""Take one arm of a branch of the user's for good: what only saves work, or what runs while a model is exported, can go."""

from __future__ import annotations

import ast
import copy
from collections.abc import Iterator

from .rewrite import Change, Source, changed


def one_arm(source: Source) -> Iterator[Change]:
    """Yield the statement at this line without its test: with the first arm alone, and with the other one."""
    node = source.innermost(ast.If)
    if node is not None:
        yield from (_as_statements(node, arm) for arm in (node.orelse, node.body))
        return
    statement = source.innermost(ast.stmt)
    if isinstance(statement, ast.Try):
        yield _as_statements(statement, statement.body)
    choice = source.innermost(ast.IfExp)
    if choice is not None and statement is not None:
        yield from (changed(ast.unparse(_Chosen(first).visit(copy.deepcopy(statement))), statement) for first in (True, False))


def _as_statements(node: ast.stmt, arm: list[ast.stmt]) -> Change:
    return changed("\n".join(map(ast.unparse, arm)) or "pass", node)


class _Chosen(ast.NodeTransformer):
    """`a if test else b` → `a`, or `b`."""

    def __init__(self, first: bool) -> None:
        self.first = first

    def visit_IfExp(self, node: ast.IfExp) -> ast.AST:
        """Return one value."""
        return self.visit(node.body if self.first else node.orelse)
