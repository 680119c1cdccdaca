"""Write a loop of the user's over values, rows or steps without Python: by whole tensors, by `torch.vmap`, or by `scan`."""

from __future__ import annotations

import ast
import copy
from collections.abc import Iterator, Sequence

from .rewrite import CannotRewrite, Change, Source, _tested, changed

LAG = "torch.cat([torch.full((1,), {first}, dtype={values}.dtype), {values}[:-1]])"


def without_loop(source: Source) -> Iterator[Change]:
    """Yield the loop at this line, with all up to where its list is used, without a loop."""
    loop = loop_around(source)
    if loop is None or loop.orelse:
        return
    for make in (_by_values, _by_vmap, _by_scan):
        try:
            yield make(loop, source.block_of(loop))
        except CannotRewrite:
            continue


def loop_around(source: Source) -> ast.For | None:
    """Return the innermost loop around the line."""
    found = [n for n in ast.walk(source.tree) if isinstance(n, ast.For) and n.lineno <= source.line <= (n.end_lineno or 0)]
    return max(found, key=lambda node: node.lineno, default=None)


def _appended(statement: ast.stmt) -> tuple[str, ast.expr] | None:
    """Of `rows.append(value)`, the list and the value."""
    call = statement.value if isinstance(statement, ast.Expr) else None
    if isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute) and call.func.attr == "append" and len(call.args) == 1:
        return ast.unparse(call.func.value), call.args[0]
    return None


def _reads(node: ast.AST, name: str) -> bool:
    return any(isinstance(part, ast.Name) and part.id == name for part in ast.walk(node))


def _rest(loop: ast.For, block: Sequence[ast.stmt], lists: Sequence[str], lines: Sequence[str]) -> Change:
    """The lines in place of the loop, and what follows until the lists are read for the last time, in which they are tensors."""
    after = block[list(block).index(loop) + 1 :]
    last = max((i for i, s in enumerate(after) for name in lists if _reads(s, name)), default=-1)
    kept = [ast.unparse(ast.fix_missing_locations(_IsTensor(lists).visit(copy.deepcopy(s)))) for s in after[: last + 1]]
    return changed("\n".join([*lines, *kept]), loop, after[last] if last >= 0 else loop)


class _IsTensor(ast.NodeTransformer):
    """`torch.tensor(rows)`, `torch.stack(rows)` → `rows`; `torch.stack(rows, 1)` → `rows.movedim(0, 1)`; `torch.cat(rows, 1)`, by rows."""

    def __init__(self, lists: Sequence[str]) -> None:
        self.lists = lists

    def visit_Call(self, node: ast.Call) -> ast.AST:
        """Return the tensor."""
        self.generic_visit(node)
        first = node.args[0] if node.args else None
        if not isinstance(first, ast.Name) or first.id not in self.lists or not isinstance(node.func, ast.Attribute):
            return node
        if node.func.attr in ("tensor", "as_tensor", "LongTensor", "Tensor", "FloatTensor"):
            return first
        dim = next((k.value for k in node.keywords if k.arg == "dim"), node.args[1] if len(node.args) > 1 else ast.Constant(0))
        if node.func.attr == "stack":
            return first if ast.unparse(dim) == "0" else ast.parse(f"{first.id}.movedim(0, {ast.unparse(dim)})", mode="eval").body
        if node.func.attr == "cat":
            return ast.parse(f"torch.cat({first.id}.unbind(0), {ast.unparse(dim)})", mode="eval").body
        return node


# Over the values of a tensor --------------------------------------------------------------------------------------------------------------


def _by_values(loop: ast.For, block: Sequence[ast.stmt]) -> Change:
    """`for v in t.tolist(): …; if test: out.append(e)` → `out = e[test]` with `v = t`, what was kept of the turn before shifted by one."""
    values = ast.unparse(loop.iter).removesuffix(".tolist()")
    if not isinstance(loop.target, ast.Name) or values == ast.unparse(loop.iter):
        raise CannotRewrite
    name = loop.target.id
    *body, end = loop.body
    lag = (
        end.targets[0].id if isinstance(end, ast.Assign) and isinstance(end.targets[0], ast.Name) and ast.unparse(end.value) == name else ""
    )
    steps = body if lag else loop.body
    first = _assigned_before(block, loop, lag) if lag else ""
    lines = [f"{name} = {values}", *([f"{lag} = {LAG.format(first=first, values=name)}"] if lag else [])]
    lists: list[str] = []
    for step in steps:
        lines.append(_vectorised(step, lists))
    if not lists:
        raise CannotRewrite
    return _rest(loop, block, lists, lines)


def _assigned_before(block: Sequence[ast.stmt], loop: ast.For, name: str) -> str:
    before = block[: list(block).index(loop)]
    given = [s.value for s in before if isinstance(s, ast.Assign) and ast.unparse(s.targets[0]) == name]
    if not given:
        raise CannotRewrite
    return ast.unparse(given[-1])


def _vectorised(step: ast.stmt, lists: list[str]) -> str:
    """A step of the body for all values at once; what it appends to is noted."""
    if isinstance(step, ast.Assign):
        return ast.unparse(step)
    test, inner = (step.test, step.body[0]) if isinstance(step, ast.If) and len(step.body) == 1 and not step.orelse else (None, step)
    added = _appended(inner)
    if added is None:
        raise CannotRewrite
    lists.append(added[0])
    return f"{added[0]} = ({ast.unparse(added[1])})[{_tested(test)}]" if test else f"{added[0]} = {ast.unparse(added[1])}"


# Over rows --------------------------------------------------------------------------------------------------------------------------------


def _by_vmap(loop: ast.For, block: Sequence[ast.stmt]) -> Change:
    """`for row in x: …; out.append(e)` → `out = torch.vmap(lambda row: e)(x)`; also by index, as in `for i in range(len(x))`."""
    *before, end = loop.body
    added = _appended(end)
    if added is None:
        raise CannotRewrite
    target, given, steps, value = _rows(loop, before, added[1])
    body = "\n".join(f"    {line}" for s in [*steps, ast.Return(value)] for line in ast.unparse(s).splitlines())
    head = f"def each({target}):\n{body}\n" if steps else ""
    mapped = "each" if steps else f"lambda {target}: {ast.unparse(value)}"
    return _rest(loop, block, [added[0]], [f"{head}{added[0]} = torch.vmap({mapped})({given})"])


def _rows(loop: ast.For, steps: list[ast.stmt], value: ast.expr) -> tuple[str, str, list[ast.stmt], ast.expr]:
    """What a turn is given, and what all turns are given; a row that is taken by its index is given as it is."""
    called = loop.iter if isinstance(loop.iter, ast.Call) else None
    name = getattr(called.func, "id", "") if called else ""
    if name == "zip" and called:
        return ast.unparse(loop.target).strip("()"), ", ".join(map(ast.unparse, called.args)), steps, value
    if name != "range":
        return ast.unparse(loop.target).strip("()"), ast.unparse(loop.iter), steps, value
    rows = _Indexed(ast.unparse(loop.target))
    steps, value = [rows.visit(copy.deepcopy(s)) for s in steps], rows.visit(copy.deepcopy(value))
    if not rows.taken:
        raise CannotRewrite
    return ", ".join(rows.taken.values()), ", ".join(_moved(*key) for key in rows.taken), steps, value


def _moved(tensor: str, axis: int) -> str:
    return tensor if axis == 0 else f"{tensor}.movedim({axis}, 0)"


class _Indexed(ast.NodeTransformer):
    """`x[i]`, `x[:, i]` → a name for that row; any other use of the index is none that is known."""

    def __init__(self, index: str) -> None:
        self.index = index
        self.taken: dict[tuple[str, int], str] = {}

    def visit_Subscript(self, node: ast.Subscript) -> ast.AST:
        """Return the name, and what else is asked of the row."""
        parts = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        at = [i for i, part in enumerate(parts) if isinstance(part, ast.Name) and part.id == self.index]
        if not at:
            return self.generic_visit(node)
        if any(not _is_whole(part) for part in parts[: at[0]]):
            raise CannotRewrite
        key = (ast.unparse(node.value), at[0])
        row = ast.Name(self.taken.setdefault(key, f"row_{len(self.taken)}" if self.taken else "row"), ast.Load())
        rest = [part for i, part in enumerate(parts) if i != at[0]]
        if all(map(_is_whole, rest)):
            return row
        return ast.Subscript(row, ast.Tuple(rest, ast.Load()) if len(rest) > 1 else rest[0], node.ctx)

    def visit_Name(self, node: ast.Name) -> ast.AST:
        """Return any other name."""
        if node.id == self.index:
            raise CannotRewrite
        return node


def _is_whole(part: ast.expr) -> bool:
    return isinstance(part, ast.Slice) and not (part.lower or part.upper or part.step)


# Over steps -------------------------------------------------------------------------------------------------------------------------------


def _by_scan(loop: ast.For, block: Sequence[ast.stmt]) -> Change:
    """`for t in range(n): h = f(x[:, t], h); out.append(g(h))` → `scan`, which carries `h` from step to step."""
    added = [found for found in map(_appended, loop.body) if found]
    steps = [statement for statement in loop.body if _appended(statement) is None]
    target, rows, body, value = _rows(loop, steps, ast.Tuple([value for _, value in added], ast.Load()))
    before = block[: list(block).index(loop)]
    carried = _carried(body, before)
    if not carried or not isinstance(value, ast.Tuple):
        raise CannotRewrite
    given = [f"({ast.unparse(part)}).clone()" for part in value.elts] or [f"{carried[0]}.clone()"]
    lines = [
        f"{_listed(carried)} = carried",
        f"{_listed(target.split(', '))} = rows",
        *map(ast.unparse, body),
        f"return [{', '.join(f'{name}.clone()' for name in carried)}], [{', '.join(given)}]",
    ]
    names = [name for name, _ in added] or ["_"]
    return _rest(
        loop,
        block,
        names,
        [
            "from torch._higher_order_ops.scan import scan",
            "def step(carried, rows):\n" + "\n".join(f"    {line}" for part in lines for line in part.splitlines()),
            f"{_listed(carried)}, {_listed(names)} = scan(step, [{', '.join(f'{name}.clone()' for name in carried)}], [{rows}])",
        ],
    )


def _listed(names: Sequence[str]) -> str:
    return f"[{', '.join(names)}]"


def _carried(body: Sequence[ast.stmt], before: Sequence[ast.stmt]) -> list[str]:
    """The names that a turn gives another value, and that had one before the loop."""
    stored = {part.id for s in body for part in ast.walk(s) if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Store)}
    had = {part.id for s in before for part in ast.walk(s) if isinstance(part, ast.Name) and isinstance(part.ctx, ast.Store)}
    return sorted(stored & had)


def comprehended(source: Source) -> Iterator[Change]:
    """Yield `torch.tensor([f(v) for v in t.tolist()])` as `f(t)`; where `f` is `bisect`, as `torch.bucketize`."""
    statement = source.innermost(ast.stmt)
    mapping = _Elementwise()
    text = ast.unparse(ast.fix_missing_locations(mapping.visit(copy.deepcopy(statement)))) if statement is not None else ""
    if mapping.found and statement is not None:
        yield changed(text, statement)


class _Elementwise(ast.NodeTransformer):
    found = False

    def visit_Call(self, node: ast.Call) -> ast.AST:
        """Return the expression of the tensor."""
        listed = node.args[0] if node.args and getattr(node.func, "attr", "") in ("tensor", "stack", "as_tensor", "LongTensor") else None
        if not isinstance(listed, ast.ListComp) or len(listed.generators) != 1 or not isinstance(listed.generators[0].target, ast.Name):
            return self.generic_visit(node)
        loop = listed.generators[0]
        values, name = ast.unparse(loop.iter).removesuffix(".tolist()"), listed.generators[0].target
        self.found = True
        assert isinstance(name, ast.Name)
        element = _Lookup(values).visit(_Renamed(name.id, values).visit(copy.deepcopy(listed.elt)))
        kept = [_tested(_Renamed(name.id, values).visit(copy.deepcopy(test))) for test in loop.ifs]
        return ast.parse(f"({ast.unparse(element)})" + "".join(f"[{test}]" for test in kept), mode="eval").body


class _Renamed(ast.NodeTransformer):
    def __init__(self, name: str, values: str) -> None:
        self.name, self.values = name, values

    def visit_Name(self, node: ast.Name) -> ast.AST:
        """Return the whole tensor for one of its values."""
        return ast.parse(f"({self.values})", mode="eval").body if node.id == self.name else node


class _Lookup(ast.NodeTransformer):
    """`bisect.bisect(edges, v)` → `torch.bucketize(v, …)`; `table.get(v, d)` and `table[v]` of a dict → a comparison with all keys."""

    def __init__(self, values: str) -> None:
        self.values = f"({values})"

    def visit_Call(self, node: ast.Call) -> ast.AST:
        """Return the call of torch."""
        self.generic_visit(node)
        name = getattr(node.func, "attr", getattr(node.func, "id", ""))
        if name in ("bisect", "bisect_right", "bisect_left") and len(node.args) == 2:
            edges, value = map(ast.unparse, node.args)
            right = ", right=True" if name != "bisect_left" else ""
            return ast.parse(f"torch.bucketize({value}, torch.as_tensor({edges}){right})", mode="eval").body
        if name == "get" and len(node.args) == 2 and isinstance(node.func, ast.Attribute) and ast.unparse(node.args[0]) in self.values:
            return self._looked_up(ast.unparse(node.func.value), ast.unparse(node.args[1]))
        return node

    def visit_Subscript(self, node: ast.Subscript) -> ast.AST:
        """Return the value that stands beside the key."""
        self.generic_visit(node)
        return self._looked_up(ast.unparse(node.value), "0") if f"({ast.unparse(node.slice)})" == self.values else node

    def _looked_up(self, table: str, other: str) -> ast.expr:
        found = f"{self.values}[..., None] == torch.tensor(list({table}))"
        text = f"(({found}) * (torch.tensor(list({table}.values())) - {other})).sum(-1) + {other}"
        return ast.parse(text, mode="eval").body
