"""Figures for wide and for narrow columns."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from matplotlib import pyplot

from exportlab.measure import dot_plot, figures, finding
from exportlab.measure.layout import NARROW, WIDE, layout, use_layout

LEAST = 11  # pixels of text in a column of 358, on a phone of 390
COLUMN = 358


@pytest.fixture(autouse=True)
def closed() -> Iterator[None]:
    """No figure outlives its test."""
    pyplot.switch_backend("agg")
    yield
    pyplot.close("all")


def test_a_block_has_its_layout() -> None:
    with use_layout(NARROW):
        assert layout() is NARROW
    assert layout() is WIDE


def test_plots_are_side_by_side_or_below_each_other() -> None:
    for wanted, below in ((WIDE, False), (NARROW, True)):
        with use_layout(wanted):
            first, second = figures.panels("two", 2)
            first.figure.draw_without_rendering()
            assert first.figure.get_figwidth() == wanted.width
            boxes = first.get_position(), second.get_position()
            assert bool(boxes[0].y0 >= boxes[1].y1) is below
            assert bool(boxes[0].x1 <= boxes[1].x0) is not below


def draw() -> None:
    left, right = figures.panels("Time of a run; eager = 1: lower is faster, and more words", 2)
    figures.bars(left, {"to_onnx": 2.0, "a row whose name is long": 3.0}, title="bars")
    figures.lines(right, {"to_onnx": {1: 2.0, 4: 3.0}}, title="lines", along="batch")


def test_a_finding_is_drawn_twice_and_the_page_shows_the_one_that_fits(tmp_path: Path) -> None:
    picture = tmp_path / "a.svg"
    finding.write_finding(picture, "Full run", ("It is fast",), draw)
    page = picture.read_text()
    assert page.count("<svg ") == 2
    assert re.search(r"@container \(max-width: \d+px\)", page)
    ids = re.findall(r' id="([^"]+)"', page)
    assert len(ids) == len(set(ids))
    narrow = page[page.rindex("<svg ") :]
    width = float(re.findall(r'viewBox="0 0 ([\d.]+)', narrow)[0])
    sizes = [float(size) for size in re.findall(r"font-size: ([\d.]+)px|font: ([\d.]+)px", narrow) for size in size if size]
    assert sizes
    assert min(sizes) * COLUMN / width >= LEAST


def test_labels_are_on_the_lowest_line_on_which_they_overlap_no_other() -> None:
    spans = {"a": (0.0, 30.0), "b": (40.0, 80.0), "c": (20.0, 90.0)}
    assert dot_plot.levels(spans) == {"a": 0, "b": 0, "c": 1}


def test_a_text_is_readable_on_white() -> None:
    assert figures.readable("#000000") == "#000000"
    assert figures.readable("#E69F00") != "#E69F00"
