"""Which files count as a library's: site-packages, dist-packages, editable installs; on Windows too."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import torch

from fx2onnx import libraries
from fx2onnx.errors import shown_path
from fx2onnx.libraries import NUMPY, PACKAGE, TORCH, is_in, is_library_file


@pytest.fixture
def editable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """A project that is installed with `pip install --editable`, under a name."""

    def install(name: str) -> Path:
        project = tmp_path / name
        project.mkdir()
        text = json.dumps({"url": project.as_uri(), "dir_info": {"editable": True}})
        found = SimpleNamespace(name=name, read_text=lambda file: text)
        monkeypatch.setattr(libraries, "distributions", lambda: [found])
        libraries._library_folders.cache_clear()
        is_library_file.cache_clear()
        return project

    yield install
    monkeypatch.undo()
    libraries._library_folders.cache_clear()
    is_library_file.cache_clear()


@pytest.mark.parametrize(
    "path",
    [
        "/v/lib/python3.12/site-packages/timm/vit.py",
        "/usr/local/lib/python3.12/dist-packages/transformers/integrations/sdpa_attention.py",
        r"C:\Python312\Lib\site-packages\transformers\masking_utils.py",
        torch.__file__,
    ],
)
def test_a_file_of_an_installed_package_is_a_library_s(path: str) -> None:
    assert is_library_file(path)


@pytest.mark.parametrize("path", ["/models/site-packages-of-mine/model.py", r"C:\models\model.py", "<stdin>", __file__])
def test_a_file_elsewhere_is_the_user_s(path: str) -> None:
    assert not is_library_file(path)


def test_an_editable_install_is_a_library(editable: Any) -> None:
    project = editable("transformers")
    assert is_library_file(str(project / "src" / "transformers" / "masking_utils.py"))
    assert not is_library_file(str(project.parent / "mine.py"))


def test_a_project_one_works_in_is_not_a_library(editable: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    project = editable("mine")
    monkeypatch.chdir(project)
    assert not is_library_file(str(project / "model.py"))


def test_the_cases_of_this_project_are_not_a_library_s(editable: Any) -> None:
    assert not is_library_file(str(editable("exportlab") / "content" / "zoo.py"))


@pytest.mark.parametrize("folder", [TORCH, NUMPY, PACKAGE])
def test_a_folder_is_found_with_either_separator(folder: str) -> None:
    assert is_in(f"{folder}a/b.py", folder)
    assert is_in(f"{folder}a/b.py".replace("/", "\\"), folder)
    assert not is_in(f"{folder.rstrip('/')}_of_mine/b.py", folder)


@pytest.mark.parametrize("folder", ["/v/lib/dist-packages/", "/v/lib/site-packages/", "C:\\Lib\\site-packages\\"])
def test_a_path_is_shown_relative_to_its_package_folder(folder: str) -> None:
    assert shown_path(f"{folder}timm/vit.py") == "timm/vit.py"
