"""Find the line at which a step hangs: shortly before its time limit, the step writes its stack to a file."""

from __future__ import annotations

import faulthandler
import re
import tempfile
from collections.abc import Callable
from dataclasses import replace
from typing import IO, Any

from ..isolation import Ended, Failure, Frame

ALMOST = 0.9  # fraction of the time limit after which a step writes its stack
FRAME = re.compile(r'^  File "(.+)", line (\d+) in (.+)$', re.MULTILINE)


class Watch:
    """A temporary file to which the child process writes its stack. The parent reads it after the child was terminated."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self.file: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115 - it is closed with the watch

    def over(self, call: Callable[[Any], None]) -> Callable[[Any], None]:
        """Return the call with a watchdog in the child process. The watchdog is independent of Python, so the call can't block it."""

        def watched(tell: Any) -> None:
            faulthandler.dump_traceback_later(self.seconds * ALMOST, file=self.file)
            try:
                call(tell)
            finally:  # without forks, this is the user's process, and the file is closed soon
                faulthandler.cancel_dump_traceback_later()

        return watched

    def told(self, said: Any) -> Any:
        """Return an event of a step. If the step reached its time limit, add the stack."""
        if isinstance(said, Ended) and said.failure is not None and said.failure.kind == "timeout":
            return Ended(failure=replace(said.failure, frames=self.frames()))
        return said

    def frames(self) -> tuple[Frame, ...]:
        """Return the stack of the main thread, innermost line last; empty if nothing was written."""
        self.file.seek(0)
        threads = re.split(r"^(?:Current thread|Thread) .*$", self.file.read().decode(errors="replace"), flags=re.MULTILINE)
        return tuple(Frame(file, int(line), function) for file, line, function in reversed(FRAME.findall(threads[-1])))


def hangs(failure: Failure) -> bool:
    """Return whether a step reached its time limit and wrote its stack."""
    return failure.kind == "timeout" and bool(failure.frames)
