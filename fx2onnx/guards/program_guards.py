"""Guards of a given ExportedProgram: torch checks them at run time, but the exported model does not."""

from __future__ import annotations

import ast
import operator
import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

import sympy
import torch

from ..compat import symbols as functions
from ..compat import trees as pytree
from ..compat.shape_env import ShapeGuardPythonPrinter
from ..ir.expressions import expression
from .decisions import MOST, Range, is_proved, or_is_small
from .dims import format_with_names
from .dynamic_shapes import shape_environment
from .guard_origin import source_line

SIZE = re.compile(r"L(?P<path>(?:\[[^\]]+\])+)(?:\.size\(\)\[(?P<axis>\d+)\])?")  # the syntax of sizes in torch's guards
TORCHS = "a PyTorch operator"
LEAST = 2  # the minimum of any size of a program, unless a guard has another
OPERATORS: Mapping[type, Callable[..., Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Pow: lambda base, power: (functions.PowByNatural if base.is_integer and power.is_Integer else functions.FloatPow)(base, power),
    ast.Div: lambda a, b: (functions.IntTrueDiv if a.is_integer and b.is_integer else functions.FloatTrueDiv)(a, b),
    ast.FloorDiv: functions.FloorDiv,
    ast.Mod: functions.PythonMod,
    ast.USub: operator.neg,
    ast.Not: sympy.Not,
    ast.And: sympy.And,
    ast.Or: sympy.Or,
    ast.Eq: sympy.Eq,
    ast.NotEq: sympy.Ne,
    ast.Gt: sympy.Gt,
    ast.GtE: sympy.Ge,
    ast.Lt: sympy.Lt,
    ast.LtE: sympy.Le,
}
FUNCTIONS: Mapping[str, Callable[..., Any]] = {
    "math.trunc": functions.TruncToInt,
    "math.ceil": functions.CeilToInt,
    "math.floor": functions.FloorToInt,
    "math.sqrt": functions.OpaqueUnaryFn_sqrt,
    "torch.sym_float": functions.ToFloat,
    "abs": sympy.Abs,
    **dict.fromkeys(("max", "torch.sym_max"), functions.Max),
    **dict.fromkeys(("min", "torch.sym_min"), functions.Min),
}


class UnreadableGuard(Exception):
    """A guard with unsupported syntax."""


def guards_of(program: torch.export.ExportedProgram, names: Mapping[sympy.Expr, str]) -> Iterator[str]:
    """Yield the guards that the ranges of the sizes do not imply, by the lines that caused them.

    Args:
        names: the user's names of the dynamic sizes.
    """
    sizes = Sizes(program, names)
    lines = _lines(program)
    known: list[sympy.Basic] = []
    by_line: dict[str, dict[str, None]] = {}
    for text in program._guards_code:
        line = lines.get(text, "")
        where = by_line.setdefault(line, {})
        try:
            guard = sizes.read(text)
        except UnreadableGuard:
            where[text] = None
            continue
        goal = or_is_small(guard) if line == TORCHS else guard  # torch's operators ignore these sizes
        if not is_proved(sympy.Or(*sympy.Or.make_args(goal), *map(sympy.Not, known)), sizes.ranges):
            known.append(guard)
            where[format_with_names(guard, sizes.names)] = None
    for line, texts in by_line.items():
        if texts:
            yield f"{line}{': ' if line else ''}the program was captured for {' and '.join(texts)}; the exported model does not check this"


def _lines(program: torch.export.ExportedProgram) -> dict[str, str]:
    """Return the lines that caused guards, by their text; empty for a program loaded from a file."""
    environment = shape_environment(program)
    if environment is None:
        return {}
    sources = environment.var_to_sources
    printer = ShapeGuardPythonPrinter(sources, lambda source: source.name, sources)
    guards = (guard for guard in environment.guards if guard.expr.free_symbols <= sources.keys())
    return {printer.doprint(guard.expr): source_line(guard.sloc) or TORCHS for guard in guards}


class Sizes:
    """The sizes in guards, each with its own symbol, because two sizes that are equal in the program may differ.

    Attributes:
        names: the names of the symbols.
        ranges: the sizes that the program accepts.
    """

    def __init__(self, program: torch.export.ExportedProgram, names: Mapping[sympy.Expr, str]) -> None:
        self._given, self._constraints = names, program.range_constraints
        self._values = _inputs(program)
        self._symbols: dict[str, sympy.Symbol] = {}
        self.names: dict[sympy.Symbol, str] = {}
        self.ranges: dict[sympy.Symbol, Range] = {}

    def read(self, text: str) -> sympy.Basic:
        """Parse a guard, which torch writes as Python code.

        Raises:
            UnreadableGuard: If its syntax is not supported.
        """
        found: dict[str, sympy.Symbol] = {}

        def named(match: re.Match[str]) -> str:
            found[name := f"size_{len(found)}"] = self._symbol(match["path"], match["axis"])
            return name

        try:
            return sympy.sympify(_read(ast.parse(SIZE.sub(named, text), mode="eval").body, found))
        except (TypeError, AssertionError) as error:  # from a function that does not accept these numbers
            raise UnreadableGuard(text) from error

    def _symbol(self, path: str, axis: str | None) -> sympy.Symbol:
        argument, value = self._values.get(path, (path.strip("[]'"), None))
        size = expression(value.shape[int(axis)]) if isinstance(value, torch.Tensor) and axis else expression(value)
        name = self._given.get(size) or (f"axis {axis} of {argument}" if axis else argument)
        if name not in self._symbols:
            symbol = self._symbols[name] = sympy.Symbol(f"size_of_{len(self._symbols)}", integer=True, nonnegative=True)
            self.names[symbol], self.ranges[symbol] = name, self._range(size)
        return self._symbols[name]

    def _range(self, size: Any) -> Range:
        found = self._constraints.get(size)
        if found is None:
            return LEAST, MOST
        return max(LEAST, int(max(found.lower, 0))), int(min(found.upper, MOST))


def _inputs(program: torch.export.ExportedProgram) -> dict[str, tuple[str, Any]]:
    """Return the name and the fake value of each input by its key in torch's guards: by argument, or by number."""
    from ..compat.exporting import combine_args

    given = set(program.graph_signature.user_inputs)
    values = [(node.name, node.meta.get("val")) for node in program.graph.nodes if node.op == "placeholder" and node.name in given]
    args, kwargs = pytree.tree_unflatten(list(range(len(values))), program.call_spec.in_spec)
    paths = pytree.tree_leaves_with_path(combine_args(program, args, kwargs)) if program._guards_code else ()
    by_argument = {pytree.keystr(path): values[number] for path, number in paths}
    return {f"['flat_args'][{number}]": value for number, value in enumerate(values)} | by_argument


def _read(node: ast.AST, sizes: Mapping[str, sympy.Symbol]) -> Any:
    match node:
        case ast.Constant(value) if isinstance(value, (int, float)):
            return sympy.sympify(value)
        case ast.Name(name) if name in sizes:
            return sizes[name]
        case ast.UnaryOp(op, operand):
            return _operator(op)(_read(operand, sizes))
        case ast.BinOp(left, op, right):
            return _operator(op)(_read(left, sizes), _read(right, sizes))
        case ast.BoolOp(op, values):
            return _operator(op)(*(_read(value, sizes) for value in values))
        case ast.Compare(left, [op], [right]):
            return _operator(op)(_read(left, sizes), _read(right, sizes))
        case ast.Call(function, arguments, []) if (build := FUNCTIONS.get(ast.unparse(function))) is not None:
            return build(*(_read(argument, sizes) for argument in arguments))
    raise UnreadableGuard(ast.unparse(node))


def _operator(op: ast.AST) -> Callable[..., Any]:
    if type(op) not in OPERATORS:
        raise UnreadableGuard(type(op).__name__)
    return OPERATORS[type(op)]
