"""What is said when something goes wrong: in one line, expected on a page, or kept off it."""

from __future__ import annotations

import io
import logging
import os
import re
import sys
import textwrap
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr

LOGGERS = (
    "torch.onnx._internal.exporter._registration",  # "torchvision is not installed"
    "torchao",  # which transformers imports where it finds it, and which tries to load libraries for other processors
    "torch.utils._pytree",  # about torchao's enums
)
WARNINGS = (
    (FutureWarning, r".*isinstance\(treespec, LeafSpec\)"),  # raised by torch, about torch
    (UserWarning, r"# The axis name: .* will not be used"),  # two axes were found equal, and one name is kept
    (UserWarning, r"torch\.compile is ignored when called inside"),  # torch calls it itself
    (DeprecationWarning, r".*(legacy TorchScript-based ONNX export|torch\.jit\.)"),  # said on the pages instead
    (DeprecationWarning, r"The feature will be removed"),  # the same exporter, about its own logging
    (FutureWarning, r".*(legacy TorchScript-based ONNX export|torch\.jit\.)"),
)
ANSI = re.compile(r"\x1b\[[0-9;]*m")
CELL = re.compile(r"[^\s\"]*ipykernel_\d+/\d+\.py")  # where a notebook keeps what a cell held; another path in each run


def first_line(error: BaseException) -> str:
    """Return the type and the first line of an error that says something, colours removed."""
    return f"{type(error).__name__}: {(_message(error) or 'no message').splitlines()[0].strip()}"


def _message(error: BaseException) -> str:
    return "\n".join(line for line in ANSI.sub("", str(error)).splitlines() if line.strip())


def chain(error: BaseException) -> Iterator[BaseException]:
    """Yield an error and those it was raised from, the first cause last."""
    yield error
    while error.__cause__ is not None:
        error = error.__cause__
        yield error


def root(error: BaseException) -> BaseException:
    """Return the error that started the chain of `raise … from …`."""
    return list(chain(error))[-1]


@contextmanager
def muffled() -> Iterator[list[str]]:
    """Keep what a block says on the side (warnings, log lines, stderr) off the page; yield a list that holds the warnings at the end."""
    said: list[str] = []
    before = logging.root.manager.disable
    logging.disable(logging.ERROR)
    try:
        with warnings.catch_warnings(record=True) as caught, redirect_stderr(io.StringIO()):
            warnings.simplefilter("always")
            yield said
    finally:
        logging.disable(before)
        said.extend(dict.fromkeys(f"{w.category.__name__}: {w.message}" for w in caught))


@contextmanager
def native_output_dropped() -> Iterator[None]:
    """Drop what code below Python writes to standard output and error, as torch's tracer does with whole graphs when it gives up."""
    sys.stdout.flush()
    kept = {descriptor: os.dup(descriptor) for descriptor in (1, 2)}
    with open(os.devnull, "wb") as nowhere:
        for descriptor in kept:
            os.dup2(nowhere.fileno(), descriptor)
    try:
        yield
    finally:
        for descriptor, copy in kept.items():
            os.dup2(copy, descriptor)
            os.close(copy)


def _beginning(message: str, lines: int) -> list[str]:
    """So many lines, and those after them as long as the last one ends in a colon: it promises another."""
    found = CELL.sub("a cell of this notebook", message).splitlines()
    while lines < len(found) and found[lines - 1].rstrip().endswith(":"):
        lines += 1
    return found[:lines]


def _folded(line: str) -> str:
    """A line of a message at the width of a page, further lines indented."""
    return textwrap.fill(line, 100, subsequent_indent="    ", break_long_words=False, drop_whitespace=True)


@contextmanager
def expect_failure(kind: type[BaseException], match: str = "", lines: int = 3) -> Iterator[None]:
    """Run a block that must raise `kind` with `match` found in its message or that of a cause; print the message's first lines.

    Args:
        lines: how many, at least one; those that follow a colon are not cut off.

    Raises:
        AssertionError: nothing was raised, or the message is another. An error of another type passes through.
        ValueError: `lines` is less than one: nothing of the message would be seen.
    """
    if lines < 1:
        raise ValueError(f"lines={lines} would hide the message that the page is about: at least one has to be shown")
    try:
        with muffled():
            yield
    except kind as error:
        message = _message(error)
        if not any(re.search(match, _message(cause)) for cause in chain(error)):
            raise AssertionError(f"a {kind.__name__} was raised as expected, but its message lacks {match!r}: {message}") from error
        print("\n".join([f"{type(error).__name__}:", *map(_folded, _beginning(message, lines))]))
        return
    raise AssertionError(f"this was expected to raise {kind.__name__}, and it did not: the page is out of date")


def quiet() -> None:
    """Hide for the rest of this process what says nothing to a reader: `LOGGERS` and `WARNINGS`. Notebooks and command line begin so."""
    for name in LOGGERS:
        logging.getLogger(name).setLevel(logging.ERROR)
    for category, message in WARNINGS:
        warnings.filterwarnings("ignore", message=message, category=category)
