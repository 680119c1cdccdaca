"""A case in a file of the user's own, `FILE.py:factory`, and the line of that file an error came from."""

from __future__ import annotations

import importlib.util
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import TypeVar

from .cases import Built, Case
from .messages import first_line

T = TypeVar("T")


class BadInput(Exception):
    """What the user gave cannot be used; the message is one line that says what, where, and what to do."""


def load_case(target: str) -> Built:
    """Return the case, built once, that `FILE.py:factory` names: a `@case`, or a function that returns `(module, args[, kwargs])`.

    Raises:
        BadInput: no such file or name, or the file or the factory raises, or the factory returns something else.
    """
    path, colon, name = target.rpartition(":")
    if not colon or not path.endswith(".py"):
        raise BadInput(f"{target!r} is not FILE.py:factory, as in mymodel.py:build")
    return guarded(named_case(path, name).build, f"{path}:{name}", Path(path))


def named_case(path: str, name: str) -> Case:
    """Return the case of this name in a file, not built yet. Raises what `load_case` raises about files and names."""
    found = getattr(_module(Path(path)), name, None)
    if found is None:
        raise BadInput(f"{path} has no {name!r}: it must be a function that returns (module, args) or (module, args, kwargs)")
    if not isinstance(found, Case) and not callable(found):
        raise BadInput(f"{path}:{name} is a {type(found).__name__}, not a function that returns (module, args)")
    return found if isinstance(found, Case) else Case(name, found)


def all_cases(path: str) -> list[Case]:
    """Return every function of a file that is decorated by `@case`, in its order.

    Raises:
        BadInput: no such file, or it raises, or it declares no case.
    """
    found = [value for value in vars(_module(Path(path))).values() if isinstance(value, Case)]
    if not found:
        raise BadInput(f"{path} declares no case: decorate functions that return (module, args) with @exportlab.case(dims={{…}})")
    return found


def guarded(call: Callable[[], T], what: str, path: Path) -> T:
    """Return what `call` returns.

    Raises:
        BadInput: it raised; the message names the error and the line of the user's file.
    """
    try:
        return call()
    except (Exception, SystemExit) as error:
        raise BadInput(f"{what} raised {first_line(error)}{user_line(error, path)}") from error


def user_line(error: BaseException, path: Path) -> str:
    """Return ` (at FILE:LINE)`, the line of that file that an error came from; empty where there is none."""
    line = line_in(error, path)
    return f" (at {path}:{line})" if line else ""


def line_in(error: BaseException | None, path: Path) -> int | None:
    """Return the deepest line of a file in the traceback of an error or its causes."""
    while error is not None:
        frames = [f for f in traceback.extract_tb(error.__traceback__) if Path(f.filename) == path.resolve()]
        if frames:
            return frames[-1].lineno
        error = error.__cause__ or error.__context__
    return None


def _module(path: Path) -> ModuleType:
    if not path.is_file():
        raise BadInput(f"there is no file {path}")
    spec = importlib.util.spec_from_file_location(path.stem, path.resolve())
    assert spec is not None
    loader = spec.loader
    assert loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses and pickles look their module up
    guarded(lambda: loader.exec_module(module), str(path), path)
    return module
