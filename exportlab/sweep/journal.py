"""Append the records of a sweep to a file. The file is locked while it is open, and files of other kinds stay unchanged."""

from __future__ import annotations

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
LOCKED_BYTE = 2**31 - 2  # for Windows, where other processes cannot read locked bytes: the largest position that it can lock


class Journal:
    """A file of records, open for appending. Each record is written before the next one is accepted.

    A missing or empty file is created. A file with records of this environment is continued after its last complete line, and an incomplete
    line at the end is removed. Any other file is rejected and stays unchanged.

    The file is locked until the journal is closed or its process ends.
    """

    def __init__(self, path: str | Path, environment: Mapping[str, Any]) -> None:
        """Open or create the file, and lock it.

        Raises:
            RecordsError: the file is not a regular file, cannot be written, is in use by another sweep, or contains something else or
                records of another environment.
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
        """Append a record with the id of this environment, and return it with this id.

        Raises:
            RecordsError: writing failed, for example because the disk is full. A partly written line is removed.
        """
        signed = replace(record, environment=self.environment)
        self._append(signed.line())
        self.records.append(signed)
        return signed

    def close(self) -> None:
        """Close the file so that others can open it. Records are on disk before this call."""
        self._file.close()

    def _append(self, line: str) -> None:
        begin, left = os.fstat(self._file.fileno()).st_size, f"{line}\n".encode()
        try:
            while left:
                left = left[self._file.write(left) :]
        except OSError as error:
            with suppress(OSError):  # an incomplete line is removed when the file is opened again
                self._file.truncate(begin)
            raise RecordsError(f"cannot write {self.path}: {error.strerror}; the records written so far are complete") from error

    def _continued(self, environment: Mapping[str, Any]) -> list[Record]:
        self._file.seek(0)
        content = self._file.readall()
        if not content:
            self._append(json.dumps({"schema": SCHEMA, "environment": dict(environment)}))
        try:
            environments, records = parse_records(content, self.path)
        except RecordsError as error:
            raise RecordsError(f"{error}; the file is unchanged: use another file name") from error
        for known in environments.values():
            if known["id"] != self.environment:
                raise RecordsError(
                    f"{self.path} was created in another environment ({diff_environments(known, environment)}): use another file name"
                )
        if content:
            self._file.truncate(len(drop_torn_line(content)))
        return records


_open: weakref.WeakSet[Journal] = weakref.WeakSet()


def _leave_to_parent() -> None:
    """Close the files in a forked child, because a lock lasts as long as any process has the file open."""
    for journal in list(_open):
        journal.close()


if hasattr(os, "register_at_fork"):  # Windows has no forks
    os.register_at_fork(after_in_child=_leave_to_parent)


def open_journal(path: Path) -> FileIO:
    """Open a regular file for reading and appending. Create it if it doesn't exist.

    Raises:
        RecordsError: the path is not a regular file, or cannot be written.
    """
    try:
        check_regular(path)
        if path.is_symlink() and not path.exists():
            raise RecordsError(f"{path} is a link to {os.readlink(path)}, which does not exist")
        return FileIO(path, "a+")
    except OSError as error:
        raise RecordsError(f"cannot write {path}: {error.strerror}") from error


def lock_file(file: FileIO, path: Path) -> None:
    """Lock a file while it is open in this process.

    Raises:
        RecordsError: another process locked it, or its file system doesn't support locks.
    """
    try:
        _lock(file)
    except BlockingIOError as error:
        raise RecordsError(
            f"{path} is being written by another sweep{_holder(file)}: wait until it finishes, or use another file name"
        ) from error
    except OSError as error:
        raise RecordsError(f"cannot lock {path}: {error.strerror}; use a file on another file system") from error


def _lock(file: FileIO) -> None:
    """Lock a file. Raises `BlockingIOError` if another process or another `FileIO` locked it."""
    try:
        import fcntl
    except ImportError:
        return _lock_on_windows(file)
    return fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)


def _lock_on_windows(file: FileIO) -> None:
    import msvcrt

    file.seek(LOCKED_BYTE)
    try:
        msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)  # type: ignore[attr-defined]
    except PermissionError as error:
        raise BlockingIOError(error.errno, error.strerror) from error


def _holder(file: FileIO) -> str:
    """Return ` (process 123)` if the system lists the process that holds the lock."""
    inode = str(os.fstat(file.fileno()).st_ino)
    lines = LOCKS.read_text().splitlines() if LOCKS.exists() else []
    for _, kind, _, _, process, place, *_ in map(str.split, lines):  # 1: FLOCK ADVISORY WRITE 18348 fe:00:2646311 0 EOF
        if kind == "FLOCK" and place.rpartition(":")[2] == inode and process != "0":  # 0 is a process of another container
            return f" (process {process})"
    return ""
