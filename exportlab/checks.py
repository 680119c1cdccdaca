"""Validate the arguments of public functions before any work is done; each error names the argument."""

from __future__ import annotations

import math
import os
from collections.abc import Collection, Sequence
from os import PathLike
from typing import Any


def must_be(*kinds: type, **given: Any) -> None:
    """Check that each argument, passed by its name, is an instance of one of these types.

    Raises:
        TypeError: an argument has another type; the message contains that type.
    """
    for name, value in given.items():
        if not isinstance(value, kinds):
            raise TypeError(f"{name} must be {' or '.join(map(_a, kinds))}, not {kind_of(value)}")


def must_be_names(**given: Any) -> None:
    """Check that each argument is a collection of names and not a single string. For a dictionary, the keys are checked.

    Raises:
        TypeError: an argument is not a collection of strings.
    """
    for name, value in given.items():
        if isinstance(value, str) or not isinstance(value, Collection) or not all(isinstance(part, str) for part in value):
            raise TypeError(f"{name} must be a list of names, not {kind_of(value)}")


def must_be_all(kind: type, /, **given: Any) -> None:
    """Check that each argument is a sequence with elements of one type.

    Raises:
        TypeError: an argument is not a sequence, or an element has another type.
    """
    for name, value in given.items():
        must_be(Sequence, **{name: value})
        for place, part in enumerate(value):
            must_be(kind, **{f"{name}[{place}]": part})


def must_be_path(**given: Any) -> None:
    """Check that each argument is a valid path.

    Raises:
        TypeError: an argument is neither a string nor a path.
        ValueError: an argument cannot be the name of a file.
    """
    for name, value in given.items():
        must_be(str, PathLike, **{name: value})
        try:
            os.stat(value)
        except OSError:
            pass
        except ValueError as error:  # a null character, or a surrogate that the file system's encoding cannot represent
            raise ValueError(f"{name}={str(value)!r}: no file has such a name") from error


def must_end(**given: Any) -> None:
    """Check that no argument is an endlessly nested container.

    Raises:
        ValueError: a container contains itself, or is nested too deeply for torch.
    """
    from fx2onnx.compat import trees as pytree

    for name, value in given.items():
        try:
            pytree.tree_leaves(value)
        except RecursionError:
            raise ValueError(f"{name} are nested too deep, or hold themselves") from None


def must_be_whole(least: int, /, **given: Any) -> None:
    """Check that each argument is an integer and not less than a minimum.

    Raises:
        TypeError: an argument is not an integer.
        ValueError: an argument is less than the minimum.
    """
    for name, value in given.items():
        if not isinstance(value, int) or isinstance(value, bool):
            raise TypeError(f"{name} must be a whole number, not {kind_of(value)}")
        if value < least:
            raise ValueError(f"{name} must be {least} or more, not {value}")


def must_be_positive(**given: Any) -> None:
    """Check that each argument is a positive, finite number.

    Raises:
        TypeError: an argument is not a number.
        ValueError: an argument is not positive or not finite.
    """
    for name, value in given.items():
        must_be(int, float, **{name: value})
        if not 0 < value < math.inf:
            raise ValueError(f"{name} must be more than 0, and finite, not {value}")


def kind_of(value: Any) -> str:
    """Describe a value's type in words; for a tuple, include the types of its elements."""
    if type(value) is tuple:
        return f"a tuple of {', '.join(type(part).__name__ for part in value) or 'nothing'}"
    return "None" if value is None else _a(type(value))


def _a(kind: type) -> str:
    """Return the name of a class with its article."""
    name = "None" if kind is type(None) else kind.__name__
    return name if name == "None" else f"{'an' if name[0] in 'aeiouAEIOU' else 'a'} {name}"
