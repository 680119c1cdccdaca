"""The sympy functions of torch's symbolic sizes, and their value ranges."""

from __future__ import annotations

from torch.utils._sympy.functions import (
    CeilToInt,
    FloatPow,
    FloatTrueDiv,
    FloorDiv,
    FloorToInt,
    IntTrueDiv,
    Max,
    Min,
    Mod,
    OpaqueUnaryFn_exp,
    OpaqueUnaryFn_log,
    OpaqueUnaryFn_sqrt,
    PowByNatural,
    PythonMod,
    ToFloat,
    TruncToInt,
)
from torch.utils._sympy.numbers import int_oo
from torch.utils._sympy.printers import PythonPrinter
from torch.utils._sympy.value_ranges import ValueRangeError, ValueRanges, bound_sympy

__all__ = [
    "CeilToInt", "FloatPow", "FloatTrueDiv", "FloorDiv", "FloorToInt", "IntTrueDiv", "Max", "Min", "Mod", "OpaqueUnaryFn_exp",
    "OpaqueUnaryFn_log", "OpaqueUnaryFn_sqrt", "PowByNatural", "PythonMod", "PythonPrinter", "ToFloat", "TruncToInt",
    "ValueRangeError", "ValueRanges", "bound_sympy", "int_oo",
]  # fmt: skip
