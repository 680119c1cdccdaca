"""Rewrite a statement of the user's code: keep a value as a tensor, or convert a byte mask to a Boolean mask."""

from __future__ import annotations

import ast
import copy

from .rewrite import CannotRewrite, Change, Source, make_change, value_of

MASKED = ("where", "masked_fill", "masked_fill_", "masked_scatter", "masked_select")  # calls with a mask argument


def remove_scalar_reads(source: Source) -> Change:
    """Return the statement without `float(…)` and `.item()`.

    Raises:
        CannotRewrite: the statement doesn't read a value.
    """
    return _apply_transformer(source, _Tensors())


def cast_mask_to_bool(source: Source) -> Change:
    """Return the statement with `x[mask.bool()]` instead of `x[mask]`.

    Raises:
        CannotRewrite: the statement has no mask.
    """
    return _apply_transformer(source, _Bools())


def _apply_transformer(source: Source, transformer: ast.NodeTransformer) -> Change:
    statement = source.innermost(ast.stmt)
    if not isinstance(statement, ast.Assign | ast.AugAssign | ast.AnnAssign | ast.Return | ast.Expr):
        raise CannotRewrite
    new = ast.unparse(ast.fix_missing_locations(transformer.visit(copy.deepcopy(statement))))
    if new == ast.unparse(statement):
        raise CannotRewrite
    return make_change(new, statement)


class _Tensors(ast.NodeTransformer):
    """`float(t)`, `t.item()` → `t`."""

    def visit_Call(self, node: ast.Call) -> ast.AST:
        """Return the tensor that the number is read from."""
        self.generic_visit(node)
        return value_of(node)


class _Bools(ast.NodeTransformer):
    """`x[mask]` → `x[mask.bool()]`; `x.masked_fill(mask, 0)` → `x.masked_fill(mask.bool(), 0)`."""

    def visit_Subscript(self, node: ast.Subscript) -> ast.AST:
        """Return the selection with a Boolean mask."""
        self.generic_visit(node)
        if isinstance(node.slice, ast.Name | ast.Attribute | ast.Call):
            node.slice = _cast_to_bool(node.slice)
        return node

    def visit_Call(self, node: ast.Call) -> ast.AST:
        """Return the call with a Boolean mask."""
        self.generic_visit(node)
        if isinstance(node.func, ast.Attribute) and node.func.attr in MASKED and node.args:
            at = next((i for i, given in enumerate(node.args[:2]) if isinstance(given, ast.Name) and "mask" in given.id), 0)
            node.args[at] = _cast_to_bool(node.args[at])
        return node


def _cast_to_bool(mask: ast.expr) -> ast.expr:
    return ast.Call(ast.Attribute(mask, "bool", ast.Load()), [], [])
