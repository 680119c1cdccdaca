"""The wheel: its metadata, its files, and the version that both packages read from it."""

from __future__ import annotations

import subprocess
import sys
from email.message import Message
from email.parser import Parser
from pathlib import Path
from zipfile import ZipFile

import get_it
import pytest
from site_files import ROOT

import exportlab
import fx2onnx

DATA = {".j2", ".html", ".css", ".js", ".txt", ".typed"}
WITHOUT_TYPER = "import sys; sys.modules['typer'] = None; from exportlab.cli import main; main()"


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return get_it.build_wheel(tmp_path_factory.mktemp("wheel"))


@pytest.fixture(scope="module")
def metadata(wheel: Path) -> Message:
    with ZipFile(wheel) as files:
        [name] = [name for name in files.namelist() if name.endswith(".dist-info/METADATA")]
        return Parser().parsestr(files.read(name).decode())


def test_the_metadata_has_the_readme_and_the_author(metadata: Message) -> None:
    assert metadata["Description-Content-Type"] == "text/markdown"
    assert str(metadata.get_payload()).strip() == (ROOT / "README.md").read_text(encoding="utf-8").strip()
    assert metadata["Author"] == "Export Lab"
    assert metadata["Keywords"]
    assert "Typing :: Typed" in metadata.get_all("Classifier", [])


def test_each_dependency_has_a_lower_bound_alone(metadata: Message) -> None:
    required = [line for line in metadata.get_all("Requires-Dist", []) if "extra ==" not in line]
    assert {line.partition(">=")[0] for line in required} == {"torch", "onnx", "onnx-ir", "numpy", "sympy"}
    assert not [line for line in required if "<" in line or "==" in line]


def test_the_wheel_has_each_file_of_the_packages(wheel: Path) -> None:
    files = {path.relative_to(ROOT).as_posix() for name in get_it.PACKAGES for path in (ROOT / name).rglob("*")}
    expected = {name for name in files if Path(name).suffix in DATA | {".py"} and "__pycache__" not in name}
    assert expected <= set(ZipFile(wheel).namelist())


def test_both_packages_have_the_version_of_the_wheel(metadata: Message) -> None:
    assert get_it.wheel_name() == f"exportlab-{metadata['Version']}-py3-none-any.whl"
    assert exportlab.__version__ == fx2onnx.__version__
    assert exportlab.__version__ in (metadata["Version"], "unknown")


def test_the_command_prints_the_version() -> None:
    done = subprocess.run([sys.executable, "-m", "exportlab", "--version"], capture_output=True, text=True, check=True, cwd=ROOT)
    assert done.stdout == f"exportlab {exportlab.__version__}\n"


def test_without_the_extra_the_command_prints_what_to_install() -> None:
    done = subprocess.run([sys.executable, "-c", WITHOUT_TYPER], capture_output=True, text=True, check=False, cwd=ROOT)
    assert (done.returncode, done.stderr) == (1, "exportlab: the package typer is not installed: pip install 'exportlab[lab]'\n")
