"""What is said when something goes wrong: in one line, expected on a page, or kept off it."""

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
def muffled() -> Iterator[None]:
    """Hide during a block what `said.NOISE` lists, and nothing else: what says nothing about the reader's model."""
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
    """Hide the same for the rest of this process. Notebooks and command line begin so."""
    _hide_warnings()
    for logger in _noisy_loggers():
        logger.addFilter(_quiet)


class _NoNoise(logging.Filter):
    def filter(self, record: logging.LogRecord) -> bool:
        return not Line(record.name, record.getMessage()).is_noise


_quiet = _NoNoise()  # always the same one: a logger takes it once


def _noisy_loggers() -> list[logging.Logger]:
    return [logging.getLogger(noise.source) for noise in NOISE if isinstance(noise.source, str)]


def _hide_warnings() -> None:
    for noise in NOISE:
        if not isinstance(noise.source, str):
            warnings.filterwarnings("ignore", message=noise.pattern, category=noise.source)


@contextmanager
def heard() -> Iterator[list[str]]:
    """Keep what a block says off the page, and yield a list that holds it at the end, as `said.kept` keeps it.

    That is: Python's warnings, log lines from `WARNING` on, and the warnings and errors in what code below Python writes.
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
    """What all loggers say, those too that hand nothing on, or come up in the block; what is below `WARNING` some handlers work with."""
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
    """Makes log records as they are made otherwise, and notes those from `WARNING` on; of two blocks the inner one notes."""

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
    """All that there are, and the one that logging takes where a logger has none."""
    known = list(logging.getLogger().manager.loggerDict.values())
    loggers = [logging.getLogger(), *(logger for logger in known if isinstance(logger, logging.Logger))]
    last = [logging.lastResort] if logging.lastResort else []
    return [*dict.fromkeys(handler for logger in loggers for handler in logger.handlers), *last]


@contextmanager
def _written_in(lines: list[Line]) -> Iterator[None]:
    """What is a warning or an error of all that is written to standard output and error below Python, and to Python's own `stderr`."""
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
    """Drop what code below Python writes to standard output and error, as torch's tracer does with whole graphs when it gives up.

    Warnings and errors that are no noise are written to standard error when the block is done.
    """
    lines: list[Line] = []
    try:
        with _written_in(lines):
            yield
    finally:
        for line in kept(lines):
            os.write(STDERR, f"{line}\n".encode())


def shown_file(path: str) -> str:
    """Return the name of a file as a message shows it; what a notebook keeps of a cell has another path in each run."""
    return "a cell of this notebook" if CELL.fullmatch(path) else PurePath(path).name


def _beginning(message: str, lines: int) -> list[str]:
    """So many lines, and those after them as long as the last one ends in a colon: it promises another."""
    found = CELL.sub("a cell of this notebook", message).splitlines()
    while lines < len(found) and found[lines - 1].rstrip().endswith(":"):
        lines += 1
    return found[:lines]


def _wrap_line(line: str) -> str:
    """A line of a message at the width of a page, further lines indented."""
    return textwrap.fill(line, 100, subsequent_indent="    ", break_long_words=False, drop_whitespace=True)


def _check_expectation(kind: Any, match: Any) -> None:
    if not isinstance(kind, type) or not issubclass(kind, BaseException):
        raise TypeError(f"kind must be a class of errors, not {kind_of(kind)}")
    must_be(str, match=match)
    try:
        re.compile(match)
    except re.error as error:
        raise ValueError(f"match={match!r} is no regular expression: {error}") from error


@contextmanager
def expect_failure(kind: type[BaseException], match: str = "", lines: int = 3) -> Iterator[None]:
    """Run a block that must raise `kind` with `match` found in its message or that of a cause; print the message's first lines.

    Args:
        lines: how many, at least one; those that follow a colon are not cut off.

    Raises:
        AssertionError: nothing was raised, or the message is another. An error of another type passes through.
        TypeError: an argument is of another kind. ValueError: `match` is no regular expression, or `lines` is less than one: nothing of the
            message would be seen.
    """
    _check_expectation(kind, match)
    must_be(int, lines=lines)
    if lines < 1:
        raise ValueError(f"lines={lines} would hide the message that the page is about: at least one has to be shown")
    try:
        with heard():
            yield
    except kind as error:
        message = _message(error)
        if not any(re.search(match, _message(cause)) for cause in chain(error)):
            raise AssertionError(f"a {kind.__name__} was raised as expected, but its message lacks {match!r}: {message}") from error
        print("\n".join([f"{type(error).__name__}:", *map(_wrap_line, _beginning(message, lines))]))
        return
    raise AssertionError(f"this was expected to raise {kind.__name__}, and it did not: the page is out of date")
