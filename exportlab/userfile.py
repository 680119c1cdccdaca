"""Load a case from a user's file, `FILE.py:name`, and find the line of that file that caused an error.

The file's folder is appended to `sys.path`, so that the file can import its siblings, but they cannot shadow installed packages. The file
itself is imported under a reserved module name for the same reason.
"""

from __future__ import annotations

import importlib.util
import inspect
import sys
import traceback
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import TypeVar

from .cases import OF_USER, Built, Case
from .checks import kind_of
from .messages import first_line
from .samples import NotDeclared
from .target import FORMS, BadInput, check_is_file

T = TypeVar("T")


def named_case(path: str, name: str) -> Case:
    """Return the case with this name, without building it. The name is a `@case` or a function that returns one of `target.FORMS`.

    Raises:
        BadInput: the file or the name doesn't exist, or the file raises an error.
    """
    module = _module(Path(path))
    if not hasattr(module, name):
        raise BadInput(f"{path} has no {name!r}: it must be a function that returns {FORMS}, or a @case")
    found = getattr(module, name)
    if not isinstance(found, Case) and not callable(found):
        raise BadInput(f"{path}:{name} is {kind_of(found)}, not a function that returns {FORMS}, or a @case")
    return found if isinstance(found, Case) else Case(name, found)


def built(case: Case, path: Path, build: Callable[[], Built]) -> Built:
    """Return the result of `build`, which calls the factory of a case in this file.

    Raises:
        BadInput: the factory raises an error, or returns something unexpected.
    """
    try:
        return call_user_code(build, f"{path}:{case.name}", path)
    except NotDeclared as error:
        raise BadInput(f"{error} (at {path}:{_line_of(case)})") from error


def all_cases(path: str) -> list[Case]:
    """Return all functions of a file that are decorated with `@case`, in order.

    Raises:
        BadInput: the file doesn't exist, raises an error, or declares no cases.
    """
    found = [value for value in vars(_module(Path(path))).values() if isinstance(value, Case)]
    if not found:
        raise BadInput(f"{path} declares no cases: decorate functions with @exportlab.case(dims={{…}}), or pass a function, {path}:build")
    return found


def call_user_code(call: Callable[[], T], what: str, path: Path) -> T:
    """Call `call` and return its result.

    Raises:
        BadInput: `call` raised an error; the message contains it and the line of the user's file.
        NotDeclared: passed through unchanged.
    """
    try:
        return call()
    except (BadInput, NotDeclared):
        raise
    except (Exception, SystemExit) as error:
        raise BadInput(f"{what} raised {first_line(error)}{user_line(error, path)}") from error


def user_line(error: BaseException, path: Path) -> str:
    """Return ` (at FILE:LINE)` with the line of that file where an error was raised; empty if the file isn't in the traceback."""
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


def _line_of(case: Case) -> int:
    """Return the line where a factory, a function or a class of the file, starts; 1 for other objects."""
    made = case.factory
    if inspect.isclass(made) and made.__module__.startswith(OF_USER):
        return inspect.getsourcelines(made)[1]
    code = getattr(made, "__code__", None)
    return code.co_firstlineno if code else 1


def _module(path: Path) -> ModuleType:
    check_is_file(path)
    spec = importlib.util.spec_from_file_location(f"{OF_USER}{path.stem}", path.resolve())
    assert spec is not None
    loader = spec.loader
    assert loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module  # dataclasses and pickle look up their module
    _find_siblings(path.resolve().parent)
    call_user_code(lambda: loader.exec_module(module), str(path), path)
    return module


def _find_siblings(folder: Path) -> None:
    """Add the folder to `sys.path` permanently, because a function may import a sibling when it is called."""
    if str(folder) not in sys.path:
        sys.path.append(str(folder))
