"""The rules of the house that `make lint` does not check: sizes, first lines, the public names, the set-up's messages."""

from __future__ import annotations

import ast
import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

import exportlab

ROOT = Path(__file__).parent.parent
PACKAGES = (ROOT / "fx2onnx", ROOT / "exportlab")
FUNCTION = (ast.FunctionDef, ast.AsyncFunctionDef)


def modules() -> list[Path]:
    return sorted(path for package in PACKAGES for path in package.rglob("*.py"))


def test_functions_fit_a_screen_and_modules_need_no_map() -> None:
    for path in modules():
        text = path.read_text(encoding="utf-8")
        assert len(text.splitlines()) <= 400, path
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, FUNCTION):
                assert node.end_lineno - node.lineno < 60, f"{path.name}: {node.name}"


def test_first_line_says_what_is_here() -> None:
    for path in modules():
        assert ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))), path


def test_public_names_are_those_listed_and_each_is_used_on_a_page() -> None:
    assert sorted(exportlab.__all__) == [
        "Sample", "VerificationError", "case", "compare", "doctor", "expect_failure", "export", "quiet", "require", "show", "tensor",
        "to_onnx", "verify",
    ]  # fmt: skip
    folders = ("gallery", "tutorials", "benchmarks", "docs")
    pages = [p for folder in folders for p in (ROOT / folder).rglob("*") if p.suffix in (".py", ".md")]
    text = "\n".join(p.read_text(encoding="utf-8") for p in [*pages, ROOT / "CONTRIBUTING.md"])
    assert [name for name in exportlab.__all__ if not re.search(rf"\b{name}\b", text)] == []


def test_importing_the_package_changes_no_warning_filter() -> None:
    code = "import warnings, torch, onnxscript; a = list(warnings.filters); import exportlab; assert warnings.filters == a"
    subprocess.run([str(ROOT / ".venv/bin/python"), "-c", code], check=True)


def test_no_machine_and_no_registry_is_named() -> None:
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=True, text=True).stdout
    named = re.compile(r"/(root|home)/\w|(?<![\w.])/work/|pypi\.org|files\.pythonhosted")
    for name in filter(None, listed.split("\0")):
        path = ROOT / name
        if path.suffix in (".png", ".svg") or path == Path(__file__) or not path.is_file():
            continue
        found = named.search(path.read_text(encoding="utf-8"))
        assert not found, f"{name} names {found.group()!r}"


def set_up(folder: Path, path: str, python: str) -> subprocess.CompletedProcess[str]:
    shutil.copy(ROOT / "setup.sh", folder)
    environment = {"PATH": path, "PYTHON": python, "HOME": str(folder)}
    return subprocess.run(["/bin/sh", "setup.sh"], cwd=folder, env=environment, capture_output=True, text=True, check=False)


def fake(folder: Path, name: str, body: str) -> str:
    folder.mkdir(exist_ok=True)
    script = folder / name
    script.write_text(f"#!/bin/sh\n{body}\n")
    script.chmod(0o755)
    return str(script)


@pytest.mark.parametrize(
    ("python", "said"),
    [
        (None, "export lab: no python3.11 here: install Python 3.11"),
        ('if [ "$1" = -V ]; then echo Python 3.9.1; else exit 1; fi', "is Python 3.9.1: the pins are for Python 3.11"),
        ('case "$2" in *ensurepip*) exit 1;; esac', "has no venv module"),
        ("exit 0", "export lab: no C++ compiler: install g++ or clang"),
    ],
    ids=["no python", "another python", "no venv", "no compiler"],
)
def test_a_failed_set_up_says_in_one_line_what_to_do(tmp_path: Path, python: str | None, said: str) -> None:
    name = "python3.11" if python is None else fake(tmp_path / "bin", "python3.11", python)
    done = set_up(tmp_path, str(tmp_path / "bin"), name)
    assert done.returncode == 1
    assert said in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_a_failed_install_names_the_error_and_the_log(tmp_path: Path) -> None:
    fake(tmp_path / "bin", "c++", "exit 0")
    pip = 'mkdir -p .venv/bin; printf "#!/bin/sh\\necho ERROR: no such version; exit 1\\n" > .venv/bin/pip'
    python = fake(tmp_path / "bin", "python3.11", f'if [ "$1" = -m ]; then {pip}; chmod +x .venv/bin/pip; fi')
    done = set_up(tmp_path, f"{tmp_path}/bin:{os.defpath}", python)
    assert done.returncode == 1
    assert "export lab: installing failed: ERROR: no such version (the whole log is build/install.log)" in done.stderr
    assert not (tmp_path / ".venv" / ".ready").exists()
