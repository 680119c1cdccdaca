"""Where signals, forks and POSIX modules are missing, as on Windows, commands work, and no check is skipped without a report of it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

HERE = Path(__file__).parent
MODEL = """
import torch
def branch(x):
    return x * 2 if x.sum() > 0 else x - 1
class Branch(torch.nn.Module):
    def forward(self, x):
        return branch(x)
def make():
    return Branch().eval(), [(torch.ones(3),)]
def never():
    while True:
        pass
"""
START = f"""
import sys
sys.path.insert(0, {str(HERE)!r})
from without_posix import take_posix_away
take_posix_away()
import signal, torch
"""


def run_without_posix(script: str, folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    """Run a script in a process that has no POSIX modules, signals and system calls."""
    (folder / "model.py").write_text(MODEL)
    (folder / "script.py").write_text(START + script)
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join([str(HERE.parents[1]), str(folder)]), "COLUMNS": "200"}
    command = [sys.executable, str(folder / "script.py"), *arguments]
    return subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=300)


def printed(script: str, folder: Path) -> list[str]:
    """Return the lines that a script prints."""
    ended = run_without_posix(script, folder)
    assert ended.returncode == 0, ended.stderr
    return ended.stdout.splitlines()


VERIFY = """
from exportlab.exporters import export
from exportlab.verification.verify import verify
from model import make
module, samples = make()
right = verify(export("to_onnx", module, samples[0]), module, samples)
print(right.outcome, sum(check.name == "other values" and check.outcome == "ok" for check in right.checks))
class Frozen(torch.nn.Module):
    def forward(self, x):
        return x * 2
wrong = verify(export("to_onnx", Frozen(), samples[0]), module, samples)
print(wrong.outcome, next(check.values for check in wrong.checks if check.outcome == "wrong"))
"""


def test_verify_runs_eager_on_other_values(tmp_path: Path) -> None:
    right, wrong = printed(VERIFY, tmp_path)
    outcome, count = right.split()
    assert outcome == "ok"
    assert int(count) > 5
    assert wrong == "wrong zeros"


FAILING = """
import exportlab.verification.checking as checking
from contextlib import contextmanager
def broken(seconds):
    raise AttributeError("module 'signal' has no attribute 'SIGALRM'")
checking.time_limit = broken
from exportlab.cli import main
sys.argv[0] = "exportlab"
main()
"""


def test_an_export_with_checks_that_cannot_run_is_not_ok(tmp_path: Path) -> None:
    ended = run_without_posix(FAILING, tmp_path, "export", "model.py:make", "--exporter", "to_onnx", "-o", "model.onnx")
    reason = "other values not checked: AttributeError: module 'signal' has no attribute 'SIGALRM'"
    assert ended.returncode == 1, ended.stdout + ended.stderr
    assert f"skipped: right where it was compared, but {reason}" in " ".join(ended.stdout.split())
    assert "eager refuses" not in ended.stdout
    assert f"the outcome is skipped ({reason}), so model.onnx was not written" in " ".join(ended.stderr.split())
    assert not (tmp_path / "model.onnx").exists()


MISSING = """
sys.modules["onnxruntime"] = None
from exportlab.exporters import export
from exportlab.verification.verify import verify
from model import make
module, samples = make()
exported = export("to_onnx", module, samples[0])
exported.save("model.onnx")
try:
    verify(exported, module, samples)
except ImportError as error:
    print(error)
from exportlab.cli import main
sys.argv[0] = "exportlab"
main()
"""


@pytest.mark.parametrize(
    "arguments", [("export", "model.py:make", "--exporter", "to_onnx", "-o", "other.onnx"), ("verify", "model.onnx", "model.py:make")]
)
def test_without_onnx_runtime_verify_raises_an_error_with_the_command_that_installs_it(tmp_path: Path, arguments: tuple[str, ...]) -> None:
    ended = run_without_posix(MISSING, tmp_path, *arguments)
    said = "ONNX Runtime is needed to verify an ONNX model, and it is not installed: pip install onnxruntime"
    assert said in ended.stdout
    assert said in " ".join(ended.stderr.split())
    assert ended.returncode == 2


JOURNAL = """
from exportlab.sweep.journal import Journal
from exportlab.sweep.records import RecordsError
environment = {"id": "ab12cd34"}
journal = Journal("seen.jsonl", environment)
try:
    Journal("seen.jsonl", environment)
except RecordsError as error:
    print(error)
journal.close()
Journal("seen.jsonl", environment).close()
print(open("seen.jsonl").read().count("ab12cd34"))
"""


def test_a_journal_is_locked(tmp_path: Path) -> None:
    said, count = printed(JOURNAL, tmp_path)
    assert said.startswith("seen.jsonl is being written by another sweep")
    assert count == "1"


DOCTOR = """
from exportlab.doctor import Options, doctor, examine_file, examined
examine_file.FACTORY = 0.05
if __name__ == "__main__":
    from model import make
    module, samples = make()
    threads = torch.get_num_threads()
    found = doctor(module, samples[0], exporters=("to_onnx",))
    print([(trial.exporter, str(trial.outcome)) for trial in found.facts.tried], torch.get_num_threads() == threads)
    found = examined("model.py:make", Options(300.0, 8.0, ("to_onnx",), None, False))
    print([(trial.exporter, str(trial.outcome)) for trial in found.facts.tried])
    found = examined("model.py:never", Options(60.0, 8.0, ("to_onnx",), None, False))
    print(found.facts.unusable.kind, found.facts.unusable.error)
"""


def test_the_doctor_runs_steps_in_one_process_and_files_in_a_new_one(tmp_path: Path) -> None:
    ended = run_without_posix(DOCTOR, tmp_path)
    assert ended.returncode == 0, ended.stderr
    assert ended.stdout.splitlines() == [
        "[('to_onnx', 'ok')] True",
        "[('to_onnx', 'ok')]",
        "timeout the function: TimeLimit: it took more than half of the time limit",
    ]
    assert ended.stderr.count("this platform cannot fork processes, so calls run in this process") == 1
