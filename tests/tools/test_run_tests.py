"""A tier runs until it passes, and again when something has changed; every test and every lesson is in a tier."""

from __future__ import annotations

from pathlib import Path

import pytest
import run_tests
import turns
from tiers import PARTS, TESTS, TIERS, runs_in, tier_of


@pytest.fixture
def runs(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[list[str]]:
    """The calls of pytest, none of which is made; the checkout is one file."""
    calls: list[list[str]] = []
    (tmp_path / "file").write_text("1", encoding="utf-8")
    monkeypatch.setattr(run_tests, "NOTES", tmp_path / "passed")
    monkeypatch.setattr(run_tests, "repository_files", lambda: [tmp_path / "file"])
    monkeypatch.setattr(run_tests, "run_pytest", lambda arguments: calls.append(arguments) or 0)
    return calls


def test_a_tier_that_passed_runs_again_once_a_file_has_changed(runs: list[list[str]], tmp_path: Path) -> None:
    assert run_tests.run(0, "2") == 0
    assert run_tests.run(0, "2") == 0
    assert len(runs) == 2, "the tests and the lessons, once"
    (tmp_path / "file").write_text("2", encoding="utf-8")
    assert run_tests.run(0, "2") == 0
    assert len(runs) == 4


def test_a_tier_that_failed_runs_again(runs: list[list[str]], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run_tests, "run_pytest", lambda arguments: runs.append(arguments) or 1)
    assert [run_tests.run(0, "2"), run_tests.run(0, "2")] == [1, 1]
    assert len(runs) == 2, "the lessons do not run after tests that fail"


def test_tier_2_runs_the_benchmarks(runs: list[list[str]], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run_tests, "run_benchmarks", lambda: 3)
    assert [run_tests.run(tier, "2") for tier in (1, 2)] == [0, 3]


def test_four_commits_run_every_lesson(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(turns, "edited_files", set)
    chosen = []
    for number in range(run_tests.PARTS):
        monkeypatch.setattr(turns, "count_commits", lambda number=number: number)
        chosen += run_tests.lessons_of(1)
    assert sorted(chosen) == run_tests.lessons_of(2)


def test_a_file_runs_out_of_turn_when_a_source_of_it_was_edited(monkeypatch: pytest.MonkeyPatch) -> None:
    files = [Path(f"{letter}.py") for letter in "abcd"]
    monkeypatch.setattr(turns, "count_commits", lambda: 6)
    monkeypatch.setattr(turns, "edited_files", lambda: {Path("source/b.py"), Path("source/x.py")})
    assert turns.select_in_turn(files, 4, lambda file: [Path("source") / file]) == [Path("b.py"), Path("c.py")]


def test_of_files_in_parts_tier_1_runs_one_part_and_tier_2_all(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(turns, "count_commits", lambda: 0)
    monkeypatch.setattr(turns, "edited_files", lambda: {turns.ROOT / "fx2onnx/ops/windows.py"})
    files = sorted((TESTS / "fx2onnx/ops").glob("test_*.py"))
    run = {tier: [file for file in files if runs_in(file, tier)] for tier in (0, 1, 2)}
    assert sorted(run[0] + run[2]) == files
    part = {file for number, file in enumerate(files) if number % 4 == 0 or file.stem == "test_windows"}
    assert set(run[1]) == part - set(run[0])


def test_the_two_lessons_of_tier_0_are_there() -> None:
    assert [pair.stem for pair in run_tests.lessons_of(0)] == sorted(run_tests.SMOKE)


def test_the_files_and_folders_with_a_tier_are_there() -> None:
    assert [path for path in (*TIERS, *PARTS) if not (TESTS / path).exists()] == []


def test_the_longest_path_decides_the_tier() -> None:
    assert [tier_of(TESTS / name) for name in ("exportlab/doctor/test_x.py", "exportlab/doctor/test_unseen.py", "test_x.py")] == [1, 2, 0]
