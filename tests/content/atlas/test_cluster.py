"""The atlas on a cluster of Dask's: the command with `--scheduler` stores what it stores without."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from distributed import LocalCluster

from exportlab.sweep.records import Record, read

CASES = "transformers.bert,transformers.electra"
ASKED = ("--cases", CASES, "--exporters", "to_onnx", "--modes", "dynamic", "--timeout", "600")  # what is busy is not wrong


@pytest.fixture
def cluster() -> Iterator[LocalCluster]:
    """Two processes on this machine."""
    with LocalCluster(n_workers=2, threads_per_worker=1, processes=True, dashboard_address=None) as cluster:
        yield cluster


def test_the_table_is_the_same_on_a_cluster(cluster: LocalCluster, tmp_path: Path) -> None:
    here = swept(tmp_path / "here.jsonl", "--processes", "1")
    assert [outcome for outcome, *_ in here.values()] == ["ok", "ok"]
    assert "run_on_cluster" not in cluster.scheduler.task_prefixes
    assert swept(tmp_path / "there.jsonl", "--scheduler", cluster.scheduler_address) == here
    assert "run_on_cluster" in cluster.scheduler.task_prefixes, "its workers did the tasks"


def swept(path: Path, *more: str) -> dict[str, tuple[object, ...]]:
    """All but times and memory of what the command stored, by case."""
    command = [sys.executable, "-m", "exportlab.cli", "sweep", *ASKED, "--output", path, *more]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return {record.case: lasting(record) for record in sorted(read(path), key=lambda record: record.case)}


def lasting(record: Record) -> tuple[object, ...]:
    """What does not vary from run to run."""
    return record.outcome, record.error, record.failed, record.nodes, record.bytes, record.worst, record.said, record.environment
