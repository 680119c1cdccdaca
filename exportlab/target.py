"""What a command is given, looked at before anything is imported: `FILE.py:name`, and files to read or to write."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

A_SAMPLE = "a tuple of arguments, a pair (args, kwargs), a dict of keyword arguments, one tensor, or a Sample"
WEIGHTS = (".pt", ".pth", ".bin", ".ckpt", ".safetensors")
FORMS = "(module, args), (module, args, kwargs) or (module, [sample, sample, …])"


class BadInput(Exception):
    """What the user gave cannot be used; the message is one line that says what, where, and what to do."""


class Target(NamedTuple):
    """A name in a file of the user's own; prints as it was given."""

    path: Path
    name: str

    def __str__(self) -> str:
        return f"{self.path}:{self.name}"


def target_of(given: str) -> Target:
    """Return what `FILE.py:name` means.

    Raises:
        BadInput: it is no such thing, or there is no such file.
    """
    path, colon, name = given.rpartition(":")
    if not colon or not name or not path.endswith(".py"):
        raise BadInput(_not_a_target(given))
    check_is_file(Path(path))
    return Target(Path(path), name)


def _not_a_target(given: str) -> str:
    """Say what is wrong, and what to write where it is a folder or a file of weights."""
    if Path(given).is_dir() or Path(given).suffix in WEIGHTS:
        load = f"AutoModel.from_pretrained({given!r})" if Path(given, "config.json").is_file() else "the model with these weights"
        sort = "a folder" if Path(given).is_dir() else "a file of weights"
        return (
            f"{given} is {sort}, and what is exported is a function of yours, FILE.py:name, that returns {load} and its arguments: {FORMS}"
        )
    return f"{given!r} is not FILE.py:name, as in mymodel.py:build: a function of yours that returns {FORMS}"


def check_is_file(path: Path) -> None:
    """Raise `BadInput` where there is no file to read."""
    try:
        there, is_file = path.exists(), path.is_file()
    except OSError as error:  # a name that is too long, a folder that may not be looked into
        raise BadInput(f"cannot read {path}: {error.strerror}") from error
    if there and not is_file:
        raise BadInput(f"{path} is not a file")
    if not there:
        raise BadInput(f"there is no file {path}")
