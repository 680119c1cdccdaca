"""Write a statement of the user's so that no number of Python is asked for: values stay tensors, and sizes stay integers."""

from __future__ import annotations

import ast
import copy
from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction

import torch

from .paths import Seen
from .rewrite import IN_PYTHON, NUMBERS, Change, Source, changed

LEGACY = {"Tensor": "float32", "FloatTensor": "float32", "DoubleTensor": "float64", "LongTensor": "int64", "IntTensor": "int32"}
MATH, WHOLE = ("math", "np", "numpy"), 1000
Transformer = Callable[[], ast.NodeTransformer]


def _rewritten(source: Source, *transformers: Transformer) -> Iterator[Change]:
    """The statement as each transformer makes it; none where it leaves it as it is."""
    statement = source.innermost(ast.stmt)
    if statement is None or isinstance(statement, ast.If | ast.For | ast.While | ast.FunctionDef | ast.ClassDef):
        return
    for transformer in transformers:
        new = ast.unparse(ast.fix_missing_locations(transformer().visit(copy.deepcopy(statement))))
        if new != ast.unparse(statement):
            yield changed(new, statement)


def _called(node: ast.AST, *names: str) -> bool:
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in names and len(node.args) == 1


def _of_math(node: ast.AST) -> str:
    """The name of a function of `math` or numpy that takes one number."""
    if isinstance(node, ast.Call) and len(node.args) == 1 and not node.keywords and isinstance(node.func, ast.Attribute):
        owner = node.func.value
        return node.func.attr if isinstance(owner, ast.Name) and owner.id in MATH else ""
    return ""


def _expression(text: str) -> ast.expr:
    return ast.parse(text, mode="eval").body


# Values ----------------------------------------------------------------------------------------------------------------------------------


def as_tensor(source: Source) -> Iterator[Change]:
    """Yield the statement with its values as tensors: without `float(…)` and `.item()`, and `clamp` in the place of `max`."""
    yield from _rewritten(source, _Unasked)


class _Unasked(ast.NodeTransformer):
    """`float(t)`, `t.item()` → `t`; `math.exp(t)` → `t.exp()`; `max(t, 1)` → `t.clamp(min=1)`."""

    def visit_Call(self, node: ast.Call) -> ast.AST:
        """Return the tensor, or the call of a tensor."""
        asks = _asks(node)
        self.generic_visit(node)
        if isinstance(node.func, ast.Attribute) and node.func.attr in IN_PYTHON and not node.args:
            return node.func.value
        if _called(node, *NUMBERS):
            return node.args[0]
        if asks and _of_math(node):
            return _expression(f"({ast.unparse(node.args[0])}).{_of_math(node)}()")
        if asks and isinstance(node.func, ast.Name) and node.func.id in ("min", "max") and len(node.args) == 2:
            return self._clamped(node)
        return node

    def _clamped(self, node: ast.Call) -> ast.AST:
        number = next((value for value in node.args if isinstance(value, ast.Constant)), node.args[1])
        other = next(value for value in node.args if value is not number)
        bound = "min" if getattr(node.func, "id", "") == "max" else "max"
        return _expression(f"({ast.unparse(other)}).clamp({bound}={ast.unparse(number)})")


def _asks(node: ast.AST) -> bool:
    """Whether a value is asked for in it."""
    return any(_called(part, *NUMBERS) or (isinstance(part, ast.Attribute) and part.attr in IN_PYTHON) for part in ast.walk(node))


def checked(source: Source) -> Iterator[Change]:
    """Yield `n = t.item()` with what the capture has to be told about it: that it is no negative number."""
    statement = source.innermost(ast.stmt)
    if not isinstance(statement, ast.Assign) or not isinstance(statement.targets[0], ast.Name) or not _asks(statement.value):
        return
    name = statement.targets[0].id
    asked = ast.unparse(_Items().visit(copy.deepcopy(statement)))
    yield changed(f"{asked}\ntorch._check({name} >= 0)", statement)


class _Items(ast.NodeTransformer):
    """`int(t)` → `t.item()`."""

    def visit_Call(self, node: ast.Call) -> ast.AST:
        """Return the call that leaves a symbol."""
        self.generic_visit(node)
        return _expression(f"({ast.unparse(node.args[0])}).item()") if _called(node, "int") and not _asks(node.args[0]) else node


def as_size(source: Source, seen: Sequence[Seen]) -> Iterator[Change]:
    """Yield `n = int(index.max()) + 1` as the size of a tensor that it was equal to in every sample."""
    statement = source.innermost(ast.stmt)
    if (
        len(seen) < 2
        or not isinstance(statement, ast.Assign)
        or not isinstance(statement.targets[0], ast.Name)
        or not _asks(statement.value)
    ):
        return
    wanted = [there.value(ast.unparse(statement.value)) for there in seen]
    for name, axis in _sizes_like(wanted, seen):
        yield changed(f"{statement.targets[0].id} = {name}.size({axis})", statement)


def _sizes_like(wanted: Sequence[object], seen: Sequence[Seen]) -> Iterator[tuple[str, int]]:
    tensors = [name for name, value in seen[0].own.items() if isinstance(value, torch.Tensor)]
    for name in tensors:
        values = [there.own.get(name) for there in seen]
        for axis in range(seen[0].own[name].dim()):
            if [v.shape[axis] if isinstance(v, torch.Tensor) and v.dim() > axis else None for v in values] == list(wanted):
                yield name, axis


def picked(source: Source) -> Iterator[Change]:
    """Yield `self.layers[int(n)](x)` as all of them, stacked, and the one that is asked for."""
    yield from _rewritten(source, _Picked)


class _Picked(ast.NodeTransformer):
    """`layers[int(n)](x)` → `torch.stack([each(x) for each in layers])[n]`; `tables[int(n)]` → `torch.stack(list(tables))[n]`."""

    def visit_Call(self, node: ast.Call) -> ast.AST:
        """Return all results, and the one that is wanted."""
        index = node.func.slice if isinstance(node.func, ast.Subscript) else None
        if index is None or not _asks(index):
            return self.generic_visit(node)
        assert isinstance(node.func, ast.Subscript)
        given = ast.unparse(node).removeprefix(ast.unparse(node.func))
        number = ast.unparse(_Unasked().visit(copy.deepcopy(index)))
        return _expression(f"torch.stack([each{given} for each in {ast.unparse(node.func.value)}])[{number}]")

    def visit_Subscript(self, node: ast.Subscript) -> ast.AST:
        """Return the list as a tensor, and its row."""
        if not _asks(node.slice) or isinstance(node.slice, ast.Slice | ast.Tuple):
            return self.generic_visit(node)
        number = ast.unparse(_Unasked().visit(copy.deepcopy(node.slice)))
        return _expression(f"torch.stack(list({ast.unparse(node.value)}))[{number}]")


def with_classes(source: Source, seen: Sequence[Seen]) -> Iterator[Change]:
    """Yield `F.one_hot(x)` and `torch.bincount(x)` with the number of classes that the samples have."""
    yield from _rewritten(source, lambda: _Counted(seen))


class _Counted(ast.NodeTransformer):
    def __init__(self, seen: Sequence[Seen]) -> None:
        self.seen = seen

    def visit_Call(self, node: ast.Call) -> ast.AST:
        """Return the call with one more argument."""
        self.generic_visit(node)
        keyword = {"one_hot": "num_classes", "bincount": "minlength"}.get(getattr(node.func, "attr", getattr(node.func, "id", "")))
        if keyword is None or len(node.args) != 1 or any(k.arg == keyword for k in node.keywords) or not self.seen:
            return node
        largest = max(int(there.value(ast.unparse(node.args[0])).max()) for there in self.seen)
        node.keywords.append(ast.keyword(keyword, ast.Constant(largest + 1)))
        return node


def uncached(source: Source, seen: Sequence[Seen]) -> Iterator[Change]:
    """Yield a call of a function under `lru_cache` as one of the function itself: a size that moves is no key."""
    yield from _rewritten(source, lambda: _Uncached(seen))


class _Uncached(ast.NodeTransformer):
    def __init__(self, seen: Sequence[Seen]) -> None:
        self.seen = seen

    def visit_Call(self, node: ast.Call) -> ast.AST:
        """Return the call of what was wrapped."""
        self.generic_visit(node)
        called = self.seen[0].value(ast.unparse(node.func)) if self.seen and isinstance(node.func, ast.Name | ast.Attribute) else None
        if hasattr(called, "cache_info"):
            node.func = ast.Attribute(node.func, "__wrapped__", ast.Load())
        return node


# Sizes -----------------------------------------------------------------------------------------------------------------------------------


def in_integers(source: Source) -> Iterator[Change]:
    """Yield the statement with sizes kept whole: `int(n * 0.5)` → `n * 1 // 2`, `math.ceil(n / 4)` → `-(-n // 4)`."""
    yield from _rewritten(source, _Whole)


class _Whole(ast.NodeTransformer):
    def visit_Call(self, node: ast.Call) -> ast.AST:
        """Return a quotient of integers."""
        self.generic_visit(node)
        name = _of_math(node) or (node.func.id if isinstance(node.func, ast.Name) else "")
        if name not in ("int", "ceil", "floor", "round") or len(node.args) != 1:
            return node
        inner = node.args[0]
        if isinstance(inner, ast.BinOp) and isinstance(inner.op, ast.FloorDiv | ast.USub):
            return inner
        pair = _quotient(inner)
        if pair is None:
            return inner if name == "int" and isinstance(inner, ast.UnaryOp) else node
        over, under = pair
        return _expression(f"-(-({over}) // ({under}))" if name == "ceil" else f"({over}) // ({under})")


def _quotient(node: ast.expr) -> tuple[str, str] | None:
    """Of `a / b`, and of `a * 0.75`, what is divided, and by what."""
    if not isinstance(node, ast.BinOp):
        return None
    if isinstance(node.op, ast.Div):
        return ast.unparse(node.left), ast.unparse(node.right)
    factor = next((v for v in (node.right, node.left) if isinstance(v, ast.Constant)), None)
    if not isinstance(node.op, ast.Mult) or factor is None or not isinstance(factor.value, float):
        return None
    other, share = node.left if factor is node.right else node.right, Fraction(factor.value).limit_denominator(WHOLE)
    return f"({ast.unparse(other)}) * {share.numerator}", str(share.denominator)


def of_sizes(source: Source) -> Iterator[Change]:
    """Yield the statement with functions of sizes computed by tensors: `math.log(n)`, `torch.Tensor([w, h])`, `np.array([w, h])`."""
    yield from _rewritten(source, _Legacy, _Computed, _Stacked, Spaced)


class _Legacy(ast.NodeTransformer):
    """`torch.Tensor([w, h])`, `torch.from_numpy(np.array([w, h]))` → `torch.tensor([w, h], dtype=…)`."""

    def visit_Call(self, node: ast.Call) -> ast.AST:
        """Return the call of the constructor that knows symbols."""
        self.generic_visit(node)
        listed = node.args[0] if node.args and isinstance(node.args[0], ast.List | ast.Tuple) else None
        name = getattr(node.func, "attr", "")
        if name == "from_numpy" and isinstance(node.args[0], ast.Call) and ast.unparse(node.args[0].func) == "torch.tensor":
            return node.args[0]
        if listed is None or name not in (*LEGACY, "array", "asarray"):
            return node
        dtype = next((ast.unparse(k.value).rpartition(".")[2] for k in node.keywords if k.arg == "dtype"), LEGACY.get(name, ""))
        return _expression(f"torch.tensor({ast.unparse(listed)}{f', dtype=torch.{dtype}' if dtype else ''})")


class _Stacked(_Legacy):
    """The same, one by one: `torch.stack([torch.full((), w, dtype=…), …])`."""

    def visit_Call(self, node: ast.Call) -> ast.AST:
        """Return the stack."""
        made = super().visit_Call(node)
        if not isinstance(made, ast.Call) or ast.unparse(made.func) != "torch.tensor" or not isinstance(made.args[0], ast.List | ast.Tuple):
            return made
        dtype = "".join(f", dtype={ast.unparse(k.value)}" for k in made.keywords if k.arg == "dtype")
        return _expression(f"torch.stack([{', '.join(f'torch.full((), {ast.unparse(e)}{dtype})' for e in made.args[0].elts)}])")


class Spaced(ast.NodeTransformer):
    """`torch.linspace(a, b, n)`, which has a number of steps that is fixed → `a + torch.arange(n) * (b - a) / (n - 1)`."""

    def visit_Call(self, node: ast.Call) -> ast.AST:
        """Return the sum."""
        self.generic_visit(node)
        if getattr(node.func, "attr", "") != "linspace" or len(node.args) != 3:
            return node
        first, last, steps = (f"({ast.unparse(argument)})" for argument in node.args)
        return _expression(f"{first} + torch.arange{steps} * (({last} - {first}) / ({steps} - 1))")


class _Computed(ast.NodeTransformer):
    """`math.log(n)` → `torch.full((), n, dtype=torch.float32).log()`, but for constants."""

    def visit_Call(self, node: ast.Call) -> ast.AST:
        """Return the method of a tensor."""
        name = _of_math(node)
        if not name or not hasattr(torch.Tensor, name) or not any(isinstance(p, ast.Name | ast.Call) for p in ast.walk(node.args[0])):
            return self.generic_visit(node)
        return _expression(f"torch.full((), {ast.unparse(node.args[0])}, dtype=torch.float32).{name}()")
