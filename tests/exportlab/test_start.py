"""What is imported when: a help text, and the answer that there is no such file, need no torch."""

from __future__ import annotations

import subprocess
import sys

import pytest

import exportlab

SLOW = ("torch", "onnx", "numpy", "matplotlib", "rich.console")
STARTED = f"""
import sys
from exportlab.cli import main
sys.argv = ["exportlab", *sys.argv[1:]]
try:
    main()
except SystemExit as ended:
    print("ended with", ended.code)
print("imported", [name for name in {SLOW!r} if name in sys.modules])
"""


@pytest.mark.parametrize(
    ("arguments", "code"),
    [
        (["export", "nosuchfile.py:x", "-o", "x.onnx"], 2),
        (["verify", "nosuchfile.onnx", "mine.py:x"], 2),
        (["profile", "nosuchfile.onnx"], 2),
        (["doctor", "nosuchfile.py:x"], 2),
        (["doctor", "nosuchfile.py"], 2),
        (["sweep", "--cases", "nosuchfile.py", "-o", "x.jsonl"], 2),
        (["compare", "nosuchfile.jsonl", "nosuchfile.jsonl"], 2),
        *(([command, "--help"], 0) for command in ("export", "verify", "doctor", "sweep", "compare", "profile")),
        (["--help"], 0),
    ],
)
def test_what_needs_no_torch_does_not_import_it(arguments: list[str], code: int) -> None:
    done = subprocess.run([sys.executable, "-c", STARTED, *arguments], capture_output=True, text=True, check=True)
    assert f"ended with {code}" in done.stdout
    found = [name for name in SLOW if name != "rich.console" or code]
    assert not [name for name in found if f"'{name}'" in done.stdout.rpartition("imported")[2]]


@pytest.mark.parametrize("command", ["export", "verify", "doctor"])
def test_every_help_names_the_grammar(command: str) -> None:
    done = subprocess.run([sys.executable, "-m", "exportlab.cli", command, "--help"], capture_output=True, text=True, check=True)
    said = " ".join(done.stdout.replace("│", " ").split())
    assert "(module, args), (module, args, kwargs) or (module, [sample, sample, …]); or a @case" in said


def test_every_public_name_is_imported_when_it_is_asked_for() -> None:
    assert {name: getattr(exportlab, name).__name__.rpartition(".")[2] for name in exportlab.__all__} == {n: n for n in exportlab.__all__}
    assert set(exportlab.__all__) <= set(dir(exportlab))
    with pytest.raises(AttributeError, match="module 'exportlab' has no attribute 'nothing'"):
        exportlab.nothing  # noqa: B018


def test_the_doctor_is_the_function_whatever_was_imported_before() -> None:
    for imported in ("import exportlab.doctor.run", "from exportlab.doctor import Options", "import exportlab"):
        code = f"{imported}\nimport exportlab\nfrom exportlab import doctor\nassert callable(doctor) and exportlab.doctor is doctor"
        assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0, imported
