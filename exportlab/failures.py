"""What went wrong, in one line, and a claim that something does go wrong. Not here: why, nor what to do."""

from __future__ import annotations

import io
import logging
import re
import textwrap
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr

ANSI = re.compile(r"\x1b\[[0-9;]*m")


def first_line(error: BaseException) -> str:
    """The type and the first line of an error that says something, colours removed."""
    lines = [line.strip() for line in ANSI.sub("", str(error)).splitlines() if line.strip()]
    return f"{type(error).__name__}: {lines[0] if lines else 'no message'}"


def root(error: BaseException) -> BaseException:
    """The error that started the chain of `raise … from …`."""
    while error.__cause__ is not None:
        error = error.__cause__
    return error


@contextmanager
def muffled() -> Iterator[list[str]]:
    """Keeps what a block says on the side (warnings, log lines, stderr) off the page; yields a list that holds the warnings at the end."""
    said: list[str] = []
    logging.disable(logging.ERROR)
    try:
        with warnings.catch_warnings(record=True) as caught, redirect_stderr(io.StringIO()):
            warnings.simplefilter("always")
            yield said
    finally:
        logging.disable(logging.NOTSET)
        said.extend(dict.fromkeys(f"{w.category.__name__}: {w.message}" for w in caught))


def _folded(line: str) -> str:
    """A line of a message at the width of a page, further lines indented."""
    return textwrap.fill(line, 100, subsequent_indent="    ", break_long_words=False, drop_whitespace=True)


@contextmanager
def expect_failure(kind: type[BaseException], match: str = "", lines: int = 3) -> Iterator[None]:
    """Runs a block that must raise `kind` with a message in which `match` is found; prints the message's first lines.

    Raises:
        AssertionError: nothing was raised, or the message is another. An error of another type passes through.
    """
    try:
        with muffled():
            yield
    except kind as error:
        message = "\n".join(line for line in ANSI.sub("", str(error)).splitlines() if line.strip())
        if not re.search(match, message):
            raise AssertionError(f"a {kind.__name__} was raised as expected, but its message lacks {match!r}: {message}") from error
        print("\n".join([f"{type(error).__name__}:", *map(_folded, message.splitlines()[:lines])]))
        return
    raise AssertionError(f"this was expected to raise {kind.__name__}, and it did not: the page is out of date")
