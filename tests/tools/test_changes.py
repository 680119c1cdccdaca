"""A digest of the repository changes with whatever is edited, and with nothing that is built."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import changes
import pytest


def test_the_files_of_the_repository_are_those_that_nothing_writes() -> None:
    names = {path.relative_to(changes.ROOT).as_posix() for path in changes.repository_files()}
    assert {"docs/data/matrix.jsonl", "conf.py", "exportlab/__init__.py", ".ci/run", "index.md", "tests/tiers.toml"} <= names
    assert not any(name.startswith(("build/", "generated/", ".venv/", ".git/")) or name == "sg_execution_times.rst" for name in names)


def rename(path: Path) -> None:
    path.rename(path.with_name("b"))


def edit(path: Path) -> None:
    path.write_text("2", encoding="utf-8")


@pytest.mark.parametrize("change", [edit, rename, Path.unlink])
def test_a_digest_changes_with_the_bytes_and_the_names_of_files(tmp_path: Path, change: Callable[[Path], None]) -> None:
    file = tmp_path / "a"
    file.write_text("1", encoding="utf-8")
    before = changes.digest(changes.repository_files(tmp_path))
    change(file)
    assert changes.digest(changes.repository_files(tmp_path)) != before


def test_a_note_holds_one_state(tmp_path: Path) -> None:
    note = tmp_path / "passed/tier-0"
    assert not changes.is_noted(note, "1")
    changes.write_note(note, "1")
    assert changes.is_noted(note, "1")
    assert not changes.is_noted(note, "2")
    assert [path.name for path in note.parent.iterdir()] == ["tier-0"]
