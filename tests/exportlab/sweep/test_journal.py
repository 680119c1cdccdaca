"""The file that a sweep adds to: ours alone while it is open, continued only where it is ours, and nothing else is ever written to."""

from __future__ import annotations

import json
import multiprocessing
import os
import resource
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import psutil
import pytest

from exportlab.outcomes import Outcome
from exportlab.sweep.journal import Journal
from exportlab.sweep.records import Record, RecordsError, read

HERE = {"id": "ab12cd34", "torch_version": "2.13.0", "date": "today"}
HEADER = json.dumps({"schema": 1, "environment": HERE}) + "\n"
GOOD = Record("mlp", "dynamo", "dynamic", Outcome.OK, seconds={"export": 0.5}, environment="ab12cd34")
HOLDS = """
import sys
from exportlab.sweep.journal import Journal
journal = Journal(sys.argv[1], {"id": "ab12cd34"})
print("open", flush=True)
sys.stdin.read()
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    journal = Journal(tmp_path / "seen.jsonl", HERE)
    journal.write(GOOD)
    journal.close()
    return journal.path


@contextmanager
def time_limit(seconds: int = 20) -> Iterator[None]:
    """Ends the test run where something hangs."""
    signal.alarm(seconds)
    try:
        yield
    finally:
        signal.alarm(0)


@pytest.mark.parametrize(
    "content",
    [
        b'{"precious": 1}',
        b'{"precious": 1}\n',
        b"number = 3\n",
        b"\x89PNG\r\n\x1a\n\x00\x00",
        b"\xff\xfe\x00",
        b"\n",
        b"\x00" * 100,
        b"[" * 100_000 + b"\n",
        b'{"schema": 1, "environment": {}}\n',
        b'{"schema": 1, "environment": {"id": 7}}\n',
        b'{"schema": 1, "environment": [1]}\n',
        b'{"schema": 99, "environment": {"id": "ab12cd34"}}\n',
        HEADER.encode()[:-1],
        GOOD.line().encode() + b"\n",
        HEADER.encode() + b"my notes\n",
        HEADER.encode() + b'\xff{"case": "mlp"}\n',
    ],
    ids=lambda content: repr(content[:40]),
)
def test_a_file_that_is_not_ours_is_left_as_it_is(tmp_path: Path, content: bytes) -> None:
    mine = tmp_path / "mine.json"
    mine.write_bytes(content)
    with pytest.raises(
        RecordsError, match=r"mine\.json:[12] (is not a record|has schema 99).*; the file is unchanged: use another file name"
    ):
        Journal(mine, HERE)
    assert mine.read_bytes() == content


def test_another_environments_file_is_left_with_its_torn_tail(path: Path) -> None:
    content = path.read_bytes() + b'{"case": "torn'
    path.write_bytes(content)
    with pytest.raises(RecordsError, match="another environment"):
        Journal(path, {**HERE, "id": "other"})
    assert path.read_bytes() == content


def test_an_empty_file_is_begun(tmp_path: Path) -> None:
    (tmp_path / "seen.jsonl").touch()
    Journal(tmp_path / "seen.jsonl", HERE).write(GOOD)
    assert read(tmp_path / "seen.jsonl") == [GOOD]


@pytest.mark.parametrize(
    ("kind", "said"),
    [
        ("folder", "is a folder"),
        ("pipe", "is a pipe"),
        ("device", "is a device"),
        ("full", "is a device"),
        ("link to a pipe", "is a pipe"),
        ("link into nowhere", r"is a link to .*absent\.jsonl, which does not exist"),
        ("link to itself", "is a link to"),
        ("below a file", "cannot write"),
        ("missing folder", "cannot write"),
    ],
)
def test_only_regular_files_are_written_and_read(tmp_path: Path, kind: str, said: str) -> None:
    with time_limit():
        target = target_of(kind, tmp_path)
        before = sorted(tmp_path.iterdir())
        with pytest.raises(RecordsError, match=said):
            Journal(target, HERE)
        assert sorted(tmp_path.iterdir()) == before
        with pytest.raises((RecordsError, OSError)):
            read(target)


def target_of(kind: str, folder: Path) -> Path:
    if kind in ("device", "full"):
        return Path("/dev/null" if kind == "device" else "/dev/full")
    target = folder / "seen.jsonl"
    if kind == "folder":
        target.mkdir()
    elif "pipe" in kind:
        os.mkfifo(folder / "pipe")
        target.symlink_to(folder / "pipe")
        return target if "link" in kind else folder / "pipe"
    elif "link" in kind:
        target.symlink_to(target if "itself" in kind else folder / "absent.jsonl")
    elif kind == "below a file":
        (folder / "file").touch()
        return folder / "file" / "seen.jsonl"
    else:
        return folder / "missing" / "seen.jsonl"
    return target


def test_a_link_to_a_file_is_followed(path: Path, tmp_path: Path) -> None:
    (tmp_path / "link.jsonl").symlink_to(path)
    Journal(tmp_path / "link.jsonl", HERE).write(replace(GOOD, case="cnn"))
    assert (tmp_path / "link.jsonl").is_symlink()
    assert [record.case for record in read(path)] == ["mlp", "cnn"]


def test_a_second_sweep_on_one_file_is_refused_by_the_name_of_the_first(path: Path, tmp_path: Path) -> None:
    (tmp_path / "hard.jsonl").hardlink_to(path)
    with subprocess.Popen([sys.executable, "-c", HOLDS, path], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as other:
        assert other.stdout.readline() == "open\n"
        content = path.read_bytes()
        for name in (path, tmp_path / "hard.jsonl"):
            with pytest.raises(RecordsError, match=rf"is being written by another sweep \(process {other.pid}\)"):
                Journal(name, HERE)
        assert path.read_bytes() == content
        other.kill()
    Journal(path, HERE).close()


def test_in_one_process_too(path: Path) -> None:
    first = Journal(path, HERE)
    with pytest.raises(RecordsError, match="another sweep"):
        Journal(path, HERE)
    first.close()
    Journal(path, HERE).close()


def test_what_the_process_forks_does_not_keep_the_lock(path: Path) -> None:
    first = Journal(path, HERE)
    context = multiprocessing.get_context("fork")
    begun, ended = context.Event(), context.Event()
    child = context.Process(target=lambda: begun.set() or ended.wait())
    child.start()
    begun.wait()
    assert str(path) not in [file.path for file in psutil.Process(child.pid).open_files()]
    first.close()
    Journal(path, HERE).close()
    ended.set()
    child.join()


@contextmanager
def room_for(size: int) -> Iterator[None]:
    """Files may grow to so many bytes: what a full disk does, but for the number of the error."""
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_where_there_is_no_space_whole_lines_stay(path: Path) -> None:
    journal = Journal(path, HERE)
    content = path.read_bytes()
    with room_for(len(content) + 20), pytest.raises(RecordsError, match=r"cannot write .*seen\.jsonl: File too large"):
        journal.write(replace(GOOD, case="cnn"))
    assert path.read_bytes() == content
    assert journal.records == [GOOD]


def test_a_file_that_cannot_be_begun_is_empty(tmp_path: Path) -> None:
    with room_for(20), pytest.raises(RecordsError, match="File too large"):
        Journal(tmp_path / "seen.jsonl", HERE)
    Journal(tmp_path / "seen.jsonl", HERE).close()


def test_a_second_record_of_one_run_is_refused(path: Path) -> None:
    path.write_text(path.read_text() + replace(GOOD, outcome=Outcome.WRONG).line() + "\n")
    said = r"seen\.jsonl:3 is a second record of mlp, dynamo, dynamic, round 1, after line 2"
    with pytest.raises(RecordsError, match=said):
        read(path)
    with pytest.raises(RecordsError, match=said):
        Journal(path, HERE)


def test_of_a_run_that_was_killed_from_outside_the_next_record_counts(path: Path) -> None:
    journal = Journal(path, HERE)
    for outcome, error in ((Outcome.CRASH, "ProcessDied: the worker: killed by SIGKILL"), (Outcome.OK, None)):
        journal.write(replace(GOOD, case="cnn", outcome=outcome, error=error))
    journal.close()
    assert read(path) == [GOOD, replace(GOOD, case="cnn")]
    assert len(Journal(path, HERE).records) == 3
