"""Write a line of the user's so that it can be exported: a loop over rows, a random number, a write into an argument."""

from __future__ import annotations

import ast
import copy
from collections.abc import Callable, Iterator
from contextlib import suppress

from .rewrite import CannotRewrite, Change, Function, Source, changed, covers

RANDOM = (
    "rand",
    "rand_like",
    "randn",
    "randn_like",
    "randint",
    "randint_like",
    "randperm",
    "bernoulli",
    "normal",
    "multinomial",
    "poisson",
)


# Loops -----------------------------------------------------------------------------------------------------------------------------------


def as_vmap(source: Source) -> Change:
    """Make a `torch.vmap` of `torch.stack([… for row in x])` at this line."""
    statement = source.innermost(ast.stmt)
    mapping = _Mapping()
    text = ast.unparse(mapping.visit(copy.deepcopy(statement))) if statement is not None else ""
    if not mapping.found:
        raise CannotRewrite
    return changed(text, statement)


class _Mapping(ast.NodeTransformer):
    """`torch.stack([f(row) for row in x])` → `torch.vmap(lambda row: f(row))(x)`."""

    found = False

    def visit_Call(self, node: ast.Call) -> ast.AST:
        """Return the call of what `torch.vmap` makes."""
        listed = node.args[0] if getattr(node.func, "attr", "") == "stack" and len(node.args) == 1 and not node.keywords else None
        if not isinstance(listed, ast.ListComp) or len(listed.generators) != 1 or listed.generators[0].ifs:
            return self.generic_visit(node)
        self.found, loop = True, listed.generators[0]
        target = ast.unparse(loop.target).strip("()")
        over = loop.iter.args if isinstance(loop.iter, ast.Call) and getattr(loop.iter.func, "id", "") == "zip" else [loop.iter]
        called = f"torch.vmap(lambda {target}: {ast.unparse(listed.elt)})({', '.join(map(ast.unparse, over))})"
        return ast.parse(called, mode="eval").body


# What a call draws, and what it writes into ---------------------------------------------------------------------------------------------


def with_numbers_given(source: Source) -> Change:
    """Take the random numbers at this line as an argument of the function: the whole function."""
    statement, function = source.innermost(ast.stmt), _enclosing(source)
    drawing = _Drawing(source.line)
    if statement is None or function is None or function.name != "forward":  # who else calls it is not known
        raise CannotRewrite
    new = drawing.visit(copy.deepcopy(function))
    if len(drawing.drawn) != 1:
        raise CannotRewrite
    new.args.args.insert(len(new.args.args) - len(new.args.defaults), ast.arg("noise"))
    return changed(ast.unparse(ast.fix_missing_locations(_Needed().visit(new))), function)


def drawn_at(source: Source | None) -> str:
    """Return the call at this line that draws; empty where there is not one alone."""
    statement = source.innermost(ast.stmt) if source else None
    drawing = _Drawing(source.line if source else 0)
    if statement is not None:
        drawing.visit(copy.deepcopy(statement))
    return drawing.drawn[0] if len(drawing.drawn) == 1 else ""


class _Needed(ast.NodeTransformer):
    """Leaves out `noise = noise`, which is what becomes of `noise = torch.randn_like(x)`."""

    def visit_Assign(self, node: ast.Assign) -> ast.AST | None:
        """Return the statement, if it does anything."""
        return None if [ast.unparse(target) for target in node.targets] == [ast.unparse(node.value)] else node


def only_in_training(source: Source) -> Change:
    """Make a `F.dropout(x, rate)` at this line, which drops at all times, one that drops in training mode alone."""
    statement = source.innermost(ast.stmt)
    new = _Training().visit(copy.deepcopy(statement)) if statement is not None else None
    if new is None or ast.unparse(new) == ast.unparse(statement):
        raise CannotRewrite
    return changed(ast.unparse(ast.fix_missing_locations(new)), statement)


class _Training(ast.NodeTransformer):
    def visit_Call(self, node: ast.Call) -> ast.AST:
        """Return the call with `training=self.training`."""
        self.generic_visit(node)
        drops = ast.unparse(node.func).startswith(("F.", "torch.nn.functional.", "nn.functional.")) and "dropout" in ast.unparse(node.func)
        if drops and len(node.args) < 3 and not any(keyword.arg == "training" for keyword in node.keywords):
            node.keywords.append(ast.keyword("training", ast.parse("self.training", mode="eval").body))
        return node


class _Drawing(ast.NodeTransformer):
    """Puts `noise` in the place of a call that draws."""

    def __init__(self, line: int) -> None:
        self.line = line
        self.drawn: list[str] = []

    def visit_Call(self, node: ast.Call) -> ast.AST:
        """Return the name, and remember the call."""
        name = getattr(node.func, "attr", "")
        if name not in RANDOM or not covers(node, self.line):
            return self.generic_visit(node)
        self.drawn.append(ast.unparse(node))
        return ast.Name("noise", ast.Load())


def _enclosing(source: Source) -> Function | None:
    functions = [n for n in ast.walk(source.tree) if isinstance(n, Function) and n.lineno <= source.line <= (n.end_lineno or 0)]
    return max(functions, key=lambda function: function.lineno, default=None)


def with_a_copy(name: str) -> Callable[[Source], Change]:
    """Return the change that copies an argument before the statement that writes into it."""

    def change(source: Source) -> Change:
        statement = source.innermost(ast.stmt)
        if statement is None or not any(isinstance(part, ast.Name) and part.id == name for part in ast.walk(statement)):
            raise CannotRewrite
        return changed(f"{name} = {name}.clone()\n{ast.unparse(statement)}", statement)

    return change


def with_arguments_copied(source: Source) -> Iterator[Change]:
    """Yield the statement after a copy of each argument of the function that it names."""
    function = _enclosing(source)
    for argument in function.args.args if function else ():
        with suppress(CannotRewrite):
            yield with_a_copy(argument.arg)(source)
