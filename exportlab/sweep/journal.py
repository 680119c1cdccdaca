"""The file of records that a sweep adds to. While it is open it is this sweep's alone, and what is not ours is never changed."""

from __future__ import annotations

import fcntl
import json
import os
import weakref
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import replace
from io import FileIO
from pathlib import Path
from typing import Any

from .records import SCHEMA, Record, RecordsError, check_regular, diff_environments, drop_torn_line, parse_records

LOCKS = Path("/proc/locks")  # on Linux; man 5 proc


class Journal:
    """A file of records that is being added to, one line at a time, each in the file before the next comes.

    A file that is not there, or empty, is begun. One that holds records of this environment, and nothing else, goes on after its last
    whole line; what was torn behind it is cut off. Any other file is refused, and left as it is.

    The file is locked until the journal is closed or its process ends, however that ends.
    """

    def __init__(self, path: str | Path, environment: Mapping[str, Any]) -> None:
        """Opens or begins the file, and locks it.

        Raises:
            RecordsError: it is no regular file, or cannot be written; another sweep writes it; it holds something else, or records of
                another environment: these are not to be mixed.
        """
        self.path, self.environment = Path(path), str(environment["id"])
        self._file = open_journal(self.path)
        try:
            lock_file(self._file, self.path)
            self.records = self._continued(environment)
        except BaseException:
            self._file.close()
            raise
        _open.add(self)

    def write(self, record: Record) -> Record:
        """Append a record, as one of this environment, and return it so.

        Raises:
            RecordsError: there is no space; what was written of it is taken back.
        """
        signed = replace(record, environment=self.environment)
        self._append(signed.line())
        self.records.append(signed)
        return signed

    def close(self) -> None:
        """Close the file, so that others can open it; nothing is lost without it."""
        self._file.close()

    def _append(self, line: str) -> None:
        begin, left = os.fstat(self._file.fileno()).st_size, f"{line}\n".encode()
        try:
            while left:
                left = left[self._file.write(left) :]
        except OSError as error:
            with suppress(OSError):  # what is torn is cut off when it is opened again
                self._file.truncate(begin)
            raise RecordsError(f"cannot write {self.path}: {error.strerror}; what it holds so far is whole") from error

    def _continued(self, environment: Mapping[str, Any]) -> list[Record]:
        self._file.seek(0)
        content = self._file.readall()
        if not content:
            self._append(json.dumps({"schema": SCHEMA, "environment": dict(environment)}))
        try:
            environments, records = parse_records(content, self.path)
        except RecordsError as error:
            raise RecordsError(f"{error}; the file is left as it is: name another one") from error
        for known in environments.values():
            if known["id"] != self.environment:
                raise RecordsError(
                    f"{self.path} was begun in another environment ({diff_environments(known, environment)}): name another file"
                )
        if content:
            self._file.truncate(len(drop_torn_line(content)))
        return records


_open: weakref.WeakSet[Journal] = weakref.WeakSet()


def _leave_to_parent() -> None:
    """A lock holds as long as anybody has the file open: what this process forks must not."""
    for journal in list(_open):
        journal.close()


os.register_at_fork(after_in_child=_leave_to_parent)


def open_journal(path: Path) -> FileIO:
    """Open a regular file to read and to append to, or make it.

    Raises:
        RecordsError: it is something else, or cannot be written.
    """
    try:
        check_regular(path)
        if path.is_symlink() and not path.exists():
            raise RecordsError(f"{path} is a link to {os.readlink(path)}, which is not there")
        return FileIO(path, "a+")
    except OSError as error:
        raise RecordsError(f"cannot write {path}: {error.strerror}") from error


def lock_file(file: FileIO, path: Path) -> None:
    """Lock a file for as long as it is open in this process.

    Raises:
        RecordsError: another has locked it, or its file system has no locks.
    """
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError as error:
        raise RecordsError(f"{path} is being written by another sweep{_holder(file)}: wait for its end, or name another file") from error
    except OSError as error:
        raise RecordsError(f"cannot lock {path} against other sweeps: {error.strerror}; name a file on another file system") from error


def _holder(file: FileIO) -> str:
    """` (process 123)`, where the system tells."""
    inode = str(os.fstat(file.fileno()).st_ino)
    lines = LOCKS.read_text().splitlines() if LOCKS.exists() else []
    for _, kind, _, _, process, place, *_ in map(str.split, lines):  # 1: FLOCK ADVISORY WRITE 18348 fe:00:2646311 0 EOF
        if kind == "FLOCK" and place.rpartition(":")[2] == inode and process != "0":  # 0 is one of another container
            return f" (process {process})"
    return ""
