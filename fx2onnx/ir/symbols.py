"""Symbolic numbers as values of the graph, computed once from the shapes of the inputs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any, Protocol

import onnx_ir as ir
import sympy

from .dtypes import BOOL, DOUBLE, INT64
from .expressions import Size
from .tensor import Tensor


class UnknownSymbol(LookupError):
    """A symbol that is neither a size of an input nor computed by an operator."""


class Appends(Protocol):
    """The graph to which the nodes of an expression are appended."""

    def op(self, op_type: str, *inputs: Any, **attributes: Any) -> Any:
        """Append a node."""

    def cast(self, value: Any, dtype: ir.DataType) -> Tensor:
        """Return the value in another dtype."""

    def const(self, data: Any, dtype: ir.DataType) -> Tensor:
        """Return a constant."""

    def set_sizes(self, value: Tensor, sizes: tuple[Size, ...]) -> Tensor:
        """Return the same value with known sizes."""

    def function_input(self, number: sympy.Expr) -> Tensor | None:
        """Return the input of the function being built that passes this number, int64 (1,); None outside a function."""


class Symbols:
    """The sources of the symbols of one graph: a size of a tensor, or a computed number."""

    def __init__(self, outer: Symbols | None = None) -> None:
        self.outer = outer
        self.sources: dict[sympy.Expr, Callable[[Appends], Tensor]] = {}
        self.scalars: dict[sympy.Expr, Tensor] = {}

    def learn_sizes(self, value: Tensor, sizes: Sequence[Size] | None = None) -> None:
        """Record that the sizes of this tensor can be read from it, under its own sizes or the given ones."""
        for axis, size in enumerate(value.sizes if sizes is None else sizes):
            if not isinstance(size, int) and not self.knows(size):
                self.sources[size] = partial(_size, value, axis)

    def learn_number(self, number: Any, value: Tensor) -> None:
        """Record that this tensor of one element contains the number."""
        if isinstance(number, sympy.Basic) and not self.knows(number):
            self.bind_number(number, value)

    def bind_number(self, number: Any, value: Tensor) -> None:
        """Bind the number to the tensor in this graph, whatever it is bound to in outer graphs: used for a loop's own symbol."""
        kind = dtype_of_number(number)
        self.sources[number] = lambda g: g.cast(value if value.known_sizes == (1,) else g.op("Reshape", value, [1]), kind)
        if value.known_sizes == () and value.dtype == kind:
            self.scalars[number] = value

    def knows(self, number: sympy.Expr) -> bool:
        """Return whether a number can be read in this graph."""
        return number in self.sources or (self.outer is not None and self.outer.knows(number))

    def _source(self, number: sympy.Expr) -> Callable[[Appends], Tensor] | None:
        return self.sources.get(number) or (self.outer._source(number) if self.outer else None)

    def _scalar(self, number: sympy.Expr) -> Tensor | None:
        """Return the tensor without axes that contains the number, else None."""
        if number in self.sources:
            return self.scalars.get(number)
        return self.outer._scalar(number) if self.outer else None

    def one(self, g: Appends, number: Any) -> Tensor:
        """Return an int64 tensor `[number]`; a list is used as it is."""
        if isinstance(number, list):
            return g.const(number, INT64)
        if isinstance(number, (int, sympy.Integer)):
            return g.const([int(number)], INT64)
        if (source := self._source(number)) is not None:
            return source(g)
        return g.set_sizes(g.cast(self._compute(g, number), INT64), (1,))

    def scalar(self, g: Appends, number: sympy.Expr) -> Tensor:
        """Return a tensor without axes: int64, float64 or bool, as the expression is."""
        if (held := self._scalar(number)) is not None:
            return held
        one = self._compute(g, number) if _is_truth(number) or not number.is_integer else self.one(g, number)
        return g.set_sizes(g.op("Squeeze", one, [0]), ())

    def _compute(self, g: Appends, number: Any) -> Tensor:
        """Return a tensor of one element; integers are int64, other numbers float64."""
        if _is_truth(number):
            return self._truth(g, number)
        if number.is_number:
            return g.const([int(number)], INT64) if number.is_integer else _real_constant(g, number)
        if (source := self._source(number)) is not None:
            return source(g)
        if number.is_Symbol and number.is_integer and (function_input := g.function_input(number)) is not None:
            return function_input
        if number.is_Symbol:
            raise UnknownSymbol(f"the captured graph uses {number}, which is neither a size of an input nor computed by an operator")
        if number.is_Mul and number.args[0].is_Rational and not number.args[0].is_Integer:
            return _real("Div")(g, *[self._compute(g, part) for part in (number * number.args[0].q, sympy.Integer(number.args[0].q))])
        rule = RULES.get("FloatPow" if number.is_Pow and not number.is_integer else type(number).__name__)
        if rule is None:
            raise UnknownSymbol(f"{type(number).__name__} in the size {number} cannot be translated")
        return rule(g, *[self._compute(g, argument) for argument in number.args])

    def _truth(self, g: Appends, statement: Any) -> Tensor:
        if statement in (sympy.true, sympy.false):
            return g.const([bool(statement)], BOOL)
        if (source := self._source(statement)) is not None:
            return source(g)
        arguments = [self._compute(g, argument) for argument in statement.args]
        kind = type(statement).__name__
        if kind in RELATIONS:
            return RELATIONS[kind](g, *_alike(g, *arguments))
        if kind not in CONNECTIVES:
            raise UnknownSymbol(f"{kind} in the condition {statement} cannot be translated")
        return CONNECTIVES[kind](g, *arguments)


def _size(value: Tensor, axis: int, g: Appends) -> Tensor:
    """Return the size of one axis, int64 (1,)."""
    made: Tensor = g.op("Shape", value, start=axis, end=axis + 1)
    return made


def _real_constant(g: Appends, number: sympy.Expr) -> Tensor:
    return g.const([float(number)], DOUBLE)


def dtype_of_number(number: sympy.Basic) -> ir.DataType:
    """Return the type that a graph holds a symbolic number in."""
    return BOOL if _is_truth(number) else INT64 if number.is_integer else DOUBLE


def _is_truth(number: Any) -> bool:
    """Return whether a number is a boolean; in sympy a comparison is not a Boolean, and every symbol might be one."""
    return number.is_Boolean or number.is_Relational


def _alike(g: Appends, *numbers: Tensor) -> list[Tensor]:
    """Return the numbers in one dtype: float64 if any of them is."""
    dtype = DOUBLE if any(number.dtype == DOUBLE for number in numbers) else INT64
    return [g.cast(number, dtype) for number in numbers]


def _make_fold(op_type: str) -> Callable[..., Tensor]:
    def fold(g: Appends, *numbers: Tensor) -> Tensor:
        first, *rest = _alike(g, *numbers)
        for number in rest:
            first = g.op(op_type, first, number)
        return first

    return fold


def _real(op_type: str) -> Callable[..., Tensor]:
    return lambda g, *numbers: g.op(op_type, *[g.cast(number, DOUBLE) for number in numbers])


def _make_rounding(op_type: str) -> Callable[..., Tensor]:
    return lambda g, number: g.cast(g.op(op_type, g.cast(number, DOUBLE)), INT64)


def _power(g: Appends, base: Tensor, exponent: Tensor) -> Tensor:
    return g.op("Pow", g.cast(base, DOUBLE), exponent) if exponent.dtype == DOUBLE else g.op("Pow", *_alike(g, base, exponent))


def _floor_div(g: Appends, a: Tensor, b: Tensor) -> Tensor:
    """Return ⌊a/b⌋ for integers of any sign: (a − mod(a, b)) / b, because ONNX's Mod has the sign of b and its Div truncates."""
    if DOUBLE in (a.dtype, b.dtype):
        return g.op("Floor", _real("Div")(g, a, b))
    return g.op("Div", g.op("Sub", a, g.op("Mod", a, b)), b)


def _truncate(g: Appends, number: Tensor) -> Tensor:
    return g.cast(g.cast(number, DOUBLE), INT64)


def _modular_indexing(g: Appends, base: Tensor, divisor: Tensor, modulus: Tensor) -> Tensor:
    return g.op("Mod", _floor_div(g, base, divisor), modulus)


def _where(g: Appends, condition: Tensor, yes: Tensor, no: Tensor) -> Tensor:
    return g.op("Where", condition, *_alike(g, yes, no))


def _piecewise(g: Appends, *cases: tuple[Tensor, Tensor]) -> Tensor:
    """Return the value of the first case whose condition holds; that of the last one always does."""
    *others, (value, _) = cases
    for other, condition in reversed(others):
        value = _where(g, condition, other, value)
    return value


def _power_of_two(g: Appends, exponent: Tensor) -> Tensor:
    return g.op("Pow", g.const([2], INT64), exponent)


RULES: dict[str, Callable[..., Any]] = {
    "Add": _make_fold("Add"),
    "Mul": _make_fold("Mul"),
    "Max": _make_fold("Max"),
    "Min": _make_fold("Min"),
    "Mod": _make_fold("Mod"),
    "PythonMod": _make_fold("Mod"),
    "Pow": _power,
    "PowByNatural": _power,
    "FloatPow": _real("Pow"),
    "FloorDiv": _floor_div,
    "CleanDiv": _floor_div,
    "IntTrueDiv": _real("Div"),
    "FloatTrueDiv": _real("Div"),
    "ModularIndexing": _modular_indexing,
    "ToFloat": lambda g, number: g.cast(number, DOUBLE),
    "TruncToInt": _truncate,
    "TruncToFloat": lambda g, number: g.cast(_truncate(g, number), DOUBLE),
    "FloorToInt": _make_rounding("Floor"),
    "CeilToInt": _make_rounding("Ceil"),
    "RoundToInt": _make_rounding("Round"),
    "floor": _make_rounding("Floor"),
    "ceiling": _make_rounding("Ceil"),
    "Abs": lambda g, number: g.op("Abs", number),
    "Where": _where,
    "Piecewise": _piecewise,
    "ExprCondPair": lambda g, value, condition: (value, condition),
    "Identity": lambda g, number: number,
    "LShift": lambda g, number, by: g.op("Mul", number, _power_of_two(g, by)),
    "RShift": lambda g, number, by: _floor_div(g, number, _power_of_two(g, by)),
    "BitwiseFn_bitwise_and": _make_fold("BitwiseAnd"),
    "BitwiseFn_bitwise_or": _make_fold("BitwiseOr"),
    "BitwiseFn_bitwise_xor": _make_fold("BitwiseXor"),
    "OpaqueUnaryFn_sqrt": _real("Sqrt"),
    "OpaqueUnaryFn_exp": _real("Exp"),
    "OpaqueUnaryFn_log": _real("Log"),
    "OpaqueUnaryFn_sin": _real("Sin"),
    "OpaqueUnaryFn_cos": _real("Cos"),
}
RELATIONS: dict[str, Callable[..., Tensor]] = {
    "Equality": lambda g, a, b: g.op("Equal", a, b),
    "Unequality": lambda g, a, b: g.op("Not", g.op("Equal", a, b)),
    "StrictLessThan": lambda g, a, b: g.op("Less", a, b),
    "LessThan": lambda g, a, b: g.op("LessOrEqual", a, b),
    "StrictGreaterThan": lambda g, a, b: g.op("Greater", a, b),
    "GreaterThan": lambda g, a, b: g.op("GreaterOrEqual", a, b),
}
CONNECTIVES: dict[str, Callable[..., Tensor]] = {
    "And": lambda g, *parts: _chain(g, "And", parts),
    "Or": lambda g, *parts: _chain(g, "Or", parts),
    "Not": lambda g, part: g.op("Not", part),
}


def _chain(g: Appends, op_type: str, parts: tuple[Tensor, ...]) -> Tensor:
    first, *rest = parts
    for part in rest:
        first = g.op(op_type, first, part)
    return first
