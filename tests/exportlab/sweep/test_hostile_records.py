"""Whatever a file of records holds: it is read, or refused in one line that names it; and what is refused is left as it is."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from hypothesis import event, given
from hypothesis import strategies as st

from exportlab.outcomes import Outcome
from exportlab.sweep.changes import changes
from exportlab.sweep.journal import Journal
from exportlab.sweep.progress import totals
from exportlab.sweep.records import Record, RecordsError, environments, read, save_pyperf
from exportlab.sweep.scheduler import Scheduler, select_pending_tasks
from exportlab.sweep.task import Task

HERE = {"id": "ab12cd34", "torch_version": "2.13.0", "date": "today"}
HEADER = {"schema": 1, "environment": HERE}
RECORD = asdict(Record("mlp", "dynamo", "static", Outcome.OK, seconds={"export": 0.5, "call": 1e-5}, environment="ab12cd34"))
CHECK = {"check": "unseen size", "inputs": "(2, 3)", "outcome": "wrong", "worst": 0.5, "detail": "\x1b[2J"}

texts = st.text(st.characters(), max_size=8)  # lone surrogates, too
numbers = st.one_of(st.integers(), st.floats(), st.just(10**400), st.booleans())
values = st.recursive(
    st.one_of(st.none(), texts, numbers),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(texts, inner, max_size=3)),
    max_leaves=6,
)
seconds = st.dictionaries(st.sampled_from(["export", "save", "load", "call"]), st.floats(1e-12, 1e9))
odd = st.one_of(
    st.dictionaries(st.one_of(st.sampled_from(list(RECORD)), texts), values, max_size=1),
    st.builds(lambda value: {"seconds": {"export": value}}, values),
    st.builds(lambda name, value: {"failed": [{**CHECK, name: value}]}, st.sampled_from(list(CHECK)), values),
)
likely = {
    "case": st.sampled_from(["mlp", "cnn", "a, b", "\ud800", "\n"]),
    "exporter": st.sampled_from(["dynamo", "to_onnx", "b"]),
    "outcome": st.sampled_from(list(Outcome)),
    "round": st.integers(2, 4),
    "error": st.sampled_from(["ProcessDied: killed by SIGKILL", "eager itself: TimeLimit: not done after 60 s"]),
    "seconds": seconds,
    "failed": st.lists(st.builds(lambda text: {**CHECK, "detail": text}, texts), max_size=2),
    "said": st.lists(texts, max_size=2),
    "worst": st.floats(allow_nan=False, allow_infinity=False),
    "nodes": st.integers(0, 2**63 - 1),
}


@st.composite
def rows(draw: st.DrawFn) -> Any:
    """A line's value: a record, of which some fields are others, or an environment, or anything."""
    kind = draw(st.sampled_from(["record"] * 20 + ["environment", "anything"]))
    if kind == "anything":
        return draw(values)
    if kind == "environment":
        return {**HEADER, "environment": draw(st.one_of(st.just(HERE), values, st.builds(lambda value: {**HERE, "id": value}, values)))}
    fields = draw(st.lists(st.sampled_from(list(likely)), unique=True))
    return {**RECORD, **{name: draw(likely[name]) for name in fields}, **draw(st.one_of(*[st.just({})] * 5, odd))}


def content_of(lines: list[Any], begun: bool, tail: bytes) -> bytes:
    every = [HEADER, *lines] if begun else lines
    for number, line in enumerate(every):
        if isinstance(line, dict) and line.get("round") == 1:  # else nearly every run has two records
            line["round"] = number
    return b"".join(json.dumps(line).encode() + b"\n" for line in every) + tail


contents = st.one_of(
    st.binary(max_size=200),
    st.builds(lambda lines: json.dumps(HEADER).encode() + b"\n" + lines, st.binary(max_size=100)),
    *[st.builds(content_of, st.lists(rows(), max_size=6), st.just(True), st.sampled_from([b"", b'{"case": "to', b"\xff"]))] * 4,
    st.builds(content_of, st.lists(rows(), max_size=3), st.booleans(), st.just(b"")),
)


def used(path: Path, folder: Path) -> None:
    """All that is done with a file of records."""
    found = read(path)
    environments(path)
    shown = changes(found, found[1:])
    for text in (str(shown), repr(shown._table()), shown._repr_html_(), repr(totals(found))):
        text.encode()
        assert "\x1b" not in text
    save_pyperf(found, folder / "times.json", HERE)


def gone_on(path: Path) -> None:
    journal = Journal(path, HERE)
    try:
        tasks = [Task(name, "dynamo", "static") for name in ("mlp", "new")]
        Scheduler(select_pending_tasks(tasks, journal.records), journal.records).decided()
        journal.write(Record("new", "dynamo", "static", Outcome.OK))
    finally:
        journal.close()


def refusal(use: Callable[[], None]) -> str:
    """What a use is refused with; empty where it is not."""
    try:
        use()
    except RecordsError as error:
        return str(error)
    return ""


@given(contents)
def test_a_hostile_file_is_read_or_refused_and_left_as_it_is(content: bytes) -> None:
    with TemporaryDirectory() as folder:
        path = Path(folder) / "seen.jsonl"
        path.write_bytes(content)
        for use in (lambda: used(path, Path(folder)), lambda: gone_on(path)):
            said = refusal(use)
            event("refused" if said else "taken")
            assert "\n" not in said
            left = content if said else content[: content.rfind(b"\n") + 1]
            assert path.read_bytes()[: len(left)] == left
            assert path.read_bytes() == content or not said
