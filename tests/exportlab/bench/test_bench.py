"""`exportlab bench`: what it measures, what it does not rank, and what a hang, an interruption or an absent provider costs."""

from __future__ import annotations

import csv
import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from functools import partial
from pathlib import Path

import pyperf
import pytest
import torch
from torch import nn

from exportlab import bench
from exportlab.bench.compare import compared
from exportlab.bench.plan import Plan, measured
from exportlab.bench.result import CALL, EAGER, Bench, why
from exportlab.bench.run import Work, measure
from exportlab.cases import Case, case
from exportlab.cli.benching import Asked, _looked_at, bench_model, resolve_device, sizes_of
from exportlab.exporters.session import CPU, present, running_on, session_options
from exportlab.outcomes import Outcome
from exportlab.specs import tensor
from exportlab.sweep.records import Record, read
from exportlab.target import BadInput
from exportlab.userfile import named_case

MODELS = """
import time
import torch
from torch import nn
from exportlab import case, tensor

class ByBatch(nn.Module):
    def forward(self, x):
        return x * 2 if x.shape[0] > 4 else x * 3

@case(dims={"batch": (6, 3)})
def by_batch():
    return ByBatch(), (tensor("batch", 3),)

class Hangs(nn.Module):
    def forward(self, x):
        if torch.compiler.is_exporting():
            time.sleep(1000)
        return x.sin()

@case(dims={"batch": (4, 3)})
def hangs():
    return Hangs(), (tensor("batch", 8),)

def plain():
    return nn.Linear(3, 2), (torch.ones(4, 3),)
"""
DEVICE = """
import os
BORN = os.getpid()

def use():
    if os.getpid() != BORN:
        raise RuntimeError("Cannot re-initialize CUDA in forked subprocess")
"""
ON_DEVICE = """
import torch
from sitecustomize import use
from torch import nn

def mlp():
    use()
    return nn.Linear(3, 2), (torch.ones(4, 3),)
"""


def record(way: str, outcome: Outcome, call: float, turn: int = 1, size: str = "batch 8") -> Record:
    seconds = {"export": 1.0, "load": 0.1, "first": 0.01, CALL + size: call, EAGER + size: 1.0}
    return Record("model", way, "dynamic", outcome, turn, seconds=seconds, bytes=10, nodes=3)


def rounds(way: str, outcome: Outcome, call: float) -> list[Record]:
    return [record(way, outcome, call * (1 + turn / 1000), turn) for turn in range(1, 7)]


def models(folder: Path) -> Path:
    file = folder / "models.py"
    file.write_text(MODELS)
    return file


def called(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "exportlab.cli", "bench", *arguments]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, check=False, timeout=300)


def test_a_wrong_file_is_never_called_fast() -> None:
    found = Bench([*rounds("eager", Outcome.OK, 1.0), *rounds("dynamo", Outcome.FROZEN, 0.1), *rounds("to_onnx", Outcome.OK, 0.5)])
    assert found.findings()[0].startswith("torch.onnx.export: frozen")
    assert found.findings()[1].startswith("At batch 8, to_onnx is fastest: 0.50x")
    printed = str(found)
    assert "frozen: 101 ms" in printed.replace("frozen: 100 ms", "frozen: 101 ms")
    assert "not ranked" in printed
    assert "dynamo" not in printed
    assert [row["export"] for row in found._table().rows] == ["", "1 s", "1 s, no difference seen (1.00–1.00)"]  # none to itself


def test_no_difference_is_said_where_the_interval_holds_1() -> None:
    noisy = [record("to_onnx", Outcome.OK, seconds, turn) for turn, seconds in enumerate((0.9, 1.1, 0.95, 1.05), 1)]
    found = Bench([*[record("eager", Outcome.OK, 1.0, turn) for turn in range(1, 5)], *noisy])
    assert "no difference seen" in str(found)
    assert found.findings() == ["At batch 8, no significant difference between the fastest: eager and to_onnx"]


@pytest.mark.parametrize(("kept", "said"), [(1, "0.50x, one round"), (2, "0.50x, two rounds"), (3, "0.50x (0.50–0.50)")])
def test_so_few_rounds_have_no_interval(kept: int, said: str) -> None:
    found = Bench([*rounds("eager", Outcome.OK, 1.0)[:kept], *rounds("to_onnx", Outcome.OK, 0.5)[:kept]])
    assert found.calls()[1].cells["of eager (interval)"] == said
    assert f"medians, {kept} round{'s' * (kept > 1)}, warm-ups" in found.title()


def test_what_a_record_says_is_cut_between_words() -> None:
    record = replace(rounds("dynamo", Outcome.RUN, 1.0)[0], error="word " * 90)
    assert why(record).endswith("word …")
    assert len(why(record)) <= 200


def test_who_is_fastest_agrees_with_the_interval_of_the_table() -> None:
    unlike = [record("eager", Outcome.OK, 0.9 + turn, turn) for turn in (1, 2)]
    noisy = [record("to_onnx", Outcome.OK, seconds, turn) for turn, seconds in enumerate((0.4, 0.8), 1)]
    found = Bench([*unlike, *noisy])
    assert not found.ways()["to_onnx"].ratio("batch 8").differs
    assert found.findings() == ["At batch 8, no significant difference between the fastest: to_onnx and eager"]


def test_samples_stand_at_the_sizes_that_are_asked_for() -> None:
    made = case(dims={"batch": (2, 0), "seq": (5,)})(lambda: (nn.Identity(), (tensor("batch", "seq"),)))
    found = measured(made, Plan({"batch": (1, 8), "seq": (3,)}))
    shapes = {name: tuple(sample.args[0].shape) for name, sample in found.timed.items()}
    assert shapes == {
        "batch 1, seq 3": (1, 3),
        "batch 8, seq 3": (8, 3),
    }
    assert [tuple(sample.args[0].shape) for sample in found.samples] == [(2, 5), (0, 5), (1, 3), (8, 3)]
    assert list(measured(made, Plan()).timed) == ["batch 2, seq 5"]
    with pytest.raises(BadInput, match="no dimension 'rows': it names batch, seq"):
        measured(made, Plan({"rows": (1,)}))


def test_a_batch_without_a_name_is_the_first_axis() -> None:
    plain = Case("plain", lambda: (nn.Bilinear(3, 4, 2), (torch.ones(4, 3), torch.ones(4, 4))))
    found = measured(plain, Plan({"batch": (1,)}))
    assert [tuple(arg.shape) for arg in found.timed["batch 1"].args] == [(1, 3), (1, 4)]
    assert found.dynamic_shapes == ({0: "batch"}, {0: "batch"})
    for sizes in ({"seq": (1,)}, {"batch": (1,), "seq": (1,)}):
        with pytest.raises(BadInput, match=r"which dimension 'seq' is: there is only one sample, .*; return \[sample, sample\]"):
            measured(plain, Plan(sizes))
    two = Case("two", lambda: (nn.Linear(3, 2), [(torch.ones(4, 3),), (torch.ones(2, 3),)]))
    with pytest.raises(BadInput, match=r"cannot tell .*: only batch differs between the samples"):
        measured(two, Plan({"seq": (1,)}))


def test_a_module_at_hand_is_measured_and_leaves_a_folder(tmp_path: Path) -> None:
    told: list[str] = []
    asked = {"exporters": ("to_onnx",), "rounds": 2, "sizes": {"batch": (1, 3)}, "output": tmp_path / "out"}
    found = bench(nn.Linear(3, 2).eval(), torch.ones(4, 3), tell=told.append, **asked)  # type: ignore[arg-type]
    assert list(found.ways()) == ["eager", "to_onnx"]
    assert all(way.outcome == "ok" and way.sizes() == ["batch 1", "batch 3"] for way in found.ways().values())
    assert told[0] == "round 1 of 2: to_onnx, at most 2 min; with the 1 after it, 4 min"
    files = {path.name for path in (tmp_path / "out").iterdir()}
    assert files >= {"records.jsonl", "times.csv", "pyperf.json", "report.html", "calls.png", "calls.svg", "exports.svg", "batches.png"}
    with (tmp_path / "out" / "times.csv").open() as file:
        lines = list(csv.DictReader(file))
    assert len(lines) == 8
    names = pyperf.BenchmarkSuite.load(str(tmp_path / "out" / "pyperf.json")).get_benchmark_names()
    assert "to_onnx, call, batch 3" in names
    page = (tmp_path / "out" / "report.html").read_text()
    assert "http" not in page.replace("http://www.w3.org", "").replace("http://purl.org", "").replace("https://matplotlib.org", "").replace(
        "http://creativecommons.org", ""
    )
    told.clear()
    assert bench(nn.Linear(3, 2).eval(), torch.ones(4, 3), tell=told.append, **asked).records == found.records  # type: ignore[arg-type]
    assert told == []


def test_without_a_sample_there_is_nothing_to_export_with() -> None:
    with pytest.raises(TypeError, match="bench needs a sample"):
        bench(nn.Linear(3, 2))


def test_a_folder_of_other_settings_is_refused(tmp_path: Path) -> None:
    (tmp_path / "plan.json").write_text(json.dumps({**Work("model", ("eager",)).settings(), "threads": 4}))
    with pytest.raises(BadInput, match=r"created with other settings \(threads\)"):
        measure(Work("model", ("eager",)), tmp_path, print)


def test_a_hang_costs_its_limit_once_and_the_others_are_measured(tmp_path: Path) -> None:
    done = called(
        tmp_path, f"{models(tmp_path)}:hangs", "--exporters", "torch.onnx.export,torchscript", "--timeout", "8", "--rounds", "3"
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    outcomes = [(r.exporter, r.round, str(r.outcome)) for r in read(tmp_path / "bench-hangs" / "records.jsonl")]
    assert outcomes.count(("dynamo", 1, "timeout")) == 1
    assert sum(name == "dynamo" for name, _, _ in outcomes) == 1
    assert sum(name == "torchscript" for name, _, _ in outcomes) == 3
    assert "torch.onnx.export: timeout, TimeLimit: not done after 8 s" in done.stdout


def interruptible() -> None:
    """A shell starts what runs in its background with SIGINT ignored, and a child inherits that."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def test_interrupted_it_keeps_what_was_measured_and_goes_on(tmp_path: Path) -> None:
    arguments = [f"{models(tmp_path)}:plain", "--exporters", "to_onnx", "--rounds", "30", "--batches", "1"]
    command = [sys.executable, "-m", "exportlab.cli", "bench", *arguments]
    running = subprocess.Popen(command, cwd=tmp_path, stderr=subprocess.PIPE, text=True, preexec_fn=interruptible)
    records = tmp_path / "bench-plain" / "records.jsonl"
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline and (not records.exists() or len(records.read_text().splitlines()) < 4):
        time.sleep(0.1)
    os.kill(running.pid, signal.SIGINT)
    _, said = running.communicate(timeout=60)
    assert running.returncode == 130, said
    kept = read(records)
    assert f"resume from the {len(kept)} records" in said
    assert "interrupted" in (tmp_path / "bench-plain" / "report.html").read_text()
    done = called(tmp_path, *[a if a != "30" else "2" for a in arguments])
    assert done.returncode == 0, done.stderr
    assert [r for r in read(records) if r.round == 1] == [r for r in kept if r.round == 1]


def test_an_absent_provider_is_said_in_one_line_and_a_present_one_is_not() -> None:
    providers, line = present(["CUDAExecutionProvider"])
    assert providers == (CPU,)
    assert line.startswith("CUDAExecutionProvider is not in this ONNX Runtime, which has ")
    assert line.endswith(f"{CPU} was used instead")
    assert present([CPU]) == ((CPU,), "")
    assert resolve_device("cpu") == ("cpu", "")
    if not torch.cuda.is_available():
        assert resolve_device("cuda") == ("cpu", "the device cuda is not available: cpu was used instead")


def test_what_bench_needs_is_missed_before_anything_is_measured(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "pyperf", None)
    with pytest.raises(BadInput, match="bench needs pyperf, which is not installed: pip install pyperf"):
        bench_model(f"{models(tmp_path)}:plain", tmp_path / "out", Asked((), (), {}, 1, 1, 60.0, 2**33, (), "cpu"))


@pytest.fixture
def on_a_device(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A model that uses a device which every process opens when it starts, and which does not work in a fork of one that has opened it."""
    (tmp_path / "sitecustomize.py").write_text(DEVICE)
    (tmp_path / "models.py").write_text(ON_DEVICE)
    monkeypatch.setenv("PYTHONPATH", os.pathsep.join([str(tmp_path), *filter(None, [os.environ.get("PYTHONPATH")])]))
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "sitecustomize", raising=False)
    return tmp_path / "models.py"


def test_what_is_measured_on_a_gpu_runs_in_no_fork(on_a_device: Path, tmp_path: Path) -> None:
    work = Work("mlp", ("to_onnx",), 1, Plan(device="cuda"), str(on_a_device))
    (found,) = measure(work, tmp_path / "bench", print)
    assert found.outcome is Outcome.OK, found.error
    assert found.exporter == "to_onnx"


def test_a_model_on_a_gpu_is_looked_at_in_no_fork(on_a_device: Path) -> None:
    look = partial(_looked_at, named_case(str(on_a_device), "mlp"), on_a_device)
    asked = Asked((), (), {}, 1, 1, 60.0, 2**33, (), "cuda")
    assert look(Plan(device="cuda"), asked) == look(Plan(providers=("CUDAExecutionProvider",)), asked) == []
    with pytest.raises(BadInput, match="Cannot re-initialize CUDA"):
        look(Plan(), asked)


def test_a_model_at_hand_that_is_on_a_gpu_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_initialized", lambda: True)
    with pytest.raises(BadInput, match=r"this process uses CUDA.*exportlab bench FILE.py:NAME"):
        bench(nn.Linear(3, 2), torch.ones(4, 3), providers=["CUDAExecutionProvider"])


def test_sessions_of_a_block_take_its_threads() -> None:
    from exportlab.exporters import export

    with running_on((CPU,), 1):
        artifact = export("to_onnx", nn.Linear(3, 2).eval(), (torch.ones(4, 3),))
        assert artifact.session.get_session_options().intra_op_num_threads == 1  # type: ignore[attr-defined]
    assert session_options().intra_op_num_threads == 0


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--batches", "0"], "give integers of at least 1"),
        (["--sizes", "seq=-1"], "give integers of at least 0"),
        (["--sizes", "seq"], "--sizes seq is not NAME=SIZES"),
        (["--exporters", "nobody"], "no exporter 'nobody'"),
        (["--runtimes", "nothing"], "no runtime 'nothing'"),
        (["--device", "nowhere"], "unknown device 'nowhere'"),
        (["--sizes", "seq=4"], "cannot tell which dimension 'seq' is"),
    ],
)
def test_what_cannot_be_used_is_one_line(tmp_path: Path, arguments: list[str], said: str) -> None:
    done = called(tmp_path, f"{models(tmp_path)}:plain", *arguments)
    assert done.returncode == 2
    assert said in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1


def test_sizes_are_read() -> None:
    assert sizes_of("1,8", ["seq=16, 128", "past=0,5"]) == {"batch": (1, 8), "seq": (16, 128), "past": (0, 5)}


def test_compared_calls_only_what_is_apart_different() -> None:
    before = [*rounds("eager", Outcome.OK, 1.0), *rounds("to_onnx", Outcome.OK, 0.5), *rounds("dynamo", Outcome.WRONG, 0.1)]
    after = [*rounds("eager", Outcome.OK, 1.0), *rounds("to_onnx", Outcome.OK, 0.6), *rounds("dynamo", Outcome.WRONG, 0.9)]
    assert compared(before, before).different() == []
    (only,) = compared(before, after).different()
    assert (only.exporter, only.figure, only.verdict) == ("to_onnx", "call, batch 8", "slower")
    few = [record for record in after if record.round < 3]
    assert compared(before[:2] + before[6:8], few).different() == []


def test_two_folders_are_compared_at_the_command_line(tmp_path: Path) -> None:
    bench(nn.Linear(3, 2).eval(), torch.ones(4, 3), exporters=("to_onnx",), rounds=1, output=tmp_path / "a")
    same = called(tmp_path, "compare", "a", "a")
    assert same.returncode == 0, same.stderr
    assert "0 of " in same.stdout
    assert called(tmp_path, "compare", "a").stderr.startswith("exportlab: bench compare needs two folders, not 1")
    assert called(tmp_path, "models.py:plain", "a").returncode == 2


def test_what_differs_only_where_a_mask_hides_everything_is_ranked_and_says_so() -> None:
    def seen(values: str, *said: str) -> Record:
        failed = ({"check": "other values", "inputs": f"{values}: i64[2, 5]", "outcome": "wrong", "worst": 1.0, "detail": "nan"},)
        seconds = {f"{CALL}batch 1": 1.0, f"{EAGER}batch 1": 2.0}
        return Record("m", "dynamo", "dynamic", Outcome.WRONG, failed=failed, seconds=seconds, said=said)

    warning = "[W:onnxruntime:, execution_frame.cc:921 VerifyOutputSizes] Expected shape from model of {-1,12} does not match {1,7}"
    hidden, warned, wrong = (Bench([seen(*one)]) for one in (("masks all false",), ("masks all false", warning), ("integers doubled",)))
    for found in (hidden, warned):
        assert found.ways()["dynamo"].ranked
        assert found.findings()[0].startswith("torch.onnx.export: right except where a mask hides everything, ")
    assert not wrong.ways()["dynamo"].ranked
    assert wrong.findings()[0].startswith("torch.onnx.export: wrong, ")


def test_a_finding_quotes_the_check_that_its_outcome_is_of() -> None:
    refused = {"check": "unseen size", "inputs": "i64[1, 7]", "outcome": "narrow", "worst": None, "detail": "Fail: a Reshape"}
    other = {"check": "other values", "inputs": "integers zero: i64[2]", "outcome": "wrong", "worst": 1.0, "detail": "1 where eager has 2"}
    found = Bench([Record("m", "torchscript", "dynamic", Outcome.WRONG, failed=(refused, other), seconds={f"{CALL}batch 1": 1.0})])
    assert found.findings()[0] == "torchscript: wrong, integers zero: i64[2]: 1 where eager has 2"
