"""Sweeps: workers that die, hang or eat, sweeps that are killed and resumed, other executors."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import Executor, ProcessPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import NoReturn

import psutil
import pytest

from content import zoo
from exportlab.sweep import Limits, SweepError, Task, grid, sweep
from exportlab.sweep.process_worker import Setup, start_worker
from exportlab.sweep.records import Record, read
from exportlab.userfile import all_cases

CASES = '''
import os
import time
import numpy
import torch
from torch import nn
from exportlab import case, tensor

class While(nn.Module):
    """Does something only while it is exported."""
    def __init__(self, act):
        super().__init__()
        self.act = act
    def forward(self, x):
        if torch.compiler.is_exporting():
            self.act()
        return x + 1

@case(dims={"n": (4, 1)})
def good():
    return nn.Linear(3, 2), (tensor("n", 3),)

@case(dims={"n": (4, 1)})
def dies():
    return While(lambda: os.kill(os.getpid(), 11)), (tensor("n", 3),)

@case(dims={"n": (4, 1)})
def hangs():
    return While(lambda: time.sleep(1000)), (tensor("n", 3),)

@case(dims={"n": (4, 1)})
def eats():
    def eat():
        kept = []
        while True:
            kept.append(numpy.ones(1 << 24))
    return While(eat), (tensor("n", 3),)

@case(dims={"n": (4, 1)})
def fails():
    return nn.Linear(4, 2), (tensor("n", 3),)
'''
SLOW = """
import time
import torch
from torch import nn
from exportlab import case, tensor

@case(dims={"n": (4, 1)})
def slow():
    class Slow(nn.Module):
        def forward(self, x):
            if torch.compiler.is_exporting():
                time.sleep(0.4)
            return x + 1
    return Slow(), (tensor("n", 3),)
"""
EAGER = '''
import os
import time
from torch import nn
from exportlab import case, tensor

class Once(nn.Module):
    """Notes that it was called, and does something."""
    def __init__(self, act):
        super().__init__()
        self.act = act
    def forward(self, x):
        with open(os.environ["CALLED"], "a") as file:
            file.write(self.act + "\\n")
        if self.act == "hangs":
            time.sleep(1000)
        if self.act == "dies":
            os.kill(os.getpid(), 11)
        if self.act == "raises":
            raise RuntimeError("not today")
        return x + 1

@case(dims={"n": (4, 1)})
def hangs():
    return Once("hangs"), (tensor("n", 3),)

@case(dims={"n": (4, 1)})
def dies():
    return Once("dies"), (tensor("n", 3),)

@case(dims={"n": (4, 1)})
def raises():
    return Once("raises"), (tensor("n", 3),)

@case(dims={"n": (4, 1)})
def good():
    return nn.Linear(3, 2), (tensor("n", 3),)
'''
HOSTILE = '''
import os
import signal
import subprocess
import time
import torch
from torch import nn
from exportlab import case, tensor

def sleeper():
    """One in a session of its own, which holds all that this process has open."""
    child = subprocess.Popen(["sleep", "1000"], close_fds=False, start_new_session=True)
    with open(os.environ["LEFT"], "a") as file:
        file.write(f"{child.pid}\\n")

class While(nn.Module):
    def __init__(self, act):
        super().__init__()
        self.act = act
    def forward(self, x):
        if torch.compiler.is_exporting():
            self.act()
        return x + 1

@case()
def stops_the_worker():
    return While(lambda: os.kill(os.getppid(), signal.SIGSTOP)), (tensor(4, 3),)

@case()
def kills_the_worker():
    def act():
        sleeper()
        os.kill(os.getppid(), signal.SIGTERM)
        time.sleep(1000)
    return While(act), (tensor(4, 3),)

@case()
def writes_everywhere():
    def act():
        for descriptor in range(3, 64):
            try:
                os.write(descriptor, b\'{"outcome": "ok", "nodes": 77}\\n\')
            except OSError:
                pass
        os._exit(3)
    return While(act), (tensor(4, 3),)

@case()
def leaves_a_child():
    def act():
        sleeper()
        os.kill(os.getpid(), signal.SIGSEGV)
    return While(act), (tensor(4, 3),)

@case()
def innocent():
    return nn.Linear(3, 2), (tensor(4, 3),)
'''
SMALL = ("mlp", "branch_on_batch", "same_tensor_thrice", "row_loop")
PLAIN = ("torch.export",)


@pytest.fixture
def mine(tmp_path: Path) -> str:
    (tmp_path / "mine.py").write_text(CASES)
    return str(tmp_path / "mine.py")


def tasks_of(mine: str, *names: str, rounds: int = 1) -> list[Task]:
    chosen = [case for case in all_cases(mine) if case.name in names]
    return grid(chosen, PLAIN, ("dynamic",), rounds, mine)


def outcomes(records: list[Record]) -> dict[tuple[str, str, str], str]:
    return {record.key[:3]: record.outcome for record in records}


def workers_of(process: psutil.Process) -> list[psutil.Process]:
    return [child for child in process.children() if "exportlab.sweep.worker" in " ".join(child.cmdline())]


def wait_until(condition: Callable[[], bool], seconds: float = 120) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "waited in vain"
        time.sleep(0.05)


def test_a_grid_interleaves_exporters_and_repeats_in_rounds() -> None:
    tasks = grid([zoo.get("mlp"), zoo.get("row_loop")], ("a", "b"), ("dynamic",), rounds=2)
    assert [(t.round, t.case, t.exporter) for t in tasks] == [
        (1, "mlp", "b"), (1, "mlp", "a"), (1, "row_loop", "a"), (1, "row_loop", "b"),
        (2, "mlp", "a"), (2, "mlp", "b"), (2, "row_loop", "b"), (2, "row_loop", "a"),
    ]  # fmt: skip


def test_what_dies_or_hangs_costs_its_own_record_alone(mine: str, tmp_path: Path) -> None:
    records = sweep(tasks_of(mine, "dies", "hangs", "good"), tmp_path / "seen.jsonl", processes=1, limits=Limits(seconds=6))
    found = {record.case: record for record in records}
    assert {case: record.outcome for case, record in found.items()} == {"good": "ok", "dies": "crash", "hangs": "timeout"}
    assert found["dies"].error == "ProcessDied: killed by SIGSEGV"
    assert found["hangs"].error == "TimeLimit: not done after 6 s"
    assert read(tmp_path / "seen.jsonl") == records


def test_what_eats_too_much_memory_is_ended(mine: str, tmp_path: Path) -> None:
    (found,) = sweep(tasks_of(mine, "eats"), tmp_path / "seen.jsonl", processes=1, limits=Limits(bytes=5 * 2**28))
    assert (found.outcome, found.error) == ("crash", "MemoryLimit: the process took more than 1.25 GiB and was ended")


def test_a_case_that_fails_by_itself_is_no_record_but_an_error_at_the_end(mine: str, tmp_path: Path) -> None:
    with pytest.raises(SweepError, match=r"1 of 2 tasks have no record(.|\n)*fails: RuntimeError: mat1 and mat2"):
        sweep(tasks_of(mine, "fails", "good"), tmp_path / "seen.jsonl", processes=1)
    assert [record.case for record in read(tmp_path / "seen.jsonl")] == ["good"]


def is_running(pid: int) -> bool:
    return psutil.pid_exists(pid) and psutil.Process(pid).status() != psutil.STATUS_ZOMBIE


def test_eager_is_tried_once_a_case_and_what_ends_there_ends_all_its_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "eager.py").write_text(EAGER)
    monkeypatch.setenv("CALLED", str(tmp_path / "called"))
    tasks = grid(all_cases(str(tmp_path / "eager.py")), ("torch.export", "to_onnx"), file=str(tmp_path / "eager.py"))
    output = tmp_path / "seen.jsonl"
    with pytest.raises(SweepError, match=r"4 of 16 tasks have no record(.|\n)*raises: RuntimeError: not today"):
        sweep(tasks, output, processes=2, limits=Limits(seconds=8))
    assert Counter((tmp_path / "called").read_text().split()) == {"hangs": 1, "dies": 1, "raises": 1}
    assert Counter((record.case, record.outcome, record.error) for record in read(output)) == {
        ("good", "ok", None): 4,
        ("hangs", "timeout", "eager itself: TimeLimit: not done after 8 s"): 4,
        ("dies", "crash", "eager itself: ProcessDied: killed by SIGSEGV"): 4,
    }
    assert {record.file for record in read(output)} == {str(tmp_path / "eager.py")}
    lines = output.read_text().splitlines(keepends=True)
    first = next(line for line in lines if '"hangs"' in line)
    output.write_text(lines[0] + first)
    again = sweep([task for task in tasks if task.case == "hangs"], output, executor=NobodyHome())
    assert [record.outcome for record in again] == ["timeout"] * 4


def test_what_attacks_the_worker_costs_its_own_record_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "hostile.py").write_text(HOSTILE)
    left = tmp_path / "left"
    monkeypatch.setenv("LEFT", str(left))
    tasks = grid(all_cases(str(tmp_path / "hostile.py")), PLAIN, file=str(tmp_path / "hostile.py"))
    try:
        records = sweep(tasks, tmp_path / "seen.jsonl", processes=1, limits=Limits(seconds=8, grace=1))
        running = [pid for pid in map(int, left.read_text().split()) if is_running(pid)]
    finally:
        for pid in left.read_text().split():
            with suppress(ProcessLookupError):
                os.kill(int(pid), signal.SIGKILL)
    found = {record.case: (record.outcome, record.error) for record in records}
    outcome, error = found.pop("writes_everywhere")
    assert outcome == "crash"
    assert error.startswith("ProcessDied: ")
    assert found == {
        "stops_the_worker": ("timeout", "TimeLimit: the process that watches over the task did not answer after 9 s"),
        "kills_the_worker": ("crash", "ProcessDied: the worker: killed by SIGTERM"),
        "leaves_a_child": ("crash", "ProcessDied: killed by SIGSEGV"),
        "innocent": ("ok", None),
    }
    assert len(left.read_text().split()) == 2
    assert not running


def test_a_worker_runs_nothing_that_lies_in_the_current_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "sympy.py").write_text("import pathlib; pathlib.Path('executed').touch(); raise ImportError('mine')")
    monkeypatch.chdir(tmp_path)
    start_worker(Setup(Limits(), (), False)).stop()
    assert [path.name for path in tmp_path.iterdir()] == ["sympy.py"]


class NobodyHome(Executor):
    """An executor that must not be asked."""

    def submit(self, *_: object, **__: object) -> NoReturn:
        raise AssertionError("everything was done already")


def test_records_hold_what_was_seen_and_are_not_made_twice(tmp_path: Path) -> None:
    cases = [zoo.get(name) for name in SMALL]
    tasks = grid(cases, ("torch.export", "to_onnx"))
    told: list[tuple[Counter[str], int]] = []
    records = sweep(tasks, tmp_path / "seen.jsonl", tell=lambda counts, left: told.append((counts.copy(), left)))
    found = {record.key[:3]: record for record in records}
    good = found["mlp", "to_onnx", "dynamic"]
    assert (good.outcome, good.nodes, good.weights_bytes) == ("ok", 3, 2704)
    assert set(good.seconds) == {"export", "save", "load", "call", "eager"}
    assert good.bytes > good.weights_bytes
    assert found["row_loop", "to_onnx", "dynamic"].outcome == "ok"
    assert found["row_loop", "torch.export", "dynamic"].where is None
    assert found["branch_on_batch", "torch.export", "dynamic"].failed[0]["outcome"] == "narrow"
    assert found["same_tensor_thrice", "torch.export", "static"].outcome == "wrong"
    assert told[0] == (Counter(), len(tasks))
    assert told[-1] == (Counter(outcomes(records).values()), 0)
    again = sweep(tasks, tmp_path / "seen.jsonl", executor=NobodyHome())
    assert outcomes(again) == outcomes(records)


def command(mine: str, output: Path, rounds: int) -> psutil.Popen:
    line = [str(Path(sys.executable).with_name("exportlab")), "sweep", "--cases", mine, "--exporters", "torch.export", "-o", str(output)]
    line += ["--modes", "dynamic", "--rounds", str(rounds)]
    return psutil.Popen(line, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, preexec_fn=hear_interrupts)


def hear_interrupts() -> None:
    """What a shell starts in the background ignores them, and so does all that it starts."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def lines(path: Path) -> int:
    return path.read_text().count("\n") if path.exists() else 0


@pytest.fixture
def slow(tmp_path: Path) -> str:
    (tmp_path / "slow.py").write_text(SLOW)
    return str(tmp_path / "slow.py")


def test_a_worker_killed_in_the_middle_is_tried_again_when_the_killed_sweep_resumes(slow: str, tmp_path: Path) -> None:
    output = tmp_path / "seen.jsonl"
    first = command(slow, output, rounds=12)
    wait_until(lambda: lines(output) >= 2)
    victim = workers_of(first)[0]
    victim.send_signal(signal.SIGKILL)
    wait_until(lambda: "crash" in output.read_text())
    wait_until(lambda: lines(output) >= 5)
    orphans = workers_of(first)
    first.send_signal(signal.SIGKILL)
    first.wait()
    wait_until(lambda: not any(orphan.is_running() for orphan in orphans))
    second = command(slow, output, rounds=12)
    _, said = second.communicate()
    assert second.returncode == 0, said
    assert Counter(record.outcome for record in read(output)) == {"ok": 12}
    assert sorted(record.round for record in read(output)) == list(range(1, 13))
    assert output.read_text().count('"round"') == 13


def test_interrupting_leaves_a_file_that_can_be_resumed_and_no_worker(slow: str, tmp_path: Path) -> None:
    output = tmp_path / "seen.jsonl"
    sweeping = command(slow, output, rounds=100)
    wait_until(lambda: lines(output) >= 2)
    left = workers_of(sweeping)
    sweeping.send_signal(signal.SIGINT)
    _, said = sweeping.communicate(timeout=30)
    assert sweeping.returncode == 130
    assert (
        said.strip().splitlines()[-1]
        == f"exportlab: interrupted; run the same command to resume from the {len(read(output))} records in {output}"
    )
    assert {record.outcome for record in read(output)} == {"ok"}
    assert left
    assert not any(worker.is_running() and worker.status() != psutil.STATUS_ZOMBIE for worker in left)


@pytest.mark.parametrize("kind", ["dask", "processes"])
def test_another_executor_brings_the_same_records(kind: str, tmp_path: Path) -> None:
    tasks, path = grid([zoo.get(name) for name in SMALL], PLAIN), tmp_path / "there.jsonl"
    here = sweep(tasks, tmp_path / "here.jsonl")
    there = through_dask(tasks, path) if kind == "dask" else sweep(tasks, path, executor=ProcessPoolExecutor(1))
    assert compared(here) == compared(there)


def compared(records: list[Record]) -> dict[tuple[str, str, str], tuple[object, ...]]:
    """All but times, memory and environment."""
    return {r.key[:3]: (r.outcome, r.nodes, r.bytes, r.error, r.failed, r.worst, r.weights_bytes) for r in records}


def through_dask(tasks: list[Task], path: Path) -> list[Record]:
    from distributed import Client, LocalCluster

    with LocalCluster(n_workers=1, threads_per_worker=2, dashboard_address=None) as cluster, Client(cluster) as client:
        return sweep(tasks, path, executor=client.get_executor())


def test_a_record_holds_what_the_exporter_said(tmp_path: Path) -> None:
    (found,) = sweep(grid([zoo.get("branch_on_batch")], ("torchscript",), ("dynamic",)), tmp_path / "seen.jsonl")
    assert (found.outcome, found.warned, found.silent) == ("frozen", True, False)
    assert [line[:33] for line in found.said] == ["TracerWarning: Converting a tenso"]
    assert read(tmp_path / "seen.jsonl") == [found]
