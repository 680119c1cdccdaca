"""A preview executes nothing, has a notice on every page, and a line in the place of each part that is missing."""

from __future__ import annotations

import importlib.util
import os
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).parents[2]


def load(path: str) -> ModuleType:
    """The extension and the tool have one name."""
    spec = importlib.util.spec_from_file_location(Path(path).parent.name + "_preview", ROOT / path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


EXTENSION, TOOL = load("docs/_ext/preview.py"), load("tools/preview.py")


def test_no_extension_of_a_preview_runs_a_model() -> None:
    changed = EXTENSION.settings(["myst_nb", *EXTENSION.EXECUTING], {"parallel": 2}, {"logo": {}})
    assert changed["extensions"] == ["myst_nb", "preview"]
    assert changed["sphinx_gallery_conf"] == {"parallel": 2, "plot_gallery": False}
    assert changed["html_theme_options"]["announcement"].startswith("Preview: ")


def test_a_part_that_no_site_has_left_is_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(EXTENSION, "ROOT", tmp_path)
    (tmp_path / "generated/parts").mkdir(parents=True)
    (tmp_path / "generated/parts/there.html").touch()
    page = tmp_path / "page.md"
    page.write_text(":file: ../generated/parts/there.html\n:file: generated/parts/gone.html\n```{include} ../generated/parts/gone.md\n")
    assert EXTENSION.missing_parts(page) == [tmp_path / "generated/parts/gone.html", tmp_path / "generated/parts/gone.md"]


def test_only_what_changed_is_copied_and_what_is_gone_goes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(TOOL, "ROOT", tmp_path)
    monkeypatch.setattr(TOOL, "SOURCE", tmp_path / "build/source")
    (tmp_path / "docs").mkdir()
    old, new = tmp_path / "docs/old.md", tmp_path / "docs/new.md"
    old.write_text("1")
    TOOL.copy_changed([old])
    copy = tmp_path / "build/source/docs/old.md"
    os.utime(copy, ns=(10**18 * 3, 10**18 * 3))
    new.write_text("2")
    TOOL.copy_changed([old, new])
    assert copy.stat().st_mtime_ns == 10**18 * 3
    TOOL.copy_changed([new])
    assert [path.name for path in (tmp_path / "build/source").rglob("*.md")] == ["new.md"]
