"""The shape of a figure: places between 0 and 1, from the top left, for every kind of mark."""

from __future__ import annotations

import pytest
from matplotlib.figure import Figure

from exportlab.measure.sketch import sketch


def test_bars_lines_and_dots_are_where_they_are_drawn() -> None:
    (axes, empty) = Figure().subplots(1, 2)
    axes.set(xlim=(0, 10), ylim=(0, 4))
    axes.barh(1, 5, left=2, height=2, color="#0072B2")
    axes.barh(3, 0)
    axes.plot([0, 10], [0, 4], color="#D55E00")
    axes.plot([5], [3], "o", color="#009E73")
    axes.axvline(20, color="black")
    drawn, nothing = sketch(empty.figure)
    assert [(mark["kind"], mark["color"]) for mark in drawn] == [
        *(("bar", "#0072b2"), ("line", "#d55e00"), ("dots", "#009e73"), ("line", "#000000")),
    ]
    assert drawn[0]["at"] == pytest.approx([0.2, 0.5, 0.7, 1], abs=2e-3)
    assert drawn[1]["at"] == [[0, 1], [1, 0]]
    assert drawn[2]["at"] == [[0.5, 0.25]]
    assert drawn[3]["at"] == [[1, 1], [1, 0]], "at the edge, and not outside"
    assert nothing == []
