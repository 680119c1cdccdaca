"""The landing page: what its instrument and its strips are made of, counted a second time."""

from __future__ import annotations

import json
import re
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import browser_demo
import front_page
import pytest
import torch
from front_page import fingerprint, instrument
from matplotlib import image
from swept import RECORDS, sweep_of

from exportlab.outcomes import Mark
from exportlab.sweep.page.counts import Sweep

ROOT = Path(__file__).parents[2]
MEASURED = [
    instrument.Measured("torch.onnx.export", b"one", ("Mul",), (2.0,) * 8, (3.0,) * 4 + (2.0,) * 4),
    instrument.Measured("to_onnx", b"other", ("If",), (3.0,) * 4 + (2.0,) * 4, (3.0,) * 4 + (2.0,) * 4),
]


def moving() -> Iterator[dict[str, Any]]:
    """The last round of each stored run with moving axes."""
    lines = (ROOT / "docs/data/matrix.jsonl").read_text(encoding="utf-8").splitlines()
    last = {(r["case"], r["exporter"]): r for r in map(json.loads, lines) if r.get("mode") == "dynamic"}
    yield from last.values()


def test_the_strips_say_what_the_stored_records_say() -> None:
    drawn = fingerprint.build_strip_data(Sweep.read(front_page.STORED).runs)
    seen: dict[str, Counter[str]] = defaultdict(Counter)
    for record in moving():
        seen[record["exporter"]][record["outcome"]] += 1
    right = {row["score"].name: row["score"].right for row in drawn["rows"]}
    assert right == {exporter: counts["ok"] for exporter, counts in seen.items()}
    assert drawn["total"] == sum(counts.total() for counts in seen.values())
    for row in drawn["rows"]:
        cells = {kind: sum(map(int, re.findall(r"h(\d+)v", path))) for kind, path in row["paths"].items()}
        assert sum(cells.values()) == seen[row["score"].name].total()
        assert cells["ok"] == row["score"].right
        assert cells[Mark.SILENT] == row["score"].silent
        assert cells[Mark.MASKED] == row["score"].masked
        wrong = cells[Mark.SILENT] + cells[Mark.WARNED] + cells[Mark.MASKED]
        assert wrong == sum(seen[row["score"].name][o] for o in ("wrong", "frozen"))


def test_a_case_has_the_same_place_in_each_strip() -> None:
    runs = sweep_of(*RECORDS).runs
    cases = fingerprint.order(fingerprint.kinds(runs))
    for score, spans in fingerprint.strips(runs):
        places = {cases[place]: kind for kind, start, length in spans for place in range(start, start + length)}
        assert places == fingerprint.kinds(runs)[score.name]


def test_torch_export_refuses_the_model_where_every_batch_is_promised() -> None:
    with pytest.raises(RuntimeError, match=r"Suggested fixes:\n  batch = Dim\('batch', min=5\)"):
        torch.export.export(instrument.ByBatch(), (torch.ones(6, 3),), dynamic_shapes=({0: torch.export.Dim("batch")},))


def test_the_instrument_holds_only_what_was_seen(monkeypatch: pytest.MonkeyPatch) -> None:
    waiting = dict(zip(instrument.EXPORTERS, MEASURED, strict=True))
    monkeypatch.setattr(instrument, "measure_exporter", waiting.__getitem__)
    data = json.loads(instrument.to_json(instrument.measure_all()))
    assert [file["answers"]["3"] for file in data["files"]] == [2, 3]
    assert data["eager"] == {str(rows): 2 if rows > 4 else 3 for rows in range(1, 9)}
    waiting["to_onnx"] = replace(MEASURED[1], answers=(2.0,) * 8)
    with pytest.raises(ValueError, match="the landing page is wrong about to_onnx"):
        instrument.measure_all()


def test_the_code_that_is_shown_is_the_model_that_was_exported() -> None:
    shown: dict[str, Any] = {}
    model = instrument.code().partition("\n\n")[0].replace("nn.Module", "object")
    exec(model, shown)
    for rows, answer in zip(instrument.BATCHES, MEASURED[0].eager, strict=True):
        x = torch.ones(rows, instrument.WIDTH)
        assert shown["ByBatch"]().forward(x).max() == instrument.ByBatch().forward(x).max() == answer


def test_an_address_gives_a_command_and_a_place_to_run_it() -> None:
    nowhere, somewhere = (front_page.opened_by(address) for address in ("", "https://github.com/one/lab"))
    assert (nowhere["command"], nowhere["colab"]) == ("make lab", "")
    assert somewhere["command"] == "git clone https://github.com/one/lab && cd lab && make lab"
    assert somewhere["colab"].endswith("/github/one/lab/blob/main/tutorials/101_module_to_file.ipynb")
    assert front_page.opened_by("https://example.org/lab")["colab"] == ""


def test_the_card_is_of_the_size_that_links_show(tmp_path: Path) -> None:
    fingerprint.draw_card(sweep_of(*RECORDS).runs, tmp_path / "card.png")
    assert image.imread(tmp_path / "card.png").shape[:2] == (630, 1200)
    assert [path.name for path in tmp_path.iterdir()] == ["card.png"]


def test_the_demo_of_306_is_made_by_the_cells_of_the_lesson_that_need_no_browser() -> None:
    code = "\n".join(browser_demo.cells())
    assert {"class Recogniser(nn.Module):", "program = to_onnx(recogniser, samples[0], **options)"} <= set(code.splitlines())
    assert not re.search(r"^require\(|from browser|opened\(", code, re.MULTILINE)
    compile(code, "306", "exec")
