"""Figures of export times: seconds on linear axes with slopes, points by model, and bars with numbers."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from matplotlib import pyplot

from exportlab.measure import bar_panels, figures, seconds
from exportlab.measure.tables import compared, find_best
from exportlab.measure.timing import Timings

FOUND = {
    1: Timings((), ({"to_onnx": 1.0, "dynamo": 2.0}, {"to_onnx": 1.2, "dynamo": 2.0})),
    5: Timings((), ({"to_onnx": 1.4, "dynamo": 10.0}, {"to_onnx": 1.6, "dynamo": 10.0})),
    9: Timings((), ({"to_onnx": 1.8}, {"to_onnx": 2.0})),
}


@pytest.fixture(autouse=True)
def _closed() -> Iterator[None]:
    yield
    pyplot.close("all")


def test_a_slope_is_of_each_round_from_the_fewest_layers_to_the_most() -> None:
    assert seconds.slope(FOUND, "to_onnx").seen == pytest.approx((0.1, 0.1))
    assert seconds.slope(FOUND, "dynamo").seen == pytest.approx((2, 2))
    assert seconds.slope({9: FOUND[9]}, "to_onnx") is None


@pytest.mark.parametrize(("value", "text"), [(0.0291, "29 ms"), (1.24, "1.2 s"), (47e-6, "47 µs"), (0.0061, "6.1 ms")])
def test_a_time_has_a_unit_that_fits(value: float, text: str) -> None:
    assert seconds.spoken_time(value) == text


def test_lines_have_linear_axes_from_zero_and_slopes_that_do_not_overlap() -> None:
    (axes,) = figures.panels("One export")
    seconds.draw_layers(axes, FOUND)
    assert (axes.get_xscale(), axes.get_yscale()) == ("linear", "linear")
    assert (axes.get_xlim()[0], axes.get_ylim()[0]) == (0, 0)
    labels = {text.get_text(): text.get_position()[1] for text in axes.texts}
    assert set(labels) == {"to_onnx: 100 ms a layer", "torch.onnx.export: 2.0 s a layer"}
    low, high = sorted(labels.values())
    assert high - low >= figures.GAP - 1e-9


def test_what_is_not_right_has_a_cross_in_its_color() -> None:
    (axes,) = figures.panels("One export")
    seconds.draw_models(axes, {"small": FOUND[1], "large": FOUND[9]}, ["to_onnx", "dynamo"])
    (cross,) = [text for text in axes.texts if text.get_text() == "✕"]
    assert (cross.get_color(), cross.xy[1]) == (figures.COLORS["dynamo"], -1)
    assert [text.get_text() for text in axes.get_legend().get_texts()] == ["to_onnx", "torch.onnx.export", seconds.CROSS]


def test_equal_points_are_apart() -> None:
    (axes,) = figures.panels("Nodes")
    seconds.draw_models(axes, {"a": Timings((), ({"to_onnx": 3.0, "dynamo": 3.0},))}, ["to_onnx", "dynamo"], unit="")
    heights = [line.get_ydata()[0] for line in axes.lines if line.get_marker() == "o"]
    assert len(set(heights)) == 2


def test_bars_have_numbers_and_crosses() -> None:
    values = bar_panels.values_of({"few": FOUND[1], "many": FOUND[9]}, factor=1000)
    bar_panels.draw_bar_panels(values, "One export, milliseconds", "ms")
    first, second = pyplot.gcf().axes
    assert [text.get_text() for text in first.texts] == ["1,100", "2,000"]
    assert [text.get_text() for text in second.texts] == ["1,900", "✕"]
    assert first.get_xlim()[0] == second.get_xlim()[0] == 0
    assert first.get_xlim() != second.get_xlim()
    bar_panels.draw_bar_panels(values, "One export, milliseconds", "ms", one_scale=True)
    first, second = pyplot.gcf().axes
    assert first.get_xlim() == second.get_xlim()


def test_the_best_and_what_does_not_differ_from_it_are_bold() -> None:
    rounds = tuple({"a": 1.0 + noise, "b": 1.0 - noise, "c": 2.0} for noise in (-0.01, 0.01, 0.02, -0.02, 0.03, -0.03))
    groups = {"model": Timings((), rounds), "other": Timings((), ({"a": 1.0, "c": 3.0},) * 6), "alone": Timings((), ({"a": 1.0},) * 6)}
    assert find_best(groups["model"]) == {"a", "b"}
    assert find_best(groups["alone"]) == set()
    pivot = compared(groups, "a", unit="s", title="A run").pivot_html()
    assert '<th scope="row">model</th><td><b>1</b></td><td><b>1</b></td><td>2</td>' in pivot
    assert '<th scope="row">other</th><td><b>1</b></td><td>–</td><td>3</td>' in pivot
    assert pivot.startswith('<table class="exportlab pivot"><caption>A run, s. Bold: ')
