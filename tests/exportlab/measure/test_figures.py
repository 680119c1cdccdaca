"""Colours, numbers and places of the plots of benchmarks."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from matplotlib import pyplot

from exportlab.measure import figures
from exportlab.measure.timing import Ratio

WIDE = Ratio((1.0, 2.0, 4.0))


@pytest.fixture(autouse=True)
def closed() -> Iterator[None]:
    """No figure outlives its test."""
    pyplot.switch_backend("agg")
    yield
    pyplot.close("all")


def test_what_was_found_is_the_title_and_what_the_axes_show_stands_below_it() -> None:
    figure = figures.panels("time, eager = 1")[0].figure
    before = figure.get_figheight()
    figures.entitle("it is fast " * 20)
    *found, shows = figure.get_suptitle().splitlines()
    assert " ".join(found) == ("it is fast " * 20).strip()
    assert shows == "time, eager = 1"
    assert figure.get_figheight() > before


def texts(axes: pyplot.Axes) -> list[str]:
    return [text.get_text() for text in axes.texts]


def test_an_exporter_has_its_own_colour_whoever_stands_beside_it() -> None:
    assert figures.colors(["dynamo"])["dynamo"] == figures.colors(["MLP", "to_onnx", "dynamo"])["dynamo"]
    assert figures.colors(["torch.export"])["torch.export"] == "#000000"
    assert len({*figures.COLORS.values(), *figures.FURTHER}) == len(figures.COLORS) + len(figures.FURTHER)


def test_other_names_get_further_colours_in_order() -> None:
    found = figures.colors(["x", "to_onnx", "y", "x"])
    assert (found["x"], found["y"]) == figures.FURTHER[:2]
    assert len(figures.colors(map(str, range(40)))) == 40


def test_a_variant_is_a_lighter_exporter() -> None:
    found = figures.colors(["to_onnx", "to_onnx, one file", "to_onnx, functions"])
    assert found["to_onnx"] == figures.COLORS["to_onnx"]
    assert len(set(found.values())) == 3
    assert figures.lightened("#000000", 1) == "#555555"


@pytest.mark.parametrize(
    ("value", "unit", "said"),
    [
        (1.254, "x", "1.25x"),
        (12345.6, "", "12,346"),
        (0.0312, "s", "0.0312 s"),
        (64e6, "B", "64 MB"),
        (1.5e9, "B", "1.5 GB"),
        (999, "B", "999 B"),
        (0, "B", "0 B"),
        (50, "%", "50%"),
        (100, "µs", "100 µs"),
        (-0.5, "", "-0.5"),
    ],
)
def test_numbers_are_plain(value: float, unit: str, said: str) -> None:
    assert figures.plain(value, unit) == said


def test_ticks_are_round_and_few() -> None:
    assert figures.ticks(0.9, 12) == [1, 2, 5, 10]
    assert figures.ticks(1, 1e5) == [1, 10, 100, 1000, 10000, 100000]
    assert 1 in figures.ticks(0.97, 1.04)
    assert len(figures.ticks(1, 1e12)) <= 8


def test_names_that_would_overlap_are_moved_apart_in_order() -> None:
    found = figures.moved_apart({"c": 1.2, "a": 0.5, "b": 0.51}, gap=0.1)
    assert found == pytest.approx({"a": 0.5, "b": 0.6, "c": 1.0})
    assert figures.moved_apart({"a": 1.0, "b": 1.0}, gap=0.1) == pytest.approx({"a": 0.9, "b": 1.0})


def test_lines_have_a_band_and_a_name_each() -> None:
    (axes,) = figures.panels("title")
    figures.lines(axes, {"to_onnx": {1: WIDE, 8: WIDE}, "dynamo": {1: 3.0, 8: [4.0, 6.0]}}, along="layers")
    assert list(axes.lines[1].get_ydata()) == [3.0, 5.0]
    band = axes.collections[0].get_datalim(axes.transData)
    assert (band.y0, band.y1) == (1.0, 4.0)
    assert sorted(texts(axes)) == ["to_onnx", "torch.onnx.export"]
    assert [label.get_text() for label in axes.get_xticklabels()] == ["1", "8"]


def test_bars_reach_the_median_and_whiskers_the_extremes() -> None:
    (axes,) = figures.panels("title")
    figures.bars(axes, {"MLP": {"to_onnx": WIDE, "dynamo": 3.0}, "BERT": {"to_onnx": 1.0}}, mark=1)
    assert [bar.get_width() for bar in axes.patches] == [2.0, 3.0, 1.0]
    assert list(axes.lines[0].get_xdata()) == [1.0, 4.0]
    assert texts(axes) == ["to_onnx 2x", "torch.onnx.export 3x", "1x"]
    assert [label.get_text() for label in axes.get_yticklabels()] == ["MLP", "BERT"]


def test_logarithmic_bars_begin_at_1() -> None:
    (axes,) = figures.panels("title")
    figures.bars(axes, {"to_onnx": 0.5, "dynamo": 8.0}, log=True)
    assert [(bar.get_x(), bar.get_width()) for bar in axes.patches] == [(1.0, -0.5), (1.0, 7.0)]


def test_logarithmic_bars_of_seconds_begin_below_all_of_them() -> None:
    (axes,) = figures.panels("title")
    figures.bars(axes, {"to_onnx": 0.5, "dynamo": 8.0}, unit="s", log=True)
    assert [(patch.get_x(), patch.get_x() + patch.get_width()) for patch in axes.patches] == [(0.25, 0.5), (0.25, 8.0)]
    assert axes.get_xlim()[0] <= 0.25


def test_stacks_stand_one_after_the_other() -> None:
    (axes,) = figures.panels("title")
    figures.stacks(axes, {"dynamo": {"capture": 1.0, "translation": WIDE}})
    assert [(bar.get_x(), bar.get_width()) for bar in axes.patches[:2]] == [(0.0, 1.0), (1.0, 2.0)]
    assert [text.get_text() for text in axes.get_legend().get_texts()] == ["capture", "translation"]
    assert texts(axes) == ["3x"]


def test_every_round_is_a_point_and_no_difference_is_grey() -> None:
    left, right = figures.panels("title", 2)
    figures.dots(left, {"same": Ratio((0.9, 1.0, 1.1)), "slower": Ratio((2.0, 2.1, 2.2))})
    figures.dots(right, {"MLP": {"to_onnx": Ratio((2.0, 2.1, 2.2)), "dynamo": 3.0}})
    points = [line for line in left.lines if line.get_marker() == "o"]
    assert [list(line.get_xdata()) for line in points] == [[0.9, 1.0, 1.1], [2.0, 2.1, 2.2]]
    assert points[0].get_color() != points[1].get_color()
    assert texts(right) == ["to_onnx", "torch.onnx.export"]
