"""A stored run is of the code that is there: where the exporter or the script has changed since, the run is made again."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from exportlab.measure import benchmark, sources

STALE = {  # runs that are older than their code, shown by a badge on their pages
    *("captures", "cpp_programs", "export_time", "graph_size", "how_we_measure", "latency", "llama_layers", "memory", "optimisers"),
    *("own_exporter", "pays_off", "real_sizes", "start_up", "transformer_files"),
}
NAMES = sorted(path.stem for path in benchmark.DATA.glob("*.json"))
SCRIPT = """from exportlab.measure import benchmark
ROUNDS = 3
def draw(run: benchmark.Run) -> None:
    \"\"\"Draw it.\"\"\"
    print(run)
def timed() -> int:
    \"\"\"Time it.\"\"\"
    assert ROUNDS, "There are no rounds to time."
    in_process("import a; print(2, 3, 4, 5, 6)")
    return ROUNDS  # rounds
"""


@pytest.mark.parametrize("name", NAMES)
def test_a_stored_run_is_of_the_code_that_is_there(name: str) -> None:
    script = benchmark.DATA.parent / f"{name}.py"
    changed = sources.changes(benchmark.stored(name).metadata, script)
    if name in STALE:
        assert changed, f"{name} is no longer older than its code: take it out of STALE"
        return
    assert not changed, (
        f"the run of {name} is older than what it measured ({', '.join(changed)}): run python benchmarks/{name}.py --json "
        f"benchmarks/data/{name}.json, or put it into STALE, which shows a badge on its page"
    )


def test_the_list_names_only_stored_runs() -> None:
    assert set(NAMES) >= STALE


@pytest.mark.parametrize(
    ("before", "after", "changed"),
    [
        ("# rounds", "# how many", False),
        ("Time it", "Measure it", False),
        ("print(run)", "print(run.times)", False),
        ("There are no rounds to time.", "Pass at least one round, please.", False),
        ("print(2, 3, 4, 5, 6)", "print(2, 3, 4, 5, 7)", True),
        ("ROUNDS = 3", "ROUNDS = 4", True),
        ("return ROUNDS", "return -ROUNDS", True),
    ],
)
def test_what_only_a_reader_sees_is_not_measured(before: str, after: str, changed: bool, tmp_path: Path) -> None:
    script = tmp_path / "a.py"
    script.write_text(SCRIPT)
    then = {"date": "2026-11-21 12:00:00", sources.KEY: json.dumps(sources.collect_states(script))}
    assert not sources.changes(then, script)
    assert not sources.badge(then, script)
    script.write_text(SCRIPT.replace(before, after))
    assert sources.changes(then, script) == ["a.py"] * changed
    assert bool(sources.badge(then, script)) is changed


def test_a_change_of_the_exporter_makes_a_run_stale(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    script, part = tmp_path / "a.py", tmp_path / "part.py"
    script.write_text(SCRIPT)
    part.write_text("LIMIT = 1")
    monkeypatch.setattr(sources, "digest_of_the_exporter", lambda: sources.digest_of([part]))
    then = {"date": "2026-11-21 12:00:00", sources.KEY: json.dumps({"m": {"commit": "abc", **sources.digests(script)}})}
    assert sources.badge(then, script) == ""
    part.write_text("LIMIT = 2")
    assert sources.changes(then, script) == ["fx2onnx"]
    assert sources.badge(then, script) == "Measured before the code it measures changed: commit abc, 21 November 2026"


def test_a_run_that_does_not_have_what_it_measured_is_stale(tmp_path: Path) -> None:
    then = {"date": "2026-11-21 12:00:00"}
    assert sources.badge(then, tmp_path / "a.py").endswith("changed: commit not stored, 21 November 2026")


def test_a_run_stores_its_commit_and_keeps_what_was_measured_before_of_other_models(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from exportlab.measure.timing import Timings

    times = {"m": Timings((), ({"a": 1.0},))}
    path = tmp_path / "real_sizes.json"
    for only in (("m",), ("n",)):
        benchmark.Page("real_sizes", quick=False, json=path, only=only).keep(times, packages=["torch"])
    found = sources.read_states(benchmark.load(path).metadata)
    assert found.keys() == {"m", "n"}
    assert all(state.keys() == {"commit", "fx2onnx", "real_sizes.py"} for state in found.values())
    whole = benchmark.Page("real_sizes", quick=False, json=path).keep(times, packages=["torch"])
    assert sources.read_states(whole.metadata).keys() == {sources.WHOLE}


def test_without_git_the_commit_is_not_stored(tmp_path: Path) -> None:
    assert sources.commit(tmp_path / "nowhere") == sources.UNKNOWN
