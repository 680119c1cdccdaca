"""The landing page: what its demo and its numbers are made of, counted a second time."""

from __future__ import annotations

import json
import re
import statistics
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from typing import Any

import browser_demo
import front_page
import pytest
import torch
from front_page import card, instrument, tiles
from matplotlib import image
from support_matrix import heatmap
from swept import RECORDS, cases, sweep_of

from content import zoo
from exportlab.sweep.page.counts import Sweep

ROOT = Path(__file__).parents[2]
MEASURED = [
    instrument.Measured("torch.onnx.export", b"one", ("Mul",), (2.0,) * 8, (3.0,) * 4 + (2.0,) * 4),
    instrument.Measured("to_onnx", b"other", ("If",), (3.0,) * 4 + (2.0,) * 4, (3.0,) * 4 + (2.0,) * 4),
]


def test_a_number_of_the_front_page_is_that_of_the_stored_data() -> None:
    silent, times, errors = tiles.build_tiles(runs := Sweep.read(front_page.STORED).runs, front_page.REAL_SIZES)
    drawn = heatmap.build_heatmap(runs, zoo.cases())  # which test_heatmap.py counts a second time
    cell = drawn.totals[drawn.exporters.index("dynamo")]
    assert silent.number == f"{cell.silent} of {cell.total}"
    assert errors.number == f"{len(list((ROOT / 'content/errors').glob('[a-z]*.py')))} errors"
    slow, fast = medians("dynamo"), medians("to_onnx")
    both = sorted(slow.keys() & fast.keys())
    assert f"{len(both)} full-size models" in times.text
    assert spread(slow[model] for model in both) == times.number
    assert f"needs {spread(fast[model] for model in both)}." in times.text


def medians(exporter: str) -> dict[str, float]:
    """The median export time of each model in the stored run of real models."""
    rows = json.loads(front_page.REAL_SIZES.read_text(encoding="utf-8"))["benchmarks"]
    named = {row["metadata"]["name"]: [value for run in row["runs"] for value in run["values"]] for row in rows}
    end = f", {exporter}"
    return {name.removesuffix(end): statistics.median(v) for name, v in named.items() if name.startswith("export, ") and name.endswith(end)}


def spread(seconds: Iterable[float]) -> str:
    """The shortest and the longest time, rounded to two digits."""
    low, *_, high = sorted(seconds)
    return "–".join(f"{float(f'{value:.1e}'):g}" for value in (low, high)) + " s"


def test_a_number_links_to_its_explanation() -> None:
    made = tiles.build_tiles(sweep_of(*RECORDS).runs, front_page.REAL_SIZES)
    html = front_page.render_template("tiles.html", tiles=made)
    assert made[0].number == "2 of 3"
    assert re.findall(r'<a href="([^"]+)"', html) == [
        "docs/support.html#outcome=silent&amp;mode=dynamic&amp;exporter=dynamo",
        "generated/benchmarks/real_sizes.html",
        "docs/errors.html",
    ]
    assert "<code>torch.onnx.export</code>" in html


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


def test_the_demo_shows_a_wrong_export_before_its_script_starts() -> None:
    page = front_page.render_instrument(MEASURED)
    wrong, right = re.findall(r'data-outcome="(\w+)"><h3>[^/]*</h3><p class="verdict" aria-live="polite">([^<]+)</p>', page)
    assert (wrong, right) == (("wrong", "Wrong. No error was raised."), ("right", "Right."))
    assert page.count('<span class="differs">2</span>') == instrument.START * instrument.WIDTH
    assert page.count("<span>3</span>") == 2 * instrument.START * instrument.WIDTH
    assert f'value="{instrument.START}"' in page
    script = (ROOT / "docs/_static/front.js").read_text(encoding="utf-8")
    assert all(f'"{verdict}"' in script for _, verdict in (wrong, right)), "the script writes the same verdicts"


def test_the_card_is_of_the_size_that_links_show(tmp_path: Path) -> None:
    card.draw_card(heatmap.build_heatmap(sweep_of(*RECORDS).runs, cases("mlp", "branch_on_batch")), tmp_path / "card.png")
    assert image.imread(tmp_path / "card.png").shape[:2] == (630, 1200)
    assert [path.name for path in tmp_path.iterdir()] == ["card.png"]


def test_the_demo_of_306_is_made_by_the_cells_of_the_lesson_that_need_no_browser() -> None:
    code = "\n".join(browser_demo.cells())
    assert {"class Recogniser(nn.Module):", "program = to_onnx(recogniser, samples[0], **options)"} <= set(code.splitlines())
    assert not re.search(r"^require\(|from browser|opened\(", code, re.MULTILINE)
    compile(code, "306", "exec")
