"""Write a loop of the user's that ends by a value, or that fills a mask row by row, as one that does neither."""

from __future__ import annotations

import ast
import copy
import textwrap
from collections.abc import Iterator, Sequence

from .rewrite import Change, Source, changed
from .rewrite_loops import loop_around

TURNS = """ended = None
{head}
    kept = [{names}] if ended is not None else []
{body}
    if ended is not None:
        [{names}] = [torch.where(ended, old, new) for old, new in zip(kept, [{names}])]
    ended = {test} if ended is None else ended | ({test})"""


def without_break(source: Source) -> Iterator[Change]:
    """Yield `for …: …; if test: break` with all turns computed: those after the end keep what was there."""
    loop = loop_around(source)
    end = loop.body[-1] if loop is not None else None
    if loop is None or not isinstance(end, ast.If) or end.orelse or not isinstance(end.body[-1], ast.Break) or len(end.body) > 1:
        return
    names = ", ".join(_stored(loop.body[:-1]))
    if names:
        yield changed(TURNS.format(head=_head(loop), names=names, body=_indented(loop.body[:-1]), test=ast.unparse(end.test)), loop)


def _head(loop: ast.For) -> str:
    return f"for {ast.unparse(loop.target)} in {ast.unparse(loop.iter)}:"


def _indented(statements: Sequence[ast.stmt]) -> str:
    return textwrap.indent("\n".join(map(ast.unparse, statements)), "    ")


def _stored(statements: Sequence[ast.stmt]) -> list[str]:
    parts = [part for statement in statements for part in ast.walk(statement)]
    return list(dict.fromkeys(p.id for p in parts if isinstance(p, ast.Name) and isinstance(p.ctx, ast.Store)))


def filled_at_once(source: Source) -> Iterator[Change]:
    """Yield `for i in range(n): m[i, low:high] = value` as one `torch.where` of two `arange`."""
    loop = loop_around(source)
    step = loop.body[0] if loop is not None and len(loop.body) == 1 else None
    if loop is None or not isinstance(step, ast.Assign) or not isinstance(step.targets[0], ast.Subscript):
        return
    target, counted = step.targets[0], loop.iter
    parts = target.slice.elts if isinstance(target.slice, ast.Tuple) else []
    index = ast.unparse(loop.target)
    if not _is_range(counted) or len(parts) != 2 or ast.unparse(parts[0]) != index:
        return
    if isinstance(parts[1], ast.Slice) and not parts[1].step and isinstance(counted, ast.Call):
        yield changed(_filled(target, parts[1], index, ast.unparse(counted.args[0]), ast.unparse(step.value)), loop)


def _is_range(node: ast.expr) -> bool:
    return isinstance(node, ast.Call) and getattr(node.func, "id", "") == "range" and len(node.args) == 1


def _filled(target: ast.Subscript, columns: ast.Slice, index: str, rows: str, value: str) -> str:
    name = ast.unparse(target.value)
    low, high = (ast.unparse(_Bounded().visit(copy.deepcopy(bound))) if bound else "" for bound in (columns.lower, columns.upper))
    tests = [f"(column >= {low})"] * bool(low) + [f"(column < {high})"] * bool(high)
    lines = [f"{index} = torch.arange({rows})[:, None]", f"column = torch.arange({name}.size(1))"]
    return "\n".join([*lines, f"{name} = torch.where({' & '.join(tests)}, {value}, {name})"])


class _Bounded(ast.NodeTransformer):
    """`max(0, i)` → `(i).clamp(min=0)`, of a row of numbers."""

    def visit_Call(self, node: ast.Call) -> ast.AST:
        """Return the call of the tensor."""
        name = getattr(node.func, "id", "")
        number = next((argument for argument in node.args if isinstance(argument, ast.Constant)), None)
        if name not in ("min", "max") or len(node.args) != 2 or number is None:
            return self.generic_visit(node)
        other = next(argument for argument in node.args if argument is not number)
        bound = "min" if name == "max" else "max"
        return ast.parse(f"({ast.unparse(other)}).clamp({bound}={number.value!r})", mode="eval").body
