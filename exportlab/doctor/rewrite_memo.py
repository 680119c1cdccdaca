"""Make in each call what a function of the user's keeps for each size: a size that moves is no key of a dict."""

from __future__ import annotations

import ast
import copy
from collections.abc import Iterator

from .rewrite import Change, Function, Source, changed
from .rewrite_numbers import Spaced


def without_memory(source: Source) -> Iterator[Change]:
    """Yield `if key not in table: table[key] = made` with what is made alone, which is then read in the place of `table[key]`."""
    node = source.innermost(ast.If)
    kept = _kept(node) if node is not None else None
    function = next((f for f in ast.walk(source.tree) if isinstance(f, Function) and node in f.body), None)
    if node is None or kept is None or function is None:
        return
    after = function.body[function.body.index(node) :]
    made = [_Made(kept).visit(copy.deepcopy(statement)) for statement in [*node.body, *after[1:]]]
    for finish in (ast.NodeTransformer, Spaced):
        lines = [ast.unparse(ast.fix_missing_locations(finish().visit(copy.deepcopy(statement)))) for statement in made]
        yield changed("\n".join(lines), node, after[-1])


def _kept(node: ast.If) -> str | None:
    """Of `if key not in table`, `table[key]`, where the body gives it a value."""
    test = node.test
    if not isinstance(test, ast.Compare) or not isinstance(test.ops[0], ast.NotIn):
        return None
    key, table = ast.unparse(test.left), ast.unparse(test.comparators[0])
    stored = [
        ast.unparse(part) for s in node.body for part in ast.walk(s) if isinstance(part, ast.Subscript) and isinstance(part.ctx, ast.Store)
    ]
    return next((kept for kept in stored if kept in (f"{table}[{key}]", f"{table}[{key.strip('()')}]")), None)


class _Made(ast.NodeTransformer):
    """`table[key]` → `made`."""

    def __init__(self, kept: str) -> None:
        self.kept = kept

    def visit_Subscript(self, node: ast.Subscript) -> ast.AST:
        """Return the name."""
        return ast.Name("made", node.ctx) if ast.unparse(node) == self.kept else self.generic_visit(node)
