"""Figures for pages: nothing white behind them, their ink readable on both themes, their words left as they are."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any
from xml.etree import ElementTree

import pytest
from matplotlib import pyplot

from exportlab.show.themed import DARK, READABLE, brighten_color, contrast, render_themed_svg, title_of


@pytest.fixture
def axes() -> Iterator[Any]:
    figure, drawn = pyplot.subplots()
    yield drawn
    pyplot.close(figure)


def texts(svg: str) -> list[str]:
    return [text.text or "" for text in ElementTree.fromstring(svg).iter("{http://www.w3.org/2000/svg}text")]


def test_no_colour_of_paper_is_left_and_black_is_that_of_the_page(axes: Any) -> None:
    axes.bar([1, 2], [3, 4], color="#0072B2", edgecolor="white")
    axes.plot([1, 2], [1, 2], color="black")
    drawn = render_themed_svg(axes.figure, "a")
    assert not re.search(r"(fill|stroke): #(ffffff|000000|333333)", drawn)
    assert "currentColor" in drawn
    assert "stroke: var(--pst-color-background, #fff)" in drawn, "the edge of a bar"


def test_ink_too_dark_for_the_dark_theme_is_brighter_there_and_other_ink_stays(axes: Any) -> None:
    axes.plot([1, 2], [1, 2], color="#0072B2")
    axes.plot([1, 2], [2, 1], color="#E69F00")
    drawn = render_themed_svg(axes.figure, "a")
    assert "stroke: var(--ink-0072b2, #0072b2)" in drawn
    (rule,) = re.findall(r'html\[data-theme="dark"\] \.drawn-figure \{ (.*?); \}', drawn)
    assert f"--ink-0072b2: {brighten_color('#0072b2')}" in rule
    assert "e69f00" not in rule


@pytest.mark.parametrize("color", ["#0072b2", "#882255", "#444444", "#555555", "#0000ff", "#e69f00", "#ffffff"])
def test_a_brightened_colour_can_be_read(color: str) -> None:
    assert contrast(brighten_color(color), DARK) >= READABLE


def test_contrast_is_counted_as_wcag_does() -> None:
    assert contrast("#000000", "#ffffff") == pytest.approx(21)
    assert contrast("#777777", "#ffffff") == pytest.approx(4.48, abs=0.01)


def test_a_text_on_a_surface_keeps_its_colour_and_one_beside_it_does_not(axes: Any) -> None:
    axes.add_patch(pyplot.Rectangle((0, 0), 1, 1, fc="#009E73"))
    axes.text(0.5, 0.5, "on it", color="white")
    axes.text(2, 2, "beside it")
    axes.set(xlim=(0, 3), ylim=(0, 3))
    drawn = render_themed_svg(axes.figure, "a")
    assert re.search(r'<g class="on-a-surface">\s*<text style="[^"]*fill: #ffffff[^"]*"[^>]*>on it<', drawn)
    assert not re.search(r'on-a-surface">\s*<text[^>]*>beside it', drawn)


def test_every_line_of_a_title_is_there_and_the_figure_is_named_by_it(axes: Any) -> None:
    axes.figure.suptitle("first line\nsecond line\nthird line")
    axes.set_title("of the axes")
    drawn = render_themed_svg(axes.figure, "a")
    assert texts(drawn)[-3:] == ["first line", "second line", "third line"]
    assert title_of(axes.figure) == "first line second line third line, of the axes"
    assert 'role="img" aria-label="first line second line third line, of the axes"' in drawn


def test_a_number_in_a_text_keeps_its_digits_and_a_place_does_not(axes: Any) -> None:
    axes.set_title("off by 0.0001")
    drawn = render_themed_svg(axes.figure, "a")
    assert "off by 0.0001" in texts(drawn)
    assert not re.search(r' (d|x|y|transform)="[^"]*\.\d\d\d', drawn)


def test_two_figures_of_a_page_share_no_name_and_each_finds_its_own(axes: Any) -> None:
    axes.plot([1, 2], [1, 2], marker="o")
    one, other = (set(re.findall(r' id="([^"]+)"', render_themed_svg(axes.figure, name))) for name in ("a", "b"))
    assert one
    assert not one & other
    drawn = render_themed_svg(axes.figure, "a")
    asked = {*re.findall(r'href="#([^"]+)"', drawn), *re.findall(r"url\(#([^)]+)\)", drawn)}
    assert asked
    assert asked <= one
