"""The command line of Export Lab."""

from __future__ import annotations

import re
import sys
from importlib.metadata import PackageNotFoundError, requires

__all__ = ["main"]

_OF_LAB = re.compile(r"([\w-]+).*;.*extra == .lab.")


def main() -> None:
    """Run the command line. If a package of the extra `lab` is missing, print how to install it, and exit with status 1."""
    try:
        from .commands import main as run_commands

        run_commands()
    except ModuleNotFoundError as error:
        if (name := (error.name or "").partition(".")[0]) not in _list_packages():
            raise
        sys.exit(f"exportlab: the package {name} is not installed: pip install 'exportlab[lab]'")


def _list_packages() -> set[str]:
    """Return the packages of the extra `lab`; only the first that is imported, in a checkout that is not installed."""
    try:
        found = map(_OF_LAB.match, requires("exportlab") or ())
    except PackageNotFoundError:
        return {"typer"}
    return {requirement[1] for requirement in found if requirement}
