"""Known errors, one module each. The first line of its docstring is the title, the rest is the cause."""

from __future__ import annotations

import importlib
import pkgutil

from exportlab.errors.known import KnownError


def known_errors() -> list[KnownError]:
    """Return the error of each module of this folder."""
    return [importlib.import_module(f"{__name__}.{module.name}").ERROR for module in pkgutil.iter_modules(__path__)]
