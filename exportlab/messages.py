"""Shorten, capture and filter the messages of exports: errors, warnings, log lines and native output."""

from __future__ import annotations

import io
import logging
import os
import re
import sys
import tempfile
import textwrap
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager, redirect_stderr
from pathlib import PurePath
from typing import Any

from .checks import kind_of, must_be
from .diagnostics import ANSI, NATIVE, NOISE, WARNING_OR_ERROR, Line, clean_line, kept

STDOUT, STDERR = 1, 2
CELL = re.compile(r"[^\s\"]*ipykernel_\d+/\d+\.py")  # the path that a notebook gives a cell's source; it differs between runs


def first_line(error: BaseException) -> str:
    """Return the type and the first non-empty line of an error's message, without colour codes."""
    return f"{type(error).__name__}: {(_message(error) or 'no message').splitlines()[0].strip()}"


def _message(error: BaseException) -> str:
    return "\n".join(line for line in ANSI.sub("", str(error)).splitlines() if line.strip())


def chain(error: BaseException) -> Iterator[BaseException]:
    """Yield an error and the errors it was raised from, root cause last."""
    yield error
    while error.__cause__ is not None:
        error = error.__cause__
        yield error


def root(error: BaseException) -> BaseException:
    """Return the root cause of an error raised with `raise … from …`."""
    return list(chain(error))[-1]


@contextmanager
def muffled() -> Iterator[None]:
    """Hide the messages that `diagnostics.NOISE` lists during a block; other messages are still shown."""
    hiding = _NoNoise()
    with warnings.catch_warnings():
        _hide_warnings()
        for logger in _noisy_loggers():
            logger.addFilter(hiding)
        try:
            yield
        finally:
            for logger in _noisy_loggers():
                logger.removeFilter(hiding)


def quiet() -> None:
    """Hide the same messages for the rest of this process. Notebooks and the command line call this first."""
    _hide_warnings()
    for logger in _noisy_loggers():
        logger.addFilter(_quiet)


class _NoNoise(logging.Filter):
    def filter(self, record: logging.LogRecord) -> bool:
        return not Line(record.name, record.getMessage()).is_noise


_quiet = _NoNoise()  # a single instance, because a logger adds the same filter only once


def _noisy_loggers() -> list[logging.Logger]:
    return [logging.getLogger(noise.source) for noise in NOISE if isinstance(noise.source, str)]


def _hide_warnings() -> None:
    for noise in NOISE:
        if not isinstance(noise.source, str):
            warnings.filterwarnings("ignore", message=noise.pattern, category=noise.source)


@contextmanager
def heard() -> Iterator[list[str]]:
    """Capture the messages of a block and hide them. The yielded list is filled at the end of the block, as `diagnostics.kept` returns it.

    Captured are Python warnings, log records from `WARNING` up, and warnings and errors in native output.
    """
    said: list[str] = []
    lines: list[Line] = []
    try:
        with _written_in(lines), _records_in(lines), _warnings_in(lines):
            yield said
    finally:
        said.extend(kept(lines))


@contextmanager
def _warnings_in(lines: list[Line]) -> Iterator[None]:
    try:
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            yield
    finally:
        lines.extend(Line(warning.category, str(warning.message)) for warning in caught)


@contextmanager
def _records_in(lines: list[Line]) -> Iterator[None]:
    """Capture the records of all loggers, including those that don't propagate. Handlers still receive records below `WARNING`."""
    making, handlers, hiding = logging.getLogRecordFactory(), _handlers(), _BelowWarning()
    for handler in handlers:
        handler.addFilter(hiding)
    logging.setLogRecordFactory(_Noting(lines, making))
    try:
        yield
    finally:
        logging.setLogRecordFactory(making)
        for handler in handlers:
            handler.removeFilter(hiding)


class _Noting:
    """A log record factory that also captures records from `WARNING` up. In nested blocks, only the inner one captures."""

    def __init__(self, lines: list[Line], making: Callable[..., logging.LogRecord]) -> None:
        self.lines = lines
        self.making: Callable[..., logging.LogRecord] = making.making if isinstance(making, _Noting) else making

    def __call__(self, *args: Any, **kwargs: Any) -> logging.LogRecord:
        record = self.making(*args, **kwargs)
        if record.levelno >= logging.WARNING:
            self.lines.append(Line(record.name, record.getMessage()))
        return record


class _BelowWarning(logging.Filter):
    def filter(self, record: logging.LogRecord) -> bool:
        return record.levelno < logging.WARNING


def _handlers() -> list[logging.Handler]:
    """Return all handlers, including logging's last resort."""
    known = list(logging.getLogger().manager.loggerDict.values())
    loggers = [logging.getLogger(), *(logger for logger in known if isinstance(logger, logging.Logger))]
    last = [logging.lastResort] if logging.lastResort else []
    return [*dict.fromkeys(handler for logger in loggers for handler in logger.handlers), *last]


@contextmanager
def _written_in(lines: list[Line]) -> Iterator[None]:
    """Capture warnings and errors from native output on stdout and stderr, and from Python's `sys.stderr`."""
    printed = io.StringIO()
    sys.stdout.flush()
    with tempfile.TemporaryFile() as written:
        restored = {descriptor: os.dup(descriptor) for descriptor in (STDOUT, STDERR)}
        for descriptor in restored:
            os.dup2(written.fileno(), descriptor)
        try:
            with redirect_stderr(printed):
                yield
        finally:
            sys.stdout.flush()
            for descriptor, copy in restored.items():
                os.dup2(copy, descriptor)
                os.close(copy)
            written.seek(0)
            text = written.read().decode(errors="replace") + "\n" + printed.getvalue()
            lines.extend(Line(NATIVE, line) for line in map(clean_line, text.splitlines()) if WARNING_OR_ERROR.match(line))


@contextmanager
def native_output_dropped() -> Iterator[None]:
    """Discard native output on stdout and stderr, such as the graphs that torch's tracer prints when it fails.

    Warnings and errors that are not noise are written to stderr at the end of the block.
    """
    lines: list[Line] = []
    try:
        with _written_in(lines):
            yield
    finally:
        for line in kept(lines):
            os.write(STDERR, f"{line}\n".encode())


def shown_file(path: str) -> str:
    """Return a file's name for a message; a notebook cell gets a fixed name, because its path differs between runs."""
    return "a cell of this notebook" if CELL.fullmatch(path) else PurePath(path).name


def _beginning(message: str, lines: int) -> list[str]:
    """Return the first lines of a message, and more as long as the last line ends with a colon."""
    found = CELL.sub("a cell of this notebook", message).splitlines()
    while lines < len(found) and found[lines - 1].rstrip().endswith(":"):
        lines += 1
    return found[:lines]


def _wrap_line(line: str) -> str:
    """Wrap a line to the width of a page, with indented continuation lines."""
    return textwrap.fill(line, 100, subsequent_indent="    ", break_long_words=False, drop_whitespace=True)


def _check_expectation(kind: Any, match: Any) -> None:
    if not isinstance(kind, type) or not issubclass(kind, BaseException):
        raise TypeError(f"kind must be a class of errors, not {kind_of(kind)}")
    must_be(str, match=match)
    try:
        re.compile(match)
    except re.error as error:
        raise ValueError(f"match={match!r} is not a valid regular expression: {error}") from error


@contextmanager
def expect_failure(kind: type[BaseException], match: str = "", lines: int = 3) -> Iterator[None]:
    """Run a block that must raise `kind` with a message that matches `match`, and print the first lines of the message.

    Args:
        match: a regular expression, searched for in the messages of the error and its causes.
        lines: the number of lines to print, at least one. A line that ends with a colon is printed with the next line.

    Raises:
        AssertionError: nothing was raised, or the message doesn't match. Errors of other types are not caught.
        TypeError: an argument has the wrong type.
        ValueError: `match` is not a valid regular expression, or `lines` is less than one.
    """
    _check_expectation(kind, match)
    must_be(int, lines=lines)
    if lines < 1:
        raise ValueError(f"lines={lines} would hide the message: use 1 or more")
    try:
        with heard():
            yield
    except kind as error:
        message = _message(error)
        if not any(re.search(match, _message(cause)) for cause in chain(error)):
            raise AssertionError(f"{kind.__name__} was raised as expected, but its message doesn't match {match!r}: {message}") from error
        print("\n".join([f"{type(error).__name__}:", *map(_wrap_line, _beginning(message, lines))]))
        return
    raise AssertionError(f"expected {kind.__name__}, but nothing was raised: the page is out of date")
