"""What a public function is given, looked at before anything is done with it: a refusal names the argument."""

from __future__ import annotations

import math
import os
from collections.abc import Collection, Sequence
from os import PathLike
from typing import Any


def must_be(*kinds: type, **given: Any) -> None:
    """Refuse arguments, given by their names, that are of none of these kinds.

    Raises:
        TypeError: one is not; the message says what it is.
    """
    for name, value in given.items():
        if not isinstance(value, kinds):
            raise TypeError(f"{name} must be {' or '.join(map(_a, kinds))}, not {kind_of(value)}")


def must_be_names(**given: Any) -> None:
    """Refuse arguments that are no lists of names, as a string is none; a dictionary is one of its keys.

    Raises:
        TypeError: one is not.
    """
    for name, value in given.items():
        if isinstance(value, str) or not isinstance(value, Collection) or not all(isinstance(part, str) for part in value):
            raise TypeError(f"{name} must be a list of names, not {kind_of(value)}")


def must_be_all(kind: type, /, **given: Any) -> None:
    """Refuse arguments that are no sequences of values of one kind.

    Raises:
        TypeError: one is not.
    """
    for name, value in given.items():
        must_be(Sequence, **{name: value})
        for place, part in enumerate(value):
            must_be(kind, **{f"{name}[{place}]": part})


def must_be_path(**given: Any) -> None:
    """Refuse arguments that are no paths.

    Raises:
        TypeError: one is none. ValueError: no file has such a name.
    """
    for name, value in given.items():
        must_be(str, PathLike, **{name: value})
        try:
            os.stat(value)
        except OSError:
            pass
        except ValueError as error:  # a null character, or a surrogate that is not of the file system's encoding
            raise ValueError(f"{name}={str(value)!r}: no file has such a name") from error


def must_end(**given: Any) -> None:
    """Refuse arguments in which containers lie in containers without an end.

    Raises:
        ValueError: one holds itself, or is nested deeper than torch can follow.
    """
    from torch.utils import _pytree as pytree

    for name, value in given.items():
        try:
            pytree.tree_leaves(value)
        except RecursionError:
            raise ValueError(f"{name} are nested too deep, or hold themselves") from None


def must_be_whole(least: int, /, **given: Any) -> None:
    """Refuse arguments that are no whole numbers, or less than one.

    Raises:
        TypeError: one is no whole number. ValueError: one is less.
    """
    for name, value in given.items():
        if not isinstance(value, int) or isinstance(value, bool):
            raise TypeError(f"{name} must be a whole number, not {kind_of(value)}")
        if value < least:
            raise ValueError(f"{name} must be {least} or more, not {value}")


def must_be_positive(**given: Any) -> None:
    """Refuse arguments that are no numbers greater than 0, or not finite.

    Raises:
        TypeError: one is no number. ValueError: one is none of these.
    """
    for name, value in given.items():
        must_be(int, float, **{name: value})
        if not 0 < value < math.inf:
            raise ValueError(f"{name} must be more than 0, and finite, not {value}")


def kind_of(value: Any) -> str:
    """Return what a value is, in words: of a tuple, what it is of."""
    if type(value) is tuple:
        return f"a tuple of {', '.join(type(part).__name__ for part in value) or 'nothing'}"
    return "None" if value is None else _a(type(value))


def _a(kind: type) -> str:
    """The name of a class with its article."""
    name = "None" if kind is type(None) else kind.__name__
    return name if name == "None" else f"{'an' if name[0] in 'aeiouAEIOU' else 'a'} {name}"
