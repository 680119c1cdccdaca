"""What is expected of every case: the file that holds it, how a new sweep is held against it, and which few cases show it all."""

from __future__ import annotations

from pathlib import Path

import expected as file
import expected_matrix
import pytest
from expected import QUICK, covering, from_csv, moving, to_csv
from expected_matrix import STORED, difference, differences, load_expected, outcomes_of, tasks

from content import zoo
from exportlab.outcomes import Outcome
from exportlab.sweep import MODES, Task
from exportlab.sweep.records import Record, read

RECORDS = (
    Record("mlp", "torch.export", "dynamic", Outcome.OK, seconds={"export": 0.2, "call": 2.0, "eager": 1.0}, nodes=7, worst=1e-7),
    Record("mlp", "to_onnx", "dynamic", Outcome.OK, seconds={"export": 0.3}),
    Record(
        "mlp",
        "dynamo",
        "dynamic",
        Outcome.WRONG,
        failed=({"check": "unseen size", "inputs": "float32[7]", "outcome": "wrong", "detail": "<b>"},),
    ),
    Record("branch_on_batch", "dynamo", "static", Outcome.OK),
    Record("branch_on_batch", "dynamo", "dynamic", Outcome.FROZEN),
    Record("branch_on_value", "dynamo", "dynamic", Outcome.CAPTURE, error="E: </script><!-- 1 < 2", where="content/zoo/branches.py:30"),
    Record("branch_on_value", "to_onnx", "dynamic", Outcome.CAPTURE),
)


def test_every_case_of_the_zoo_has_its_expected_outcomes() -> None:
    expected = load_expected()
    assert {(case, mode) for case, _, mode in expected} == {
        (case.name, mode) for case in zoo.cases() for mode in MODES if mode == "static" or case.dims
    }


def test_what_is_expected_is_what_the_page_shows() -> None:
    expected = load_expected()
    assert expected == outcomes_of(read(STORED))


def test_the_quick_check_sees_every_outcome() -> None:
    expected = load_expected()
    chosen = covering(expected)
    assert len(chosen) == QUICK
    assert {outcome for (case, *_), outcome in expected.items() if case in chosen} == set(expected.values())


def test_outcomes_come_back_from_the_file_as_they_were() -> None:
    outcomes = outcomes_of(RECORDS)
    text = to_csv(outcomes, ["branch_on_value", "mlp"], ["torch.export", "to_onnx", "dynamo"])
    assert from_csv(text) == outcomes
    assert text.splitlines() == [
        "case,mode,torch.export,to_onnx,dynamo",
        "branch_on_value,dynamic,,capture,capture",
        "mlp,dynamic,ok,ok,wrong",
        "branch_on_batch,static,,,ok",
        "branch_on_batch,dynamic,,,frozen",
    ]


@pytest.mark.parametrize(
    ("before", "after", "said"),
    [
        (Outcome.FROZEN, Outcome.OK, "a, dynamic, dynamo: frozen → ok (better: run `make matrix` and look at the diff)"),
        (Outcome.OK, Outcome.WRONG, "a, dynamic, dynamo: ok → wrong (broke)"),
        (Outcome.OK, Outcome.FROZEN, "a, dynamic, dynamo: ok → frozen (broke)"),
        (Outcome.CAPTURE, Outcome.CONVERT, "a, dynamic, dynamo: capture → convert (other)"),
        (Outcome.OK, None, "a, dynamic, dynamo: no record, ok was expected"),
        (None, Outcome.OK, "a, dynamic, dynamo: ok, and nothing is expected yet (run `make matrix` and look at the diff)"),
        (Outcome.OK, Outcome.OK, ""),
    ],
)
def test_a_difference_says_what_changed(before: Outcome | None, after: Outcome | None, said: str) -> None:
    assert difference(("a", "dynamo", "dynamic"), before, after) == said


def test_every_difference_is_named_with_its_error() -> None:
    expected = {
        **outcomes_of(RECORDS),
        ("branch_on_value", "dynamo", "dynamic"): Outcome.OK,
        ("gone", "dynamo", "static"): Outcome.OK,
    }
    assert differences(expected, {record.key[:3]: record for record in RECORDS}) == [
        "branch_on_value, dynamic, dynamo: ok → capture (broke)\n    E: </script><!-- 1 < 2",
        "gone, static, dynamo: no record, ok was expected",
    ]


def test_what_is_run_is_what_is_expected_and_all_of_a_new_case() -> None:
    expected = {("mlp", "dynamo", "static"): Outcome.OK}
    runs = [(task.case, task.exporter, task.mode) for task in tasks(expected, ["dynamo", "to_onnx"], [zoo.get("mlp"), zoo.get("two_dims")])]
    assert runs[0] == ("mlp", "dynamo", "static")
    assert sorted(runs[1:]) == [("two_dims", exporter, mode) for exporter in ("dynamo", "to_onnx") for mode in ("dynamic", "static")]


def test_few_cases_show_every_outcome() -> None:
    outcomes = {(f"case{i}", "dynamo", "static"): "ok" for i in range(9)}
    outcomes |= {("last", "dynamo", "static"): "crash", ("case3", "dynamo", "dynamic"): "wrong"}
    assert covering(outcomes, 2) == ["case3", "last"]


def test_a_case_that_moves_is_checked_moving_alone() -> None:
    outcomes = {("a", "x", "static"): "ok", ("a", "x", "dynamic"): "frozen", ("b", "x", "static"): "ok"}
    assert moving(outcomes) == {("a", "x", "dynamic"): "frozen", ("b", "x", "static"): "ok"}


def test_the_file_has_the_modes_of_a_sweep() -> None:
    assert file.MODES == MODES


def test_a_check_tells_which_cases_passed(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    """A case that differs, and one that the zoo has no more, are told; the others pass."""

    def swept(tasks: list[Task], *_: object, **__: object) -> list[Record]:
        return [Record(task.case, task.exporter, task.mode, Outcome.OK) for task in tasks]

    monkeypatch.setattr(expected_matrix, "sweep", swept)
    wanted = {("mlp", "to_onnx", "static"): Outcome.OK, ("two_dims", "to_onnx", "static"): Outcome.WRONG}
    wanted |= {("gone", "to_onnx", "static"): Outcome.OK}
    passed: list[str] = []
    assert expected_matrix.check(wanted, ["mlp", "two_dims", "gone"], ["to_onnx"], passed.append) == 2
    assert passed == ["mlp"]
    told = capsys.readouterr().out
    assert "two_dims, static, to_onnx: wrong → ok (better: run `make matrix` and look at the diff)" in told
    assert "gone, static, to_onnx: no record, ok was expected" in told


def test_a_sweep_of_some_cases_replaces_theirs_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stored, swept, expected = tmp_path / "matrix.jsonl", tmp_path / "cases.jsonl", tmp_path / "expected.csv"
    stored.write_text('{"schema": 1}\n{"case": "mlp", "outcome": "ok"}\n{"case": "branch_on_batch", "outcome": "wrong"}\n')
    swept.write_text('{"schema": 2}\n{"case": "branch_on_batch", "outcome": "ok"}\n')
    monkeypatch.setattr(expected_matrix, "STORED", stored)
    monkeypatch.setattr(expected_matrix, "write", lambda: expected.touch())
    expected_matrix.store(swept)
    assert stored.read_text().splitlines() == [
        '{"schema": 1}',
        '{"case": "mlp", "outcome": "ok"}',
        '{"schema": 2}',
        '{"case": "branch_on_batch", "outcome": "ok"}',
    ]
    assert expected.exists()
