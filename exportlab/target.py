"""Parse and check a command's arguments, such as `FILE.py:name` and paths, before anything is imported."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

A_SAMPLE = "a tuple of arguments, a pair (args, kwargs), a dict of keyword arguments, one tensor, or a Sample"
WEIGHTS = (".pt", ".pth", ".bin", ".ckpt", ".safetensors")
FORMS = "(module, args), (module, args, kwargs) or (module, [sample, sample, …])"


class BadInput(Exception):
    """The user's input cannot be used; the message is one line with the problem, its location and what to do."""


class Target(NamedTuple):
    """A name in a user's file; `str` returns the original form."""

    path: Path
    name: str

    def __str__(self) -> str:
        return f"{self.path}:{self.name}"


def target_of(given: str) -> Target:
    """Parse `FILE.py:name`.

    Raises:
        BadInput: it has another form, or the file doesn't exist.
    """
    path, colon, name = given.rpartition(":")
    if not colon or not name or not path.endswith(".py"):
        raise BadInput(_not_a_target(given))
    check_is_file(Path(path))
    return Target(Path(path), name)


def _not_a_target(given: str) -> str:
    """Return the error message; for a folder or a file with weights, it suggests what to write instead."""
    if Path(given).is_dir() or Path(given).suffix in WEIGHTS:
        load = f"AutoModel.from_pretrained({given!r})" if Path(given, "config.json").is_file() else "the model with these weights"
        sort = "a folder" if Path(given).is_dir() else "a file of weights"
        return f"{given} is {sort}. Pass FILE.py:name, a function that returns {load} and its arguments: {FORMS}"
    return f"{given!r} is not of the form FILE.py:name, such as mymodel.py:build: a function in your file that returns {FORMS}"


def check_is_file(path: Path) -> None:
    """Raise `BadInput` if the path is not a readable file."""
    try:
        there, is_file = path.exists(), path.is_file()
    except OSError as error:  # a name that is too long, or a folder without permission
        raise BadInput(f"cannot read {path}: {error.strerror}") from error
    if there and not is_file:
        raise BadInput(f"{path} is not a file")
    if not there:
        raise BadInput(f"no such file: {path}")
