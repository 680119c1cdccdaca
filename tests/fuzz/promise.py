"""What is kept whatever is given: it works or is refused by one of our own errors, and nothing around it is changed."""

from __future__ import annotations

import ast
import linecache
import logging
import os
import random
import signal
import sys
import threading
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from types import FrameType, TracebackType
from typing import Any

import numpy
import psutil
import torch
from torch import nn
from torch.nn.parameter import is_lazy

import exportlab
import fx2onnx
from exportlab.entry_points import BrokenEntryPoint
from exportlab.programs import MissingProgram
from exportlab.sweep import SweepError
from exportlab.sweep.records import RecordsError
from exportlab.target import BadInput
from exportlab.verification.report import VerificationError
from fx2onnx.errors import InternalError, ToOnnxError, UnsupportedOps, WrongNumbers

OURS = tuple(str(Path(package.__file__).parent) + os.sep for package in (exportlab, fx2onnx))
NAMED = (ToOnnxError, BadInput, RecordsError, SweepError, VerificationError, MissingProgram, BrokenEntryPoint)
BUILT_IN = (TypeError, ValueError, OSError)
IN_LINES = (UnsupportedOps, VerificationError, SweepError, WrongNumbers)  # each is a list


REPORTS = "onnx_export_"  # what to_onnx writes of an export that fails, where it is asked for
LONG = 60.0  # seconds: a busy machine may take some for what takes one


class Hangs(Exception):
    """It does not end by itself."""


class OfModel(Exception):
    """What the models of these tests raise themselves."""


def promised(call: Callable[[], Any], *, module: Any = None, writes: Path | None = None, passes: tuple[type[Exception], ...] = ()) -> str:
    """Call, and return how it ended: `worked`, or the type of the error.

    Args:
        module: what must stay as it is. writes: a folder in which nothing else than what was asked for may be left.
        passes: errors that are documented to come through.
    """
    around = [*surroundings(), *state_of(module)]
    before, children = files(writes), processes()
    ended = "worked"
    try:
        with ended_after(LONG):
            call()
    except (Exception, SystemExit) as error:
        ended, problem = type(error).__name__, "" if isinstance(error, passes) else what_is_wrong_with(error)
        if problem:
            raise AssertionError(f"{problem}: {type(error).__name__}: {error}") from error
    after = [*surroundings(), *state_of(module)]
    changed = [name for (name, was), (_, now) in zip(around, after, strict=True) if was != now]
    assert changed == [], f"changed: {changed}"
    assert ended == "worked" or files(writes) == before, f"it left {files(writes)}"
    assert processes() <= children, "it left a process"
    return ended


@contextmanager
def ended_after(seconds: float) -> Iterator[None]:
    """End the block after so many seconds, whatever it waits for; alarms are left to what is tested."""
    main = threading.get_ident()

    def stop(*_: Any) -> None:
        raise Hangs(f"not done after {seconds:g} s")

    before = signal.signal(signal.SIGUSR1, stop)
    timer = threading.Timer(seconds, lambda: signal.pthread_kill(main, signal.SIGUSR1))
    timer.start()
    try:
        yield
    finally:
        timer.cancel()
        timer.join()
        signal.signal(signal.SIGUSR1, before)


def what_is_wrong_with(error: BaseException) -> str:
    """Return what is wrong with an error: nothing with one of ours, or a built-in one that one of our `raise` statements made."""
    if said_by_runtime(error) or (isinstance(error, OSError) and error.filename is not None):
        return ""
    if "\n" in str(error).strip() and not isinstance(error, IN_LINES):
        return "it has several lines"
    if not str(error):
        return "it says nothing"
    if isinstance(error, InternalError):
        return "it is a defect of to_onnx"
    if isinstance(error, NAMED):
        return ""
    if not isinstance(error, BUILT_IN):
        return "it is none of ours, and not documented"
    return "" if by_a_statement_of_ours(error) else "nobody raised it: it came out of the machinery"


def said_by_runtime(error: BaseException) -> bool:
    """Whether ONNX Runtime raised it."""
    return "onnxruntime" in innermost(error.__traceback__)[0].f_code.co_filename


def by_a_statement_of_ours(error: BaseException) -> bool:
    """Whether the innermost line is a `raise` in our packages."""
    frame, line = innermost(error.__traceback__)
    file = frame.f_code.co_filename
    return file.startswith(OURS) and line in raising(file)


def innermost(traceback: TracebackType | None) -> tuple[FrameType, int]:
    """Return the frame where an error was raised, and its line."""
    assert traceback is not None
    while traceback.tb_next is not None:
        traceback = traceback.tb_next
    return traceback.tb_frame, traceback.tb_lineno


@cache
def raising(file: str) -> set[int]:
    """Return the lines of a file that `raise` statements stand on."""
    statements = [node for node in ast.walk(ast.parse("".join(linecache.getlines(file)))) if isinstance(node, ast.Raise)]
    return {line for node in statements for line in range(node.lineno, (node.end_lineno or node.lineno) + 1)}


def processes() -> set[int]:
    """Return the children of this process, those included that ended and that nobody asked; other tests may keep some."""
    return {child.pid for child in psutil.Process().children()}


def files(folder: Path | None) -> list[str]:
    """Return what lies in a folder, and in those below it."""
    found = folder.rglob("*") if folder is not None else ()
    return sorted(f"{path} {path.lstat().st_size}" for path in found if not path.name.startswith(REPORTS))


def surroundings() -> list[tuple[str, Any]]:
    """Return by name what a call must leave as it is."""
    return [
        ("random", random.getstate()),
        ("numpy.random", numpy.random.get_state()[1].tobytes()),
        ("torch.random", torch.get_rng_state().numpy().tobytes()),
        ("torch.is_grad_enabled", torch.is_grad_enabled()),
        ("torch.get_default_dtype", torch.get_default_dtype()),
        ("nn.Module.__call__", nn.Module.__call__),
        ("cwd", os.getcwd()),
        ("os.environ", dict(os.environ)),
        ("sys.stdout", (sys.stdout, sys.stderr)),
        ("warnings.filters", list(warnings.filters)),
        ("log records", logging.getLogRecordFactory()),
    ]


def state_of(module: Any) -> list[tuple[str, Any]]:
    """Return by name what a module consists of."""
    if not parts_of(module):
        return []
    weights = [*module.named_parameters(), *module.named_buffers()]
    values = [(name, "?" if is_lazy(value) or value.is_meta else value.tolist()) for name, value in weights]
    return [
        *values,
        *((f"{name}.training", part.training) for name, part in module.named_modules()),
        *((f"{name} attributes", sorted(vars(part))) for name, part in module.named_modules()),
        *((f"{name} hooks", len(part._forward_hooks) + len(part._forward_pre_hooks)) for name, part in module.named_modules()),
    ]


def parts_of(module: Any) -> list[nn.Module]:
    """Return a module and all in it; nothing of what is none, or has not begun."""
    return list(module.modules()) if isinstance(module, nn.Module) and "_modules" in vars(module) else []
