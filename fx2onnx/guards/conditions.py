"""Conditions that torch checks at run time but the exported model does not: asserts on values and data-dependent sizes."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

import sympy
import torch

from ..errors import users_line
from ..ir.expressions import expression
from .dims import format_with_names

aten = torch.ops.aten
READS = {aten.item.default, aten._local_scalar_dense.default}
RANGES = {aten.sym_constrain_range.default, aten.sym_constrain_range_for_size.default}
OF_TENSORS = {aten._assert_async.msg, aten._assert_async.default}
TORCHS_OWN = "Runtime assertion failed"  # the beginning of the message if torch.export lost the model's own
TORCHS_LEAST = 2  # torch's minimum of a dynamic size, unless another is declared
TRUTH = re.compile(TORCHS_OWN + r" for expression Eq\((u\d+), 1\) ")


def conditions(program: torch.export.ExportedProgram, names: Mapping[sympy.Expr, str]) -> tuple[str, ...]:
    """Return what eager requires and the exported model does not check, by the line that requires it.

    Args:
        names: the names of the dynamic sizes.
    """
    graphs = [module.graph for module in program.graph_module.modules() if isinstance(module, torch.fx.GraphModule)]
    read = {symbol for graph in graphs for node in graph.nodes if node.target in READS for symbol in _symbols(node)}
    called = names_of_axes(program, names)
    lines: dict[str, dict[str, None]] = {}
    for graph in graphs:
        for node in graph.nodes:
            for text in _describe_check(node, read, called):
                lines.setdefault(users_line(node), {})[text] = None
    return tuple(f"{line}: torch checks that {' and '.join(text)}; the exported model does not" for line, text in lines.items())


def names_of_axes(program: torch.export.ExportedProgram, names: Mapping[sympy.Expr, str]) -> dict[sympy.Expr, str]:
    """Return the names of dynamic sizes; an unnamed one is "axis 1 of x"."""
    inputs = set(program.graph_signature.user_inputs)
    given = (node for node in program.graph.nodes if node.op == "placeholder" and node.name in inputs)
    shapes = ((node.name, node.meta["val"].shape) for node in given if isinstance(node.meta.get("val"), torch.Tensor))
    found = [(expression(size), f"axis {axis} of {name}") for name, shape in shapes for axis, size in enumerate(shape)]
    return {**{size: name for size, name in reversed(found) if isinstance(size, sympy.Symbol)}, **names}


def ranges(program: torch.export.ExportedProgram, names: Mapping[sympy.Expr, str]) -> Iterator[str]:
    """Yield the bounds of the sizes of a captured program, except torch's default minimum of 2."""
    called = names_of_axes(program, names)
    for symbol, found in ((size, program.range_constraints[size]) for size in called if size in program.range_constraints):
        least = f"at least {found.lower}" if found.lower > TORCHS_LEAST else ""
        most = f"at most {found.upper}" if found.upper.is_Integer else ""
        if bounds := " and ".join(filter(None, (least, most))):
            yield f'the program was captured for "{called[symbol]}" of {bounds}; the exported model does not check this'


def _describe_check(node: torch.fx.Node, read: set[Any], names: Mapping[sympy.Expr, str]) -> Iterator[str]:
    """Describe what a node checks; nothing if it always holds or checks nothing."""
    if node.target in OF_TENSORS:
        yield f"a tensor is true{_quote_message(node.args[1:])}"
    elif node.target is aten._assert_scalar.default:
        test = _read_expression(node.args[0])
        text = _format_condition(test, read, names)
        if truth := TRUTH.match(str(node.args[1])):  # torch.export treats it as known afterwards, so its expression is trivial
            text = f"{truth[1]}, which is read from a tensor there, is true or 1"
        if text:
            yield text + _quote_message(node.args[1:])
    elif node.target in RANGES:
        symbol = _read_expression(node.args[0])
        least, most = node.kwargs.get("min", 0), node.kwargs.get("max")
        for test in (symbol >= least if least is not None else None, symbol <= most if most is not None else None):
            if test is not None and (text := _format_condition(test, read, names)):
                yield text


def _read_expression(argument: Any) -> Any:
    return expression(argument.meta.get("val") if isinstance(argument, torch.fx.Node) else argument)


def _symbols(node: torch.fx.Node) -> set[Any]:
    found = _read_expression(node)
    return set(found.free_symbols) if isinstance(found, sympy.Basic) else set()


def _quote_message(message: tuple[Any, ...]) -> str:
    """The model's own message, if the program contains it."""
    own = [text for text in message if isinstance(text, str) and text and not text.startswith(TORCHS_OWN)]
    return f" ({own[0]})" if own else ""


def _format_condition(test: Any, read: set[Any], names: Mapping[sympy.Expr, str]) -> str:
    """A readable test; empty if it is trivial, such as a size that is not negative."""
    if not isinstance(test, sympy.Basic) or not test.free_symbols or test.has(sympy.Piecewise):
        return ""
    if isinstance(test, (sympy.StrictGreaterThan, sympy.StrictLessThan)):  # of integers
        test = test.gts >= test.lts + 1
    if isinstance(test, (sympy.Ge, sympy.Le)) and not test.free_symbols & read and test.gts.is_Symbol and test.lts == 0:
        return ""
    return format_with_names(test, names)
