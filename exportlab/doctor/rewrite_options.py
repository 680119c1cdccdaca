"""Write a call of the user's with an option that an export needs: no check of values, no narrow floats."""

from __future__ import annotations

import ast
import copy
import inspect
from collections.abc import Iterator, Sequence
from contextlib import suppress

from .paths import Seen
from .rewrite import Change, Source, changed

CHECKS = "validate_args"  # of every distribution of torch


def unvalidated(source: Source, seen: Sequence[Seen]) -> Iterator[Change]:
    """Yield `Normal(mean, spread)` as `Normal(mean, spread, validate_args=False)`: all such calls of the statement."""
    statement = source.innermost(ast.stmt)
    if isinstance(statement, ast.Assign | ast.Return | ast.Expr | ast.AnnAssign):
        new = ast.unparse(ast.fix_missing_locations(_Unvalidated(seen).visit(copy.deepcopy(statement))))
        if new != ast.unparse(statement):
            yield changed(new, statement)


class _Unvalidated(ast.NodeTransformer):
    def __init__(self, seen: Sequence[Seen]) -> None:
        self.seen = seen

    def visit_Call(self, node: ast.Call) -> ast.AST:
        """Return the call with the check left out."""
        self.generic_visit(node)
        if self._checks(ast.unparse(node.func)) and not any(keyword.arg in (CHECKS, None) for keyword in node.keywords):
            node.keywords.append(ast.keyword(CHECKS, ast.Constant(False)))
        return node

    def _checks(self, called: str) -> bool:
        with suppress(Exception):
            return CHECKS in inspect.signature(self.seen[0].value(called)).parameters
        return False


def in_float32(source: Source) -> Iterator[Change]:
    """Yield `with torch.autocast(…):` with `enabled=False`."""
    block = source.innermost(ast.With)
    if block is None:
        return
    new = copy.deepcopy(block)
    found = [item.context_expr for item in new.items if isinstance(item.context_expr, ast.Call) and _is_autocast(item.context_expr)]
    for call in found:
        call.keywords = [*(keyword for keyword in call.keywords if keyword.arg != "enabled"), ast.keyword("enabled", ast.Constant(False))]
    if found:
        head = f"with {', '.join(map(ast.unparse, new.items))}:"
        last = block.items[-1].context_expr.end_lineno or block.lineno
        yield Change(" " * block.col_offset + head, block.lineno, last)


def _is_autocast(call: ast.Call) -> bool:
    return ast.unparse(call.func).rpartition(".")[2] == "autocast"
