"""Take away what Windows lacks, from a process that has imported its libraries but nothing of Export Lab."""

from __future__ import annotations

import errno
import fcntl as FCNTL
import os
import signal
import sys
from multiprocessing.popen_fork import Popen
from types import ModuleType

import filelock  # noqa: F401 - the libraries need some of what is taken away
import onnxruntime  # noqa: F401
import psutil  # noqa: F401
import torch  # noqa: F401

MODULES = ("fcntl", "resource", "pwd", "grp", "termios")
SIGNALS = ("SIGALRM", "SIGKILL", "SIGHUP", "SIGCHLD", "SIGUSR1", "SIGUSR2", "setitimer", "alarm", "ITIMER_REAL", "pthread_kill")
CALLS = ("fork", "waitid", "killpg", "setsid", "register_at_fork", "getpgid", "WNOWAIT", "P_PID", "mkfifo")


def take_posix_away() -> None:
    """Remove modules, signals and system calls, and add an `msvcrt` with the locks that it has on Windows."""
    for name in MODULES:
        sys.modules[name] = None  # type: ignore[assignment]
    for owner, names in ((signal, SIGNALS), (os, CALLS)):
        for name in names:
            if hasattr(owner, name):
                delattr(owner, name)
    sys.modules["msvcrt"] = Locks("msvcrt")
    Popen.kill = lambda self: self._send_signal(9)  # as on Windows, a child can be ended without a name for the signal


class Locks(ModuleType):
    """The part of `msvcrt` that locks bytes of a file."""

    LK_NBLCK = 2

    def locking(self, descriptor: int, mode: int, count: int) -> None:
        """Lock bytes at the position of a file, as long as the file is open. The locks of Linux stand in for those of Windows."""
        assert (mode, count) == (self.LK_NBLCK, 1)
        assert os.lseek(descriptor, 0, os.SEEK_CUR) == 2**31 - 2
        try:
            FCNTL.flock(descriptor, FCNTL.LOCK_EX | FCNTL.LOCK_NB)
        except BlockingIOError as error:
            raise PermissionError(errno.EACCES, "Permission denied") from error
