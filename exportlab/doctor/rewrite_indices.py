"""Write a statement of the user's so that an index that is a value stays a tensor: where it is asked for, kept in a list, and used."""

from __future__ import annotations

import ast
import copy
from collections.abc import Iterator, Sequence

import torch

from .paths import Seen
from .rewrite import IN_PYTHON, Change, Source, changed


def as_index(source: Source) -> Iterator[Change]:
    """Yield `n = int(t)` as `n = t.reshape(())`, the one value of `t` whatever its shape, and `x[:, n]` behind it as a selection."""
    statement = source.innermost(ast.stmt)
    for change in _visited(source, _Index()):
        if isinstance(statement, ast.Assign) and isinstance(statement.targets[0], ast.Name):
            yield from _with_uses(source, statement, statement.targets[0].id)
        yield change


def _with_uses(source: Source, statement: ast.Assign, name: str) -> Iterator[Change]:
    """The statement, and those behind it in its block as far as the last that takes the index."""
    after = source.block_of(statement)
    after = after[after.index(statement) + 1 :]
    new = [ast.unparse(ast.fix_missing_locations(_Selected(name).visit(copy.deepcopy(use)))) for use in after]
    uses = [i for i, use in enumerate(after) if new[i] != ast.unparse(use)]
    if uses:
        first = ast.unparse(ast.fix_missing_locations(_Index().visit(copy.deepcopy(statement))))
        yield changed("\n".join([first, *new[: uses[-1] + 1]]), statement, after[uses[-1]])


class _Index(ast.NodeTransformer):
    def visit_Call(self, node: ast.Call) -> ast.AST:
        """Return the tensor without a size."""
        self.generic_visit(node)
        if isinstance(node.func, ast.Name) and node.func.id == "int" and len(node.args) == 1:
            return _expression(f"({ast.unparse(node.args[0])}).reshape(())")
        if isinstance(node.func, ast.Attribute) and node.func.attr == IN_PYTHON[0] and not node.args:
            return _expression(f"{ast.unparse(node.func.value)}.reshape(())")
        return node


def in_turns(source: Source, seen: Sequence[Seen]) -> Iterator[Change]:
    """Yield `x[:, chosen] = value`, with a list of indices, as a loop over the list: each is a tensor of its own."""
    statement = source.innermost(ast.stmt)
    target = statement.targets[0] if isinstance(statement, ast.Assign) else None
    if not isinstance(statement, ast.Assign) or not isinstance(target, ast.Subscript):
        return
    for part in _parts(target.slice):
        if isinstance(part, ast.Name) and all(isinstance(there.own.get(part.id), list) for there in seen):
            new = ast.unparse(_Renamed(part.id, "each.reshape(1)").visit(copy.deepcopy(target)))
            yield changed(f"for each in {part.id}:\n    {new} = {ast.unparse(statement.value)}", statement)


class _Renamed(ast.NodeTransformer):
    def __init__(self, name: str, new: str) -> None:
        self.name, self.new = name, new

    def visit_Name(self, node: ast.Name) -> ast.AST:
        """Return what stands in its place."""
        return _expression(self.new) if node.id == self.name else node


class _Selected(ast.NodeTransformer):
    """`x[:, n]` → `x.index_select(1, n.reshape(1)).squeeze(1)`: a tensor without a size as an index is asked for its value."""

    def __init__(self, name: str) -> None:
        self.name = name

    def visit_Subscript(self, node: ast.Subscript) -> ast.AST:
        """Return the selection, where the name is one index and the others take all."""
        self.generic_visit(node)
        given = [(axis, ast.unparse(part)) for axis, part in enumerate(_parts(node.slice)) if not _is_all(part)]
        if not isinstance(node.ctx, ast.Load) or len(given) != 1 or given[0][1] != self.name:
            return node
        axis = given[0][0]
        return _expression(f"{ast.unparse(node.value)}.index_select({axis}, {self.name}.reshape(1)).squeeze({axis})")


def stacked(source: Source, seen: Sequence[Seen]) -> Iterator[Change]:
    """Yield `torch.tensor(chosen)`, of a list of tensors, as `torch.stack(chosen)`."""
    yield from _visited(source, _Stacked(seen))


class _Stacked(ast.NodeTransformer):
    def __init__(self, seen: Sequence[Seen]) -> None:
        self.seen = seen

    def visit_Call(self, node: ast.Call) -> ast.AST:
        """Return the stack."""
        self.generic_visit(node)
        name = node.args[0].id if len(node.args) == 1 and isinstance(node.args[0], ast.Name) else ""
        kept = [there.own.get(name) for there in self.seen]
        of_tensors = bool(kept) and all(isinstance(k, list) and k and all(isinstance(v, torch.Tensor) for v in k) for k in kept)
        if ast.unparse(node.func) in ("torch.tensor", "torch.as_tensor") and not node.keywords and of_tensors:
            return _expression(f"torch.stack({name})")
        return node


def _visited(source: Source, transformer: ast.NodeTransformer) -> Iterator[Change]:
    """The statement as the transformer makes it; none where it leaves it as it is."""
    statement = source.innermost(ast.stmt)
    if isinstance(statement, ast.Assign | ast.AugAssign | ast.AnnAssign | ast.Return | ast.Expr):
        new = ast.unparse(ast.fix_missing_locations(transformer.visit(copy.deepcopy(statement))))
        if new != ast.unparse(statement):
            yield changed(new, statement)


def _parts(index: ast.expr) -> list[ast.expr]:
    return index.elts if isinstance(index, ast.Tuple) else [index]


def _is_all(part: ast.expr) -> bool:
    return isinstance(part, ast.Slice) and not (part.lower or part.upper or part.step)


def _expression(text: str) -> ast.expr:
    return ast.parse(text, mode="eval").body
