"""Calls in a child: what comes back, and what is left of a child that hangs, dies, or leaves others behind."""

from __future__ import annotations

import gc
import importlib
import os
import re
import signal
import subprocess
import threading
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import psutil
import pytest
import torch
from torch import nn
from tqdm import tqdm

import exportlab
import fx2onnx
from exportlab import to_onnx
from exportlab.cases import case
from exportlab.isolation import PACKAGE, Abandoned, Failure, events, run_isolated
from exportlab.specs import tensor

GiB = 2**30
FAILS_IN_A_FORK = """
import os
BORN = os.getpid()

def use():
    if os.getpid() != BORN:
        raise RuntimeError("Cannot re-initialize CUDA in forked subprocess")
    return "used"
"""


def failure(call: Callable[[], Any], seconds: float = 60) -> Failure:
    found = run_isolated(call, seconds=seconds, memory=8 * GiB).failure
    assert found is not None
    return found


def test_a_call_brings_its_value_or_says_how_it_ended() -> None:
    assert run_isolated(lambda: 3, seconds=60, memory=8 * GiB).value == 3
    raised = failure(lambda: int("x"))
    assert raised.error.startswith("ValueError: invalid literal")
    assert raised.frames[-1].file == __file__
    assert failure(lambda: os._exit(7)).error == "ProcessDied: exit code 7"
    assert failure(lambda: os.kill(os.getpid(), signal.SIGSEGV)).error == "ProcessDied: killed by SIGSEGV"
    assert failure(lambda: time.sleep(1000), seconds=0.2).kind == "timeout"
    assert failure(lambda: lambda: 3).kind == "raised"


def test_a_child_that_is_started_anew_is_no_fork(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "gpu.py").write_text(FAILS_IN_A_FORK)
    monkeypatch.syspath_prepend(tmp_path)
    use = importlib.import_module("gpu").use
    assert run_isolated(use, seconds=60, memory=8 * GiB).failure.error == "RuntimeError: Cannot re-initialize CUDA in forked subprocess"  # type: ignore[union-attr]
    assert run_isolated(use, seconds=60, memory=8 * GiB, anew=True).value == "used"
    assert run_isolated(partial(int, "x"), seconds=60, memory=8 * GiB, anew=True).failure.kind == "raised"  # type: ignore[union-attr]


def test_a_call_ends_when_nobody_waits_for_it() -> None:
    ours, theirs = os.pipe()
    os.close(theirs)
    with pytest.raises(Abandoned):
        list(events(lambda tell: time.sleep(1000), seconds=60, memory=8 * GiB, until=ours))
    os.close(ours)


def started(folder: Any, **options: Any) -> int:
    """Start a process that outlives its parent, and note its id: it keeps the pipe of the parent open, too."""
    child = subprocess.Popen(["sleep", "1000"], close_fds=False, **options)
    (folder / "pid").write_text(str(child.pid))
    return child.pid


def is_running(pid: int) -> bool:
    return psutil.pid_exists(pid) and psutil.Process(pid).status() != psutil.STATUS_ZOMBIE


def left_by(call: Callable[[], Any], folder: Any) -> bool:
    failure(call)
    time.sleep(0.1)
    return is_running(int((folder / "pid").read_text()))


def test_what_a_child_started_ends_with_it_however_it_ends(tmp_path: Any) -> None:
    assert not left_by(lambda: (started(tmp_path), os._exit(3)), tmp_path)
    assert not left_by(lambda: (started(tmp_path), os.kill(os.getpid(), signal.SIGSEGV)), tmp_path)


def test_a_child_that_dies_is_noticed_though_another_holds_its_pipe(tmp_path: Any) -> None:
    def dies() -> None:
        if os.fork() == 0:  # inherits the pipe
            os.setsid()
            (tmp_path / "pid").write_text(str(os.getpid()))
            time.sleep(1000)
        while not (tmp_path / "pid").exists():
            time.sleep(0.01)
        os._exit(5)

    try:
        assert failure(dies, seconds=30).error == "ProcessDied: exit code 5"
    finally:
        os.kill(int((tmp_path / "pid").read_text()), signal.SIGKILL)


def closes_its_pipe_and_goes_on() -> None:
    os.closerange(3, 64)
    time.sleep(1000)


def test_a_child_that_closes_its_pipe_and_goes_on_is_ended() -> None:
    assert failure(closes_its_pipe_and_goes_on).error == "ProcessDied: it closed its pipe, kept running, and was ended"


def test_what_a_child_writes_into_its_pipe_is_no_answer() -> None:
    def writes(tell: Any) -> None:
        os.write(tell.__self__.fileno(), b"\x00\x00\x00\x05stray")
        os._exit(0)

    (ended,) = events(writes, seconds=60, memory=8 * GiB)
    assert ended.failure.error.startswith("ProcessDied: its result cannot be read: UnpicklingError")


class WaitsElsewhere:
    """As a session of ONNX Runtime: freed in a fork, it waits for threads that did not come along."""

    def __init__(self) -> None:
        self.made_in, self.itself = os.getpid(), self

    def __del__(self) -> None:
        while os.getpid() != self.made_in:
            time.sleep(1)


def test_garbage_of_the_parent_is_not_freed_in_the_child() -> None:
    gc.collect()
    gc.disable()
    try:
        WaitsElsewhere()
        assert run_isolated(lambda: gc.collect() >= 0, seconds=30, memory=8 * GiB).value is True
    finally:
        gc.enable()


def test_a_lock_of_tqdm_that_a_thread_of_the_parent_holds_keeps_no_child_waiting() -> None:
    held, done = threading.Event(), threading.Event()

    def hold() -> None:
        with tqdm.get_lock():
            held.set()
            done.wait()

    holder = threading.Thread(target=hold)
    holder.start()
    held.wait()
    try:
        assert run_isolated(lambda: list(tqdm(range(3), disable=True)), seconds=30, memory=8 * GiB).value == [0, 1, 2]
    finally:
        done.set()
        holder.join()


def test_no_generator_of_a_gpu_is_asked_where_none_is_used(monkeypatch: pytest.MonkeyPatch) -> None:
    """Asking for its state would start CUDA, which then works in none of the forks of this process."""

    def started(*args: Any) -> None:
        raise AssertionError("CUDA was started")

    monkeypatch.setattr(torch.cuda, "device_count", lambda: 1)
    monkeypatch.setattr(torch.cuda, "get_rng_state", started)
    assert case(dims={"n": (4, 7)})(lambda: (nn.Linear(3, 2), (tensor("n", 3),))).made().samples
    to_onnx(nn.Linear(3, 2).eval(), (torch.ones(4, 3),), verify=True)


def test_every_fork_of_a_generator_names_its_devices() -> None:
    packages = (Path(exportlab.__file__).parent, Path(fx2onnx.__file__).parent)
    calls = [call for package in packages for file in package.rglob("*.py") for call in re.findall(r"fork_rng\([^)]*", file.read_text())]
    assert len(calls) > 5
    assert [call for call in calls if "devices=" not in call] == []


@pytest.mark.parametrize(("anew", "seen"), [(False, ""), (True, "0")])
def test_a_fork_sees_no_gpu(anew: bool, seen: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "0")
    assert run_isolated(partial(os.getenv, "CUDA_VISIBLE_DEVICES"), seconds=60, memory=8 * GiB, anew=anew).value == seen


def test_a_mistake_of_this_package_is_marked_and_an_error_of_a_call_is_not() -> None:
    known: dict[str, Any] = {}
    exec(compile("def mistake():\n    return {}['key']", f"{PACKAGE}sweep/worker.py", "exec"), known)
    for call, internal in ((known["mistake"], True), (lambda: {}["key"], False)):
        ended = run_isolated(call, seconds=60, memory=2**40)
        assert ended.failure is not None
        assert ended.failure.internal is internal
