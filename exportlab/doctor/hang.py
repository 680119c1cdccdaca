"""Find the line at which a step hangs: shortly before its time is up, it writes down where it is."""

from __future__ import annotations

import faulthandler
import re
import tempfile
from collections.abc import Callable
from dataclasses import replace
from typing import IO, Any

from ..isolation import Ended, Failure, Frame

ALMOST = 0.9  # part of its time after which a step says where it is
FRAME = re.compile(r'^  File "(.+)", line (\d+) in (.+)$', re.MULTILINE)


class Watch:
    """A file that lies nowhere: the child writes its stack into it, and the parent reads that once the child was ended."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self.file: IO[bytes] = tempfile.TemporaryFile()  # noqa: SIM115 - it is closed with the watch

    def over(self, call: Callable[[Any], None]) -> Callable[[Any], None]:
        """Return the same call; in the child it is watched from outside of Python, so that nothing that it does can keep it from that."""

        def watched(tell: Any) -> None:
            faulthandler.dump_traceback_later(self.seconds * ALMOST, file=self.file)
            call(tell)
            faulthandler.cancel_dump_traceback_later()

        return watched

    def told(self, said: Any) -> Any:
        """Return what a step says; of one whose time was up, with the line where it was."""
        if isinstance(said, Ended) and said.failure is not None and said.failure.kind == "timeout":
            return Ended(failure=replace(said.failure, frames=self.frames()))
        return said

    def frames(self) -> tuple[Frame, ...]:
        """Return where the main thread was, the innermost line last; nothing where it wrote nothing."""
        self.file.seek(0)
        threads = re.split(r"^(?:Current thread|Thread) .*$", self.file.read().decode(errors="replace"), flags=re.MULTILINE)
        return tuple(Frame(file, int(line), function) for file, line, function in reversed(FRAME.findall(threads[-1])))


def hangs(failure: Failure) -> bool:
    """Return whether a step hung, and said where."""
    return failure.kind == "timeout" and bool(failure.frames)
