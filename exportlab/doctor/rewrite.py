"""Rewrite an `if` of the user's code as `torch.cond`, or a check so that an export skips it."""

from __future__ import annotations

import ast
import copy
import linecache
import textwrap
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any

from .lines import SourceLine

IN_PYTHON = ("item", "tolist")  # methods that read a value
NUMBERS = ("bool", "int", "float")
OF_THE_RUN = ("is_compiling", "is_exporting", "is_grad_enabled", "is_scripting", "is_tracing", "training")  # for torch.cond: not tensors
Function = ast.FunctionDef | ast.AsyncFunctionDef


class CannotRewrite(Exception):
    """This kind of statement can't be rewritten."""


@dataclass(frozen=True)
class Source:
    """A parsed file, and a line in it."""

    tree: ast.Module
    line: int

    def innermost(self, *kinds: type[Any]) -> Any:
        """Return the smallest statement or expression of these kinds that includes this line, or None."""
        found = [node for node in ast.walk(self.tree) if isinstance(node, kinds) and covers(node, self.line)]
        return min(found, key=lambda node: (node.end_lineno or 0) - node.lineno, default=None)

    def block_of(self, statement: ast.stmt) -> list[ast.stmt]:
        """Return the block that contains a statement."""
        for node in ast.walk(self.tree):
            for field in ("body", "orelse", "finalbody"):
                block = getattr(node, field, None)
                if isinstance(block, list) and statement in block:
                    return block
        raise CannotRewrite


def covers(node: ast.AST, line: int) -> bool:
    """Return whether a node includes this line. For an `if` or a `while`, only the lines of its condition count."""
    last = getattr(node, "end_lineno", 0) or 0
    if isinstance(node, ast.If | ast.While):
        last = node.test.end_lineno or 0
    return getattr(node, "lineno", line + 1) <= line <= last


def source_at(file: str, line: int) -> Source | None:
    """Return the parsed file, or None if it's not valid Python."""
    try:
        return Source(_mark_sizes(ast.parse("".join(linecache.getlines(file)))), line)
    except SyntaxError:
        return None


def loops_around(place: SourceLine) -> list[str]:
    """Return the iterables of the `for` loops that contain a line or start at it."""
    source = source_at(place.file, place.line)
    loops = [node for node in ast.walk(source.tree) if isinstance(node, ast.For)] if source else []
    return [ast.unparse(loop.iter) for loop in loops if loop.lineno <= place.line <= (loop.end_lineno or 0)]


def _mark_sizes(tree: ast.Module) -> ast.Module:
    """Mark the variables that contain sizes, as in `n = x.shape[0]` and `rows, width = x.shape`."""
    for function in [node for node in ast.walk(tree) if isinstance(node, Function)]:
        assigned = [node for node in ast.walk(function) if isinstance(node, ast.Assign) and _is_a_size(node.value)]
        names = {part.id for node in assigned for target in node.targets for part in ast.walk(target) if isinstance(part, ast.Name)}
        for node in ast.walk(function):
            if isinstance(node, ast.Name) and node.id in names:
                vars(node)["is_a_size"] = True
    return tree


@dataclass(frozen=True)
class Change:
    """New lines, and the range of lines that they replace, counted from 1."""

    text: str
    first: int
    last: int


def make_change(text: str, first: ast.AST, last: ast.AST | None = None) -> Change:
    """Return new lines that replace a statement, or a range of statements, with the indentation of the first."""
    begin, end = getattr(first, "lineno", 1), getattr(last or first, "end_lineno", 1)
    return Change(textwrap.indent(text, " " * getattr(first, "col_offset", 0)), begin, end)


def render_change(change: Callable[[Source], Change], place: SourceLine) -> str:
    """Return the changed statement at a line, with a comment for its position; empty if the change doesn't apply."""
    source = source_at(place.file, place.line)
    if source is None:
        return ""
    try:
        made = change(source)
    except CannotRewrite:
        return ""
    to = f" to {made.last}" if made.last > made.first else ""
    return f"# in place of {place.where.rpartition(':')[0]}:{made.first}{to}\n{made.text}"


# Branches --------------------------------------------------------------------------------------------------------------------------------


def checked_in_python(source: Source) -> Change:
    """Disable a check (`assert`, or an `if` that only raises an exception) during an export."""
    node = source.innermost(ast.Assert, ast.If)
    if isinstance(node, ast.Assert):
        said = f", {ast.unparse(node.msg)}" if node.msg else ""
        return make_change(f"assert torch.compiler.is_exporting() or ({ast.unparse(node.test)}){said}", node)
    if not isinstance(node, ast.If) or not isinstance(node.body[-1], ast.Raise) or node.orelse:
        raise CannotRewrite
    body = textwrap.indent("\n".join(map(ast.unparse, node.body)), "    ")
    return make_change(f"if not torch.compiler.is_exporting() and ({ast.unparse(node.test)}):\n{body}", node)


def to_cond(source: Source) -> Change:
    """Replace the `if` at this line by `torch.cond`: an `if` whose branches both return or both assign, or a conditional expression."""
    node, statement = source.innermost(ast.If), source.innermost(ast.stmt)
    if statement is None or any(name in ast.unparse(node.test if node else statement) for name in OF_THE_RUN):
        raise CannotRewrite
    if node is not None:
        return _statement(node, source.block_of(node))
    if source.innermost(ast.IfExp) is None:
        raise CannotRewrite
    return make_change(ast.unparse(_Conditions().visit(copy.deepcopy(statement))), statement)


class _Conditions(ast.NodeTransformer):
    """`a if test else b` → `torch.cond(test, lambda: a, lambda: b)`."""

    def visit_IfExp(self, node: ast.IfExp) -> ast.AST:
        """Return the call."""
        return ast.parse(_cond(node.test, node.body, node.orelse), mode="eval").body


def _statement(node: ast.If, block: list[ast.stmt]) -> Change:
    after = block[block.index(node) + 1 :]
    if _returns(node.body):
        return make_change(_render_return(node.test, node.body, node.orelse or after), node, node if node.orelse else block[-1])
    names = list(dict.fromkeys(name for arm in (node.body, node.orelse) for name in _collect_assigned_names(arm)))
    if not names:
        raise CannotRewrite
    return make_change(f"{names[0]} = {_value(node, names[0])}" if _is_short(node, names) else _render_arm_functions(node, names), node)


def _returns(arm: Sequence[ast.stmt]) -> bool:
    return bool(arm) and isinstance(arm[-1], ast.Return) and arm[-1].value is not None


def _render_return(test: ast.expr, one: list[ast.stmt], other: list[ast.stmt]) -> str:
    """Return the `return` statement for an `if`: as an expression if both branches are one, otherwise with a function per branch."""
    values = [_only_value(arm) for arm in (one, other)]
    if values[0] is not None and values[1] is not None:
        return f"return {_cond(test, values[0], values[1])}"
    if not _returns(one) or not _returns(other):
        raise CannotRewrite
    given = list(dict.fromkeys([*_read_first(one), *_read_first(other)]))
    heads = [f"def if_{kind}({', '.join(given)}):" for kind in ("true", "false")]
    bodies = [textwrap.indent("\n".join(map(ast.unparse, arm)), "    ") for arm in (one, other)]
    return "\n".join([heads[0], bodies[0], heads[1], bodies[1], f"return {_call(test, given)}"])


def _only_value(arm: Sequence[ast.stmt]) -> ast.expr | None:
    """Return the value of a branch that only returns it. An `elif` becomes a nested condition."""
    first = arm[0] if arm else None
    if isinstance(first, ast.Return):
        return first.value
    if isinstance(first, ast.If) and (one := _only_value(first.body)) and (other := _only_value(first.orelse or arm[1:])):
        return ast.parse(_cond(first.test, one, other), mode="eval").body
    return None


def _read_first(arm: Sequence[ast.stmt]) -> list[str]:
    """Return the names that a branch reads before it reassigns them. They must be arguments of the branch's function."""
    stored: set[str] = set()
    read: list[str] = []
    for statement in arm:
        names = [node for node in ast.walk(statement) if isinstance(node, ast.Name)]
        changes = isinstance(statement, ast.AugAssign)
        read += [n.id for n in names if n.id not in stored and (isinstance(n.ctx, ast.Load) or changes)]
        stored |= {n.id for n in names if isinstance(n.ctx, ast.Store)}
    return [name for name in dict.fromkeys(read) if name in stored]


def _call(test: ast.expr, given: Sequence[str]) -> str:
    return f"torch.cond({_render_test(test)}, if_true, if_false, ({''.join(f'{name}, ' for name in given)}))"


def _collect_assigned_names(arm: Sequence[ast.stmt]) -> Iterable[str]:
    for statement in arm:
        targets = statement.targets if isinstance(statement, ast.Assign) else [getattr(statement, "target", None)]
        if not isinstance(statement, ast.Assign | ast.AugAssign | ast.AnnAssign) or not all(isinstance(t, ast.Name) for t in targets):
            raise CannotRewrite
        yield from (target.id for target in targets if isinstance(target, ast.Name))


def _is_short(node: ast.If, names: Sequence[str]) -> bool:
    return len(names) == 1 and len(node.body) == 1 and len(node.orelse) <= 1


def _value(node: ast.If, name: str) -> str:
    """Return the new value of a variable as an expression. Without an `else`, the other branch is its old value."""
    old = ast.Name(name, ast.Load())
    arms = [_right_side(arm[0], old) if arm else old for arm in (node.body, node.orelse)]
    return _cond(node.test, *arms)


def _right_side(statement: ast.stmt, old: ast.expr) -> ast.expr:
    if isinstance(statement, ast.AugAssign):
        return ast.BinOp(old, statement.op, statement.value)
    if isinstance(statement, ast.Assign | ast.AnnAssign) and statement.value is not None:
        return statement.value
    raise CannotRewrite


def _render_arm_functions(node: ast.If, names: Sequence[str]) -> str:
    """Return a function per branch, which accepts and returns the variables that it changes."""
    read = {*_read_first(node.body), *_read_first(node.orelse)}
    given = [name for name in names if name in read or any(name not in _collect_assigned_names(arm) for arm in (node.body, node.orelse))]
    arms = [_function(f"if_{kind}", given, arm, names) for kind, arm in (("true", node.body), ("false", node.orelse))]
    return "\n".join([*arms, f"{', '.join(names)} = {_call(node.test, given)}"])


def _function(called: str, given: Sequence[str], arm: Sequence[ast.stmt], names: Sequence[str]) -> str:
    changed = set(_collect_assigned_names(arm))
    results = ", ".join(name if name in changed else f"{name}.clone()" for name in names)
    lines = [*map(ast.unparse, arm), f"return {results}"]
    return f"def {called}({', '.join(given)}):\n" + textwrap.indent("\n".join(lines), "    ")


def _cond(test: ast.expr, one: ast.expr, other: ast.expr) -> str:
    return f"torch.cond({_render_test(test)}, lambda: {_arm(one, other)}, lambda: {_arm(other, one)})"


def _arm(value: ast.expr, other: ast.expr | None = None) -> str:
    """Return the value of a branch. It must be a new tensor, not an input, and both branches need the same dtype."""
    if isinstance(value, ast.Constant) and isinstance(value.value, int | float):
        number = float(value.value) if isinstance(getattr(other, "value", None), float) else value.value
        return f"torch.full((), {number!r})"
    return f"{ast.unparse(value)}.clone()" if isinstance(value, ast.Name | ast.Attribute) else ast.unparse(value)


def _render_test(test: ast.expr) -> str:
    """Return a condition as one Boolean tensor, also for sizes."""
    return ast.unparse(_Tested().visit(_Lengths().visit(copy.deepcopy(test))))


class _Lengths(ast.NodeTransformer):
    """`len(x)` → `x.shape[0]`, because `len` returns a Python number."""

    def visit_Call(self, node: ast.Call) -> ast.AST:
        """Return the size."""
        is_length = isinstance(node.func, ast.Name) and node.func.id == "len" and len(node.args) == 1
        return ast.parse(f"{ast.unparse(node.args[0])}.shape[0]", mode="eval").body if is_length else self.generic_visit(node)


class _Tested(ast.NodeTransformer):
    """`x.shape[0] > 4` → `torch.full((), x.shape[0]) > 4`; `a and not b` → `a & ~b`; `x.sum().item() > 0` → `x.sum() > 0`."""

    def visit_Compare(self, node: ast.Compare) -> ast.AST:
        """Return a comparison of tensors, with a size on the left converted to a tensor."""
        if len(node.ops) > 1:
            pairs = zip([node.left, *node.comparators], node.ops, node.comparators, strict=False)
            return self._all([ast.Compare(left, [op], [right]) for left, op, right in pairs], ast.BitAnd())
        node.left, node.comparators = value_of(node.left), [value_of(value) for value in node.comparators]
        if _is_a_size(node.left):
            node.left = _full(node.left)
        return node

    def visit_BoolOp(self, node: ast.BoolOp) -> ast.AST:
        """Return the condition with `&` or `|`."""
        return self._all(node.values, ast.BitAnd() if isinstance(node.op, ast.And) else ast.BitOr())

    def visit_UnaryOp(self, node: ast.UnaryOp) -> ast.AST:
        """Return `~a` for `not a`."""
        return ast.UnaryOp(ast.Invert(), self.visit(node.operand)) if isinstance(node.op, ast.Not) else node

    def visit_Call(self, node: ast.Call) -> ast.AST:
        """Return the tensor whose value is read."""
        return value_of(node)

    def visit_BinOp(self, node: ast.BinOp) -> ast.AST:
        """Return a comparison of the size with zero."""
        return ast.Compare(_full(node), [ast.NotEq()], [ast.Constant(0)]) if _is_a_size(node) else node

    def _all(self, values: Sequence[ast.expr], op: ast.operator) -> ast.expr:
        first, *rest = (self.visit(value) for value in values)
        for value in rest:
            first = ast.BinOp(first, op, value)
        return first


def value_of(node: ast.expr) -> ast.expr:
    """Return the tensor in `float(t)`, `t.item()`, `bool(t)`."""
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in IN_PYTHON:
        return value_of(node.func.value)
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in NUMBERS and len(node.args) == 1:
        return value_of(node.args[0])
    return node


def _is_a_size(node: ast.expr) -> bool:
    """Return whether an expression depends only on sizes."""
    parts = list(ast.walk(node))
    sized = any(isinstance(p, ast.Attribute) and p.attr in ("shape", "size") for p in parts)
    sized = sized or any(isinstance(p, ast.Name) and p.id == "len" for p in parts)
    reads_tensor = any(isinstance(p, ast.Call) and isinstance(p.func, ast.Attribute) and p.func.attr not in ("size",) for p in parts)
    return (sized or any(hasattr(p, "is_a_size") for p in parts)) and not reads_tensor


def _full(node: ast.expr) -> ast.expr:
    return ast.parse(f"torch.full((), {ast.unparse(node)})", mode="eval").body
