"""The page of older runtimes: counted a second time from what is stored, its snippet run, and how a run is told."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import old_runtimes as page
import onnx
import onnxruntime
import pytest
import torch
from swept import Rows

from exportlab import export, verify
from exportlab.exporters import from_file

ROOT = Path(__file__).parents[2]
TEXT = (ROOT / "docs/versions.md").read_text(encoding="utf-8")
HEAD, *FILES = map(json.loads, (ROOT / "docs/data/old_runtimes.jsonl").read_text(encoding="utf-8").splitlines())
PARTS = page.parts(page.read(page.STORED))


PINNED = HEAD["made_by"]["onnxruntime"]


def final(run: dict[str, Any]) -> str:
    """The outcome that counts."""
    return run.get("lowered_outcome", run["outcome"])


SOUND = [file for file in FILES if final(file["runs"].get(PINNED, {"outcome": "none"})) == "ok"]


def test_the_headline_counted_a_second_time() -> None:
    runs = [final(run) for file in SOUND for run in file["runs"].values()]
    wrong = runs.count("wrong")
    said = " ".join(PARTS["old-runtimes-asked.html"].split())
    assert f"{len(SOUND)} of {len(FILES)} files are right in {PINNED}" in said
    assert f"Of their {len(runs)} runs, {runs.count('ok') + wrong} returned a result, and {wrong} of these differ from eager mode" in said
    assert f"run in {len(HEAD['runtimes'])} releases" in said


def test_a_release_says_itself_which_opset_is_its_newest() -> None:
    told: dict[str, int] = {}
    for file in FILES:
        for release, run in file["runs"].items():
            said = "".join(HEAD["said"][run[key]] for key in ("said", "lowered_said") if key in run)
            if found := re.search(r"till opset (\d+)", said):
                told[release] = int(found[1])
    shown = {runtime.release: runtime.opset for runtime in page.read(page.STORED).runtimes}
    assert len(told) > 5
    assert told.items() <= shown.items()
    assert shown["1.20.1"] == 21, "as the page says"


def test_a_release_row_counts_what_is_right_there() -> None:
    rows = [[text for _, text in row] for row in Rows(PARTS["old-runtimes-releases.html"]).rows[1:]]
    for row in rows:
        release, opset = row[0].split()[0], int(row[2])
        for exporter, cell in zip(page.EXPORTERS, row[4:], strict=True):
            asked = [final(file["runs"][release]) for file in SOUND if (file["exporter"], file["opset"]) == (exporter, opset)]
            assert cell == f"{asked.count('ok')} of {len(asked)}"


def test_what_was_asked_of_every_exporter_is_the_same() -> None:
    asked = {name: {(file["case"], file["opset"]) for file in FILES if file["exporter"] == name} for name in page.EXPORTERS}
    assert asked["dynamo"] == asked["to_onnx"]
    assert all(list(file["runs"]) == list(HEAD["runtimes"]) for file in FILES if not file["refused"])


def test_the_pinned_runtime_is_among_them() -> None:
    assert PINNED in HEAD["runtimes"]
    assert f"onnxruntime=={PINNED}" in (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines()


def test_the_snippet_of_the_page_lowers_the_version(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    model, sample, other = torch.nn.Linear(3, 2).eval(), (torch.randn(4, 3),), (torch.randn(7, 3),)
    export("dynamo", model, sample, dynamic_shapes=({0: "batch"},)).save("model.onnx")
    (snippet,) = re.findall(r"```python\n(.*?)```", TEXT, re.DOTALL)
    exec(snippet, {})
    older = onnx.load("older.onnx")
    assert older.ir_version == 9 < onnx.load("model.onnx").ir_version
    assert not any(node.metadata_props for node in older.graph.node)
    assert onnxruntime.InferenceSession("older.onnx").get_inputs()
    verify(from_file("older.onnx", sample, {}, model(*sample)), model, [sample, other]).check()


def test_a_problem_is_what_is_old_enough_and_not_right() -> None:
    def file(case: str, opset: int, *runs: page.Run) -> page.File:
        return page.File(case, "to_onnx", opset, opset, 10, "", runs)

    older, too_new = "max supported IR version: 9", "Opset 22 is under development and support for this is limited"
    files = (
        file("a", 21, page.Run("1.20", "ok"), page.Run("1.16", "load", older, "wrong", "sample 1: 2 where eager has 3")),
        file("b", 22, page.Run("1.20", "load", too_new), page.Run("1.16", "load", older, "load", too_new)),
        file("c", 20, page.Run("1.20", "ok"), page.Run("1.16", "load", older, "ok")),
        file("d", 21, page.Run("1.20", "ok"), page.Run("1.16", "load", older, "ok")),
        file("e", 20, page.Run("1.20", "wrong", "sample 0: 1 where eager has 2"), page.Run("1.16", "load", older, "ok")),
    )
    tried = page.Tried({"torch": "2", "onnxscript": "0", "onnxruntime": "1.20"}, {"1.16": "2023-11", "1.20": "2024-11"}, files)
    assert [(runtime.release, runtime.month, runtime.ir, runtime.opset) for runtime in tried.runtimes] == [
        ("1.16", "November 2023", 9, 21),
        ("1.20", "November 2024", None, 21),
    ]
    assert page.problems(tried)[1] == [["a", "to_onnx", "21", "1.16", "wrong: 2 where eager has 3"]]
    assert "Of their 6 runs, 6 returned a result, and 1 of these differ" in page.render_summary(tried)
    assert "or were not written: by to_onnx, <code>b</code> (opset 22), <code>e</code> (opset 20)." in page.render_summary(tried)
    assert "In 3 runs, the release supports the opset but rejects the file's IR version: 1.16. " in page.render_lowered(tried)
    assert "With a lower IR version, 2 of them" in page.render_lowered(tried)
    assert [row[-2:] for row in page.opsets(tried)[1]] == [["1 of 5", "1.16"], ["2 of 5", "1.20"], ["0 of 5", "none here"]]


def test_a_gap_is_told() -> None:
    assert page._spans([18, 26, 19, 20, 24], range(18, 27)) == "18 to 20, 24, 26"
    assert page._spans(["1.20"], ["1.16", "1.20"]) == "1.20"


def test_what_the_page_says_of_wrong_answers() -> None:
    wrong = [(file["case"], file["opset"], release) for file in SOUND for release, run in file["runs"].items() if final(run) == "wrong"]
    assert {case for case, *_ in wrong} == {"llama"}
    assert min(opset for _, opset, _ in wrong) == 23
    last = max(list(HEAD["runtimes"]).index(release) for *_, release in wrong)
    assert list(HEAD["runtimes"])[last : last + 2] == ["1.27.0", "1.28.0"]


def test_what_the_page_says_of_opset_22() -> None:
    files = {file["exporter"]: file["runs"] for file in FILES if (file["case"], file["opset"]) == ("llama", 22)}
    assert final(files["dynamo"]["1.31.1"]) == "wrong"
    outcomes = [final(run) for run in files["to_onnx"].values()]
    first = outcomes.index("ok")
    assert set(outcomes[:first]) == {"load"}
    assert set(outcomes[first:]) == {"ok"}


def test_the_page_includes_every_part() -> None:
    assert re.findall(r":file: \.\./generated/parts/(old-\S+)", TEXT) == list(PARTS)
    for part in PARTS.values():
        assert Rows(part).open == [], "every element is closed"
