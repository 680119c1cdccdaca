"""Write a function of the user's that goes through numpy with the functions of torch."""

from __future__ import annotations

import ast
import copy
from collections.abc import Iterator

import torch

from .rewrite import Change, Function, Source, changed

NUMPY = ("np", "numpy")
NAMES = {"concatenate": "cat", "clip": "clamp", "absolute": "abs", "power": "pow", "expand_dims": "unsqueeze", "digitize": "bucketize"}
NAMES |= {"array": "tensor", "asarray": "as_tensor", "cumsum": "cumsum", "take": "take", "nonzero": "nonzero", "random": "random"}
AXES = {"axis": "dim", "axes": "dims", "keepdims": "keepdim"}
WINDOWS = {"hanning": (0.5, 0.5), "hamming": (0.54, 0.46)}  # those of torch take a length that is fixed
DOUBLE = ("zeros", "ones", "linspace", "eye", "full")  # what numpy makes in float64
GONE = ("numpy", "detach", "cpu", "copy")  # methods on the way to numpy


def in_torch(source: Source) -> Iterator[Change]:
    """Yield the function around the line, with `np.…` as `torch.…` and without the ways there and back; its line alone first."""
    functions = [n for n in ast.walk(source.tree) if isinstance(n, Function) and n.lineno <= source.line <= (n.end_lineno or 0)]
    function = max(functions, key=lambda node: node.lineno, default=None)
    if function is None:
        return
    first, last = None, None
    lines = []
    for statement in function.body:
        new = ast.unparse(ast.fix_missing_locations(_InTorch().visit(copy.deepcopy(statement))))
        if new != ast.unparse(statement):
            first, last = first or statement, statement
        lines.append((statement, new))
    if first is not None:
        kept = [new for statement, new in lines if first.lineno <= statement.lineno <= (last or first).lineno]
        yield changed("\n".join(kept), first, last)


class _InTorch(ast.NodeTransformer):
    def visit_Call(self, node: ast.Call) -> ast.AST:
        """Return the call of torch, or what was given to a function that only led there or back."""
        of_numpy = isinstance(node.func, ast.Attribute) and ast.unparse(node.func.value) in NUMPY
        if of_numpy and getattr(node.func, "attr", "") in WINDOWS and len(node.args) == 1:
            return _window(WINDOWS[getattr(node.func, "attr", "")], ast.unparse(node.args[0]))
        self.generic_visit(node)
        if of_numpy:
            node.keywords += _in_double(node)
        if not isinstance(node.func, ast.Attribute):
            return node
        owner, name = node.func.value, node.func.attr
        if name in GONE and not node.args:
            return owner
        if name == "astype" and len(node.args) == 1:
            return ast.Call(ast.Attribute(owner, "to", ast.Load()), node.args, [])
        if ast.unparse(owner) == "torch" and name in ("from_numpy", "tensor", "as_tensor") and node.args and not _is_plain(node.args[0]):
            return node.args[0]
        node.keywords = [ast.keyword(AXES.get(k.arg or "", k.arg), k.value) for k in node.keywords]
        return node

    def visit_Attribute(self, node: ast.Attribute) -> ast.AST:
        """Return the name that torch has for it."""
        self.generic_visit(node)
        if isinstance(node.value, ast.Name) and node.value.id in NUMPY:
            name = NAMES.get(node.attr, node.attr)
            if hasattr(torch, name):
                return ast.Attribute(ast.Name("torch", ast.Load()), name, node.ctx)
        return node


def _is_plain(node: ast.expr) -> bool:
    """Whether it is a number or a list of what is written there, and no array."""
    return isinstance(node, ast.Constant | ast.List | ast.Tuple | ast.ListComp)


def _in_double(node: ast.Call) -> list[ast.keyword]:
    """What torch has to be told to be as precise as numpy is by itself."""
    told = getattr(node.func, "attr", "") not in DOUBLE or any(keyword.arg == "dtype" for keyword in node.keywords)
    return [] if told else [ast.keyword("dtype", ast.parse("torch.float64", mode="eval").body)]


def _window(weights: tuple[float, float], length: str) -> ast.expr:
    turns = f"torch.arange({length}, dtype=torch.float64) * (2 * torch.pi / ({length} - 1))"
    return ast.parse(f"({weights[0]} - {weights[1]} * torch.cos({turns}))", mode="eval").body
