"""Translations of operators, one file per family. Each docstring shows the operator's schema and the resulting ONNX operators."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Mapping
from functools import cache
from typing import Any

from ..ir.translation import Translation
from ..translate.registry import OF_PAIRS, TARGETS, table_of


@cache
def own_translations() -> Mapping[Any, Translation]:
    """Return all translations by operator; the first call imports the files of this folder."""
    return _table(TARGETS)


@cache
def pair_translations() -> Mapping[Any, Translation]:
    """Return the translations of calls with complex arguments or results."""
    return _table(OF_PAIRS)


def _table(marked: str) -> Mapping[Any, Translation]:
    return table_of([importlib.import_module(f"{__name__}.{file.name}") for file in pkgutil.iter_modules(__path__)], marked)
