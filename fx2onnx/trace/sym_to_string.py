"""Refuse to convert symbolic numbers to text, because it would be the symbol's and a test of it would go unnoticed."""

from __future__ import annotations

import logging
import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from ..compat.shape_env import free_unbacked_symbols
from ..libraries import is_in, is_library_file, normalise_separators
from ..patches.registry import register_patch
from .refusal import NoFallback
from .source_location import line_of, outside

NUMBERS = ("torch.SymInt", "torch.SymFloat", "torch.SymBool")
INSTEAD = "an exported model cannot make this text. Compare the number itself, and print it outside the model"
OF_A_NUMBER = re.compile(r"[\W_x]*\d[\W\d_x]*")  # `3`, `[3]`, `224x224`
LOGGING = normalise_separators(f"{Path(logging.__file__).parent}/")


@register_patch(
    "text_of_numbers",
    *(f"{kind}.__repr__" for kind in NUMBERS),
    reason="the text of a symbol is not that of its number, so a condition on it would be decided wrongly",
)
def _refusing(plain: Callable[[Any], str]) -> Callable[[Any], str]:
    """Refuse text of a data-dependent number, or of a size in a function that has texts of numbers as constants."""

    def text(number: Any) -> str:
        frame = sys._getframe(1)
        is_the_model_s = outside(frame) is frame and not _is_library_or_logging(frame.f_code.co_filename)
        if is_the_model_s and _is_of_values(number.node):
            raise NoFallback(f"a number that depends on tensor values is converted to text at {line_of(frame)}: {INSTEAD}")
        if is_the_model_s and any(map(OF_A_NUMBER.fullmatch, _texts(frame.f_code.co_consts))):
            raise NoFallback(f"a dynamic size is converted to text at {line_of(frame)}, next to other texts of numbers: {INSTEAD}")
        return plain(number)

    return text


def _is_of_values(node: Any) -> bool:
    return bool(free_unbacked_symbols(node.expr)) or not getattr(node.shape_env, "fresh", frozenset()).isdisjoint(node.expr.free_symbols)


def _texts(constants: Any) -> Iterator[str]:
    for constant in constants:
        if isinstance(constant, str):
            yield constant
        elif isinstance(constant, (tuple, frozenset)):
            yield from _texts(constant)


def _is_library_or_logging(path: str) -> bool:
    return is_library_file(path) or is_in(path, LOGGING)
