"""Records: what is written is read, a torn line is dropped, what is no record is refused; and what two files of them differ in."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pyperf
import pytest

from exportlab.outcomes import Outcome
from exportlab.sweep.changes import chance_apart, changes
from exportlab.sweep.journal import Journal
from exportlab.sweep.progress import totals
from exportlab.sweep.records import Record, RecordsError, environment, environments, read, save_pyperf

HERE = {"id": "ab12cd34", "torch_version": "2.13.0", "date": "today"}
GOOD = Record(
    "mlp", "dynamo", "dynamic", Outcome.OK, seconds={"export": 0.5, "call": 1e-5}, bytes=10, nodes=3, worst=0.0, environment="ab12cd34"
)
BAD = Record("mlp", "to_onnx", "static", Outcome.WRONG, failed=({"check": "unseen size", "detail": "é"},), environment="ab12cd34")


@pytest.fixture
def path(tmp_path: Path) -> Path:
    journal = Journal(tmp_path / "seen.jsonl", HERE)
    for record in (GOOD, BAD):
        journal.write(record)
    return tmp_path / "seen.jsonl"


def made(name: str, value: object) -> str:
    """A line that would be a record, but for one of its fields."""
    return json.dumps({**json.loads(replace(GOOD, round=9).line()), name: value})


def test_what_is_written_is_read(path: Path) -> None:
    assert read(path) == [GOOD, BAD]
    assert environments(path) == {"ab12cd34": HERE}


def test_what_was_said_is_read_and_records_from_before_have_nothing(path: Path) -> None:
    said, old = replace(BAD, round=2, said=("TracerWarning: é",)), replace(GOOD, round=2)
    before = json.loads(old.line())
    del before["said"]
    path.write_text(path.read_text(encoding="utf-8") + said.line() + "\n" + json.dumps(before) + "\n", encoding="utf-8")
    assert read(path) == [GOOD, BAD, said, old]


@pytest.mark.parametrize(
    ("outcome", "said", "silent", "warned"),
    [
        (Outcome.WRONG, (), True, False),
        (Outcome.FROZEN, ("UserWarning: this is old",), True, False),
        (Outcome.FROZEN, ("UserWarning: this is old", "TracerWarning: a branch"), False, True),
        (Outcome.NARROW, ("TracerWarning: a branch",), False, False),
        (Outcome.OK, ("TracerWarning: a branch",), False, False),
    ],
)
def test_silent_is_wrong_without_a_word_of_the_cause(outcome: Outcome, said: tuple[str, ...], silent: bool, warned: bool) -> None:
    record = replace(GOOD, outcome=outcome, said=said)
    assert (record.silent, record.warned) == (silent, warned)


def test_every_line_is_on_disk_before_the_next_comes(tmp_path: Path) -> None:
    journal = Journal(tmp_path / "seen.jsonl", HERE)
    journal.write(GOOD)
    assert read(tmp_path / "seen.jsonl") == [GOOD]


@pytest.mark.parametrize("torn", ['{"case": "half', '{"case"', "\N{GREEK SMALL LETTER ALPHA}"])
def test_a_torn_last_line_is_dropped_and_the_file_goes_on_after_it(path: Path, torn: str) -> None:
    path.write_bytes(path.read_bytes() + torn.encode()[:-1])
    assert read(path) == [GOOD, BAD]
    journal = Journal(path, HERE)
    assert journal.records == [GOOD, BAD]
    journal.write(replace(GOOD, case="cnn"))
    assert [record.case for record in read(path)] == ["mlp", "mlp", "cnn"]
    assert all(json.loads(line) for line in path.read_text(encoding="utf-8").splitlines())


def test_records_of_another_environment_are_not_mixed_in(path: Path) -> None:
    with pytest.raises(RecordsError, match=r"torch_version 2\.13\.0, now 2\.14\.0\): use another file name"):
        Journal(path, {**HERE, "id": "other", "torch_version": "2.14.0"})


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("nonsense", r"seen\.jsonl:4 is not a record"),
        ("[1]", r"seen\.jsonl:4 is not a record"),
        ('{"schema": 1, "case": "mlp"}', r"seen\.jsonl:4 is not a record"),
        ('{"schema": 99}', "has schema 99, this version reads schema 1"),
        ('{"schema": 1, "environment": {}}', "4 is not a record: its environment's id must be a text"),
        (made("case", ["mlp"]), "4 is not a record: its case must be a text"),
        (made("case", ""), "4 is not a record: its case must be a text that is not empty"),
        (made("outcome", ["ok"]), "4 is not a record: its outcome must be one of wrong, frozen"),
        (made("outcome", "fine"), "its outcome must be one of"),
        (made("round", True), "its round must be a whole number from 1 on"),
        (made("round", 0), "its round must be"),
        (made("seconds", None), "its seconds must be an object"),
        (made("seconds", {"export": None}), "its seconds must be an object, each value seconds between 1e-12 and 1e"),
        (made("seconds", {"export": "1"}), "its seconds must be"),
        (made("seconds", {"export": 0}), "its seconds must be"),
        (made("seconds", {"export": -1.0}), "its seconds must be"),
        (made("seconds", {"export": 10**400}), "its seconds must be"),
        (made("seconds", {"export": float("inf")}), "Infinity is not a number in JSON"),
        (made("worst", float("nan")), "NaN is not a number in JSON"),
        (made("failed", "abc"), "its failed must be a list"),
        (made("failed", [{"check": "save"}]), "its failed must be a list"),
        (made("failed", [{"check": "save", "detail": "", "outcome": "fine"}]), "its failed must be a list"),
        (made("said", "abc"), "its said must be a list"),
        (made("nodes", -1), "its nodes must be a whole number that is not negative or null"),
        (made("nodes", 10**30), "its nodes must be"),
        (made("colour", "red"), "it has an unknown field 'colour'"),
        ('{"case": ' * 100_000, "4 is not a record: it is nested too deeply"),
        (made("nodes", 0).replace(": 0", ": " + "9" * 5000), "4 is not a record: Exceeds the limit"),
    ],
    ids=lambda text: text[:60],
)
def test_a_line_that_is_no_record_is_named(path: Path, line: str, said: str) -> None:
    path.write_text(path.read_text(encoding="utf-8") + line + "\n", encoding="utf-8")
    with pytest.raises(RecordsError, match=said):
        read(path)


def test_an_environment_names_versions_and_no_machine() -> None:
    found = environment(threads=1)
    assert found["torch_threads"] == 1
    assert {"torch_version", "onnxscript_version", "cpu_count", "id"} <= set(found)
    assert not {"hostname", "platform", "python_executable"} & set(found)


def test_the_id_of_an_environment_does_not_hang_on_the_date() -> None:
    assert environment(1)["id"] == environment(1)["id"] != environment(2)["id"]


def test_seconds_are_written_for_pyperf(tmp_path: Path) -> None:
    rounds = [replace(GOOD, round=n, seconds={"export": n / 10}) for n in (1, 2, 3)]
    save_pyperf([*rounds, BAD], tmp_path / "times.json", environment(1))
    (found,) = pyperf.BenchmarkSuite.load(str(tmp_path / "times.json"))
    assert found.get_name() == "mlp, dynamo, dynamic, export"
    assert list(found.get_values()) == [0.1, 0.2, 0.3]


@pytest.mark.parametrize("seconds", [0.0, -1.0, float("inf"), float("nan")])
def test_seconds_that_nobody_measured_are_not_written_for_pyperf(tmp_path: Path, seconds: float) -> None:
    with pytest.raises(RecordsError, match="mlp, dynamo, dynamic, round 1: its seconds must be"):
        save_pyperf([replace(GOOD, seconds={"export": seconds})], tmp_path / "times.json", environment(1))
    assert list(tmp_path.iterdir()) == []


def test_a_lone_surrogate_is_read_as_it_is(path: Path) -> None:
    said = replace(BAD, round=2, said=("\ud800",))
    path.write_text(path.read_text(encoding="utf-8") + said.line() + "\n", encoding="utf-8")
    assert read(path)[-1] == said


def test_a_sweep_without_seconds_has_nothing_for_pyperf(tmp_path: Path) -> None:
    with pytest.raises(RecordsError, match="nothing was exported"):
        save_pyperf([BAD], tmp_path / "times.json", environment(1))


@pytest.mark.parametrize(
    ("before", "after", "kind"),
    [
        (Outcome.OK, Outcome.FROZEN, "broke"),
        (Outcome.OK, Outcome.CAPTURE, "broke"),
        (Outcome.CAPTURE, Outcome.WRONG, "broke"),
        (Outcome.WRONG, Outcome.CONVERT, "better"),
        (Outcome.CRASH, Outcome.OK, "better"),
        (Outcome.CAPTURE, Outcome.CONVERT, "other"),
        (Outcome.WRONG, Outcome.FROZEN, "other"),
    ],
)
def test_a_change_is_better_worse_or_neither(before: Outcome, after: Outcome, kind: str) -> None:
    (found,) = changes([replace(GOOD, outcome=before)], [replace(GOOD, outcome=after, error="why")]).outcomes
    assert found.kind == kind
    assert str(found) == f"mlp, dynamic, dynamo: {before} → {after} ({kind})"


def test_a_change_tells_what_warned() -> None:
    (found,) = changes([GOOD], [replace(GOOD, outcome=Outcome.FROZEN, said=("UserWarning: old", "TracerWarning: a branch"))]).outcomes
    assert found.detail == "it warned: TracerWarning: a branch"


def test_totals_of_a_sweep_count_what_warned() -> None:
    said = replace(BAD, case="cnn", said=("TracerWarning: a branch",))
    assert totals([GOOD, BAD, said]).rows[1] == {"exporter": "to_onnx", "mode": "static", "wrong": 2, "ok": "", "of these warned": 1}


FORGED = "mlp\x1b[2J\x1b]0;title\x07\nall is well\u202e\ud800"
SHOWN = "mlp\\u001b[2J\\u001b]0;title\\u0007\\nall is well\\u202e\\ud800"


def test_what_differs_is_printed_so_that_names_and_messages_do_nothing_to_a_terminal(path: Path) -> None:
    before = replace(GOOD, case=FORGED, exporter=FORGED, mode=FORGED)
    found = changes([before], [replace(before, outcome=Outcome.CAPTURE, error=FORGED)])
    for text in (str(found), str(found.outcomes[0]), repr(found._table()), found._repr_html_(), repr(totals([before]))):
        assert "\\u001b[2J" in text
        assert not {"\x1b", "\x07", "\u202e", "\ud800"} & set(text)
    assert str(found).splitlines()[1] == f"  {SHOWN}, {SHOWN}, {SHOWN}: ok → capture (broke): {SHOWN}"


def test_a_message_about_a_file_is_one_line(path: Path) -> None:
    line = json.dumps({**json.loads(GOOD.line()), "case": FORGED})
    path.write_text(path.read_text(encoding="utf-8") + f"{line}\n" * 2, encoding="utf-8")
    with pytest.raises(RecordsError, match="second record of mlp") as caught:
        read(path)
    assert SHOWN in str(caught.value)
    path.write_text(json.dumps({"schema": FORGED}) + "\n")
    with pytest.raises(RecordsError, match=r"has schema mlp\\u001b"):
        read(path)


def test_the_worst_round_counts() -> None:
    (found,) = changes([GOOD], [GOOD, replace(GOOD, round=2, outcome=Outcome.WRONG)]).outcomes
    assert found.after == "wrong"


def test_what_only_one_file_has_is_counted_apart() -> None:
    found = changes([GOOD, BAD], [GOOD])
    assert (found.same, found.outcomes, found.only_before, found.only_after) == (1, (), (BAD.key[:3],), ())
    assert "1 runs are only in the first file" in str(found)


def timed(*seconds: float) -> list[Record]:
    return [replace(GOOD, round=n, seconds={"export": s}) for n, s in enumerate(seconds)]


@pytest.mark.parametrize(
    ("before", "after", "verdict"),
    [
        ((1.0, 1.1, 1.2, 1.3), (2.0, 2.1, 2.2, 2.3), "slower"),
        ((2.0, 2.1, 2.2, 2.3), (1.0, 1.1, 1.2, 1.3), "faster"),
        ((1.0, 1.1, 1.2, 2.05), (2.0, 2.1, 2.2, 2.3), "noise"),
        ((1.0, 1.1, 1.2), (2.0, 2.1, 2.2), "too few rounds"),
    ],
)
def test_times_differ_when_their_ranges_do_not_meet(before: tuple[float, ...], after: tuple[float, ...], verdict: str) -> None:
    (found,) = changes(timed(*before), timed(*after)).times
    assert found.verdict == verdict


def test_the_chance_that_ranges_lie_apart() -> None:
    assert chance_apart(3, 3) == pytest.approx(2 / 20)
    assert chance_apart(4, 4) == pytest.approx(2 / 70)
    assert chance_apart(1, 1) == 1
