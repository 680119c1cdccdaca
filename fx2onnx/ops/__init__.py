"""The translations, one file per family. Each docstring gives the operator's schema and the ONNX operators it becomes."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Mapping
from functools import cache
from typing import Any

from ..build.translation import Translation
from ..translate.registry import table_of


@cache
def own_translations() -> Mapping[Any, Translation]:
    """Return all of them by operator; the first call imports the files of this folder."""
    return table_of(importlib.import_module(f"{__name__}.{file.name}") for file in pkgutil.iter_modules(__path__))
