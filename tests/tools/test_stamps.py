"""The stamps of a stage: what has no stamp, or read something else, is stale, and the reason names it."""

from __future__ import annotations

from pathlib import Path

from stamps import Stamps


def test_what_passed_is_stale_again_when_what_it_read_changes(tmp_path: Path) -> None:
    first = Stamps(tmp_path, {"tests/a.py": ("1 a", "1 b"), "tests/b.py": ("1 b",)})
    assert first.stale() == ["tests/a.py", "tests/b.py"]
    assert first.reason() == "not run before"
    first.keep("tests/a.py")
    assert Stamps(tmp_path, first.now).stale() == ["tests/b.py"], "one that failed leaves the other's stamp"
    later = Stamps(tmp_path, {"tests/a.py": ("1 a", "2 b")})
    assert later.stale() == ["tests/a.py"]
    assert later.reason() == "b changed"


def test_the_reason_names_a_few_files_that_came_went_or_changed(tmp_path: Path) -> None:
    Stamps(tmp_path, {"x": ("1 a", "1 b", "1 same", "1 d")}).keep("x")
    assert Stamps(tmp_path, {"x": ("1 a", "2 b", "1 same", "1 new")}).reason() == "b, d, new changed"
    assert Stamps(tmp_path, {"x": ("2 a", "2 b", "1 same", "1 new", "1 e")}).reason() == "a, b, d and 2 more changed"


def test_a_file_that_is_read_in_two_ways_has_changed_when_one_has(tmp_path: Path) -> None:
    Stamps(tmp_path, {"x": ("code a", "text a")}).keep("x")
    assert Stamps(tmp_path, {"x": ("code a", "other a")}).reason() == "a changed"
