"""Programs that pages need: what is said when they are not there, and which lessons are left out."""

from __future__ import annotations

from pathlib import Path

import lessons
import pytest

from exportlab import programs
from exportlab.programs import MissingProgram, missing, require


def with_programs(monkeypatch: pytest.MonkeyPatch, folder: Path, *names: str) -> None:
    for name in names:
        (folder / name).write_text("#!/bin/sh\n")
        (folder / name).chmod(0o755)
    monkeypatch.setenv("PATH", str(folder))


def test_what_is_there_is_no_matter(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    with_programs(monkeypatch, tmp_path, "cmake")
    require()
    require("cmake")
    assert missing("cmake", "node") == ["node"]


def test_what_is_missing_is_named_with_its_package(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    with_programs(monkeypatch, tmp_path, "cmake")
    with pytest.raises(MissingProgram, match=r"^not on the path: node, other\. On Debian or Ubuntu: apt install nodejs other$"):
        require("node", "cmake", "other")


def test_what_is_not_fetched_is_named_with_its_target(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(programs, "ROOT", tmp_path)
    with_programs(monkeypatch, tmp_path)
    with pytest.raises(MissingProgram, match=r"apt install chromium; not there: build/web\. In the repository: make web$"):
        require("chromium", "build/web")
    (tmp_path / "build/web").mkdir(parents=True)
    require("build/web")
    with pytest.raises(MissingProgram, match=r"^not there: build/onnxruntime/a\.h\. In the repository: make headers$"):
        require("build/web", "build/onnxruntime/a.h")
    with pytest.raises(MissingProgram, match=r"make headers web$"):
        require("build/onnxruntime/a.h", "build/onnxruntime/b.h", "build/other")


def test_a_lesson_is_left_out_with_the_reason(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "101_a.md").write_text("```\nx = 1\n```")
    (tmp_path / "304_b.md").write_text('```\nexportlab.require("cmake", "g++")\n```')
    (tmp_path / "306_c.md").write_text('```\nrequire("cmake")\n```\n')
    monkeypatch.setattr(lessons, "LESSONS", tmp_path)
    with_programs(monkeypatch, tmp_path, "cmake")
    assert [pair.name for pair in lessons.runnable()] == ["101_a.ipynb", "306_c.ipynb"]
    assert capsys.readouterr().err == "left out: 304_b: not on the path: g++. On Debian or Ubuntu: apt install g++\n"
