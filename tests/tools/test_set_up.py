"""The set-up takes the newest Python that runs, keeps an environment that works, and says in one line what is missing."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
USED = ("sh", "grep", "head", "tail", "rm", "mkdir", "touch", "chmod")
VERSIONS = ("3.11", "3.12", "3.13")
SHIM = 'echo "pyenv: command not found" >&2; exit 127'


@pytest.fixture
def lab(tmp_path: Path) -> Path:
    """A folder with the two scripts, and a folder `bin` in which nothing is found but the programs that they use."""
    (tmp_path / "tools").mkdir()
    shutil.copy(ROOT / "setup.sh", tmp_path)
    shutil.copy(ROOT / "tools/find_python.sh", tmp_path / "tools")
    (tmp_path / "bin").mkdir()
    for program in USED:
        (tmp_path / "bin" / program).symlink_to(shutil.which(program, path=os.defpath))
    return tmp_path


def run(lab: Path, script: str, python: str = "") -> subprocess.CompletedProcess[str]:
    environment = {"PATH": str(lab / "bin"), "PYTHON": python, "HOME": str(lab)}
    return subprocess.run(["/bin/sh", script], cwd=lab, env=environment, capture_output=True, text=True, check=False)


def script(path: Path, body: str) -> str:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"#!/bin/sh\n{body}\n")
    path.chmod(0o755)
    return str(path)


def python(path: Path, version: str, venv: str = "", *, has_venv: bool = True) -> str:
    """Write what answers the scripts as that Python does, and makes an environment by the commands `venv`."""
    answers = {"-V": f"echo Python {version}.1", "*ensurepip*": f"exit {int(not has_venv)}", "*print*": f"echo {version}"}
    answers |= {"*sys.exit*": f"exit {int(version not in VERSIONS)}", "*venv*": venv or "exit 1"}
    return script(path, 'case "$*" in\n' + "\n".join(f"{asked}) {answer};;" for asked, answer in answers.items()) + "\nesac")


@pytest.mark.parametrize("there", [("3.13", "3.11", "3.12"), ("3.11", "3.12"), ("3.11",), ("3.14", "3.11"), ("3.9", "3.12")])
def test_the_newest_that_fits_is_found(lab: Path, there: tuple[str, ...]) -> None:
    for version in there:
        python(lab / "bin" / f"python{version}", version)
    newest = max(set(there) & set(VERSIONS))
    assert run(lab, "tools/find_python.sh").stdout == f"python{newest}\n"


def test_one_without_a_number_in_its_name_is_found(lab: Path) -> None:
    python(lab / "bin/python3", "3.12")
    assert run(lab, "tools/find_python.sh").stdout == "python3\n"


def test_a_shim_with_nothing_behind_it_is_passed_over(lab: Path) -> None:
    script(lab / "bin/python3.13", SHIM)
    python(lab / "bin/python3.12", "3.12", has_venv=False)
    python(lab / "bin/python3.11", "3.11")
    assert run(lab, "tools/find_python.sh").stdout == "python3.11\n"


def test_what_is_behind_a_shim_is_found(lab: Path) -> None:
    script(lab / "bin/python3.13", SHIM)
    python(lab / "bin/python3.11", "3.11")
    hidden = python(lab / ".pyenv/versions/3.13.2/bin/python3.13", "3.13")
    assert run(lab, "tools/find_python.sh").stdout == f"{hidden}\n"


def test_one_that_is_named_is_taken(lab: Path) -> None:
    python(lab / "bin/python3.13", "3.13")
    named = python(lab / "elsewhere/python", "3.11")
    assert run(lab, "tools/find_python.sh", named).stdout == f"{named}\n"


@pytest.mark.parametrize(
    ("named", "body", "said"),
    [
        ("", None, "export lab: no Python 3.13, 3.12 or 3.11 that runs here: install one, or name one by make PYTHON="),
        ("", SHIM, "export lab: no Python 3.13, 3.12 or 3.11 that runs here"),
        ("", "3.14", "export lab: no Python 3.13, 3.12 or 3.11 that runs here"),
        ("python3.11", None, "export lab: no python3.11 here: install Python 3.11, 3.12 or 3.13"),
        ("python3.11", SHIM, "export lab: python3.11 does not run: pyenv: command not found; name one by make PYTHON="),
        ("python3.9", "3.9", "export lab: python3.9 is Python 3.9.1: the pins are for Python 3.11, 3.12 and 3.13"),
        ("", "no venv", "export lab: python3.11 has no venv module"),
        ("python3.11", "no venv", "export lab: python3.11 has no venv module"),
        ("", "3.11", "export lab: no C++ compiler: install g++ or clang"),
    ],
)
def test_a_failed_set_up_says_in_one_line_what_to_do(lab: Path, named: str, body: str | None, said: str) -> None:
    path = lab / "bin" / (named or "python3.11")
    if body == SHIM:
        script(path, SHIM)
    elif body:
        python(path, body if "." in body else "3.11", has_venv=body != "no venv")
    done = run(lab, "setup.sh", named)
    assert done.returncode == 1
    assert said in done.stderr
    assert len(done.stderr.splitlines()) == 1


def compiling(lab: Path) -> None:
    script(lab / "bin/c++", "exit 0")


def with_pip(version: str, does: str) -> str:
    """The commands that make an environment whose pip does something."""
    return f'mkdir -p .venv/bin; printf "#!/bin/sh\\n{does}\\n" > .venv/bin/pip; chmod +x .venv/bin/pip; echo made by {version}'


def test_a_failed_install_names_the_error_and_the_log(lab: Path) -> None:
    compiling(lab)
    python(lab / "bin/python3.12", "3.12", with_pip("3.12", "echo ERROR: no such version; exit 1"))
    done = run(lab, "setup.sh")
    assert done.returncode == 1
    assert "export lab: installing failed: ERROR: no such version (the whole log is build/install.log)" in done.stderr
    assert not (lab / ".venv/.ready").exists()


def test_an_environment_that_works_is_kept_where_a_newer_python_has_come(lab: Path) -> None:
    compiling(lab)
    python(lab / "bin/python3.13", "3.13", with_pip("3.13", "exit 0"))
    python(lab / ".venv/bin/python", "3.11")
    script(lab / ".venv/bin/pip", "exit 0")
    done = run(lab, "setup.sh")
    assert "made by" not in done.stdout
    assert "Python 3.11 " in done.stdout
    assert (lab / ".venv/.ready").exists()


@pytest.mark.parametrize("broken", [SHIM, "3.9"])
def test_an_environment_that_does_not_run_or_fit_is_made_again(lab: Path, broken: str) -> None:
    compiling(lab)
    python(lab / "bin/python3.13", "3.13", with_pip("3.13", "exit 0"))
    script(lab / ".venv/bin/python", SHIM) if broken == SHIM else python(lab / ".venv/bin/python", broken)
    done = run(lab, "setup.sh")
    assert "made by 3.13" in done.stdout
    assert (lab / ".venv/.ready").exists()


def test_an_environment_of_another_python_than_the_one_named_is_not_touched(lab: Path) -> None:
    compiling(lab)
    python(lab / ".venv/bin/python", "3.11")
    (lab / ".venv/.ready").touch()
    done = run(lab, "setup.sh", python(lab / "bin/python3.13", "3.13"))
    assert done.returncode == 1
    assert "export lab: .venv is of Python 3.11, and " in done.stderr
    assert "is 3.13: remove it first (rm -r .venv)" in done.stderr
    assert (lab / ".venv/.ready").exists()


def test_every_file_means_the_same_versions() -> None:
    texts = {name: (ROOT / name).read_text(encoding="utf-8") for name in ("README.md", "CONTRIBUTING.md", "tools/find_python.sh")}
    assert [name for name, text in texts.items() if "3.11, 3.12 or 3.13" not in text] == []
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    classified = [re.fullmatch(r"Programming Language :: Python :: (3\.\d+)", text) for text in project["project"]["classifiers"]]
    assert [found[1] for found in classified if found] == [*VERSIONS]
    assert project["project"]["requires-python"] == f">={VERSIONS[0]}"
    assert project["tool"]["ruff"]["target-version"] == f"py{VERSIONS[0].replace('.', '')}"
    assert project["tool"]["mypy"]["python_version"] == VERSIONS[0]
    tried = re.findall(r"^ +(3\.\d+)$", (ROOT / ".github/workflows/tests.yml").read_text(encoding="utf-8"), re.MULTILINE)
    assert tried == [VERSIONS[0], VERSIONS[-1]]
