"""Render a matplotlib figure as SVG that adapts to the theme of a page: transparent background, and readable colours in dark mode."""

from __future__ import annotations

import io
import re
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from matplotlib.text import Text

SVG, LINK = "http://www.w3.org/2000/svg", "{http://www.w3.org/1999/xlink}href"
SETTINGS: Any = {"svg.fonttype": "none", "svg.hashsalt": "exportlab"}  # keep text as text; make names reproducible
NO_METADATA: Any = dict.fromkeys(("Creator", "Date", "Format", "Type"))
DARK = "#14181e"  # background of the dark theme
READABLE = 4.5  # minimum contrast ratio of WCAG
NAMED = {"#000000": "currentColor", "#333333": "currentColor", "#ffffff": "var(--pst-color-background, #fff)"}
COLOR = re.compile(r"(?<=: )#[0-9a-f]{6}\b")
LONG = re.compile(r"(\d+\.\d\d)\d+")
FONT = re.compile(r" font-family: 'DejaVu Sans',[^;\"]*;?")  # matplotlib's font with its fallbacks
KEPT = "on-a-surface"  # class of a text on a coloured surface, whose colour stays
FITS = 560  # pixels of a column in which a wide figure is too small to read
STYLE = (
    ".drawn-figure { display: block; width: 100%; height: auto; margin: 1rem auto; fill: currentColor; }"
    ' .drawn-figure text { font-family: "DejaVu Sans", Verdana, Geneva, Arial, sans-serif; }'
    " .drawn-figure * { stroke-linejoin: round; stroke-linecap: butt; }"
    f" .drawn-figure .{KEPT} {{ fill: #000; }}"
)
TWICE = (
    f".drawn-twice {{ container-type: inline-size; }} .drawn-twice > :last-child {{ display: none; }}"
    f" @container (max-width: {FITS}px) {{ .drawn-twice > div {{ display: none; }} .drawn-twice > :last-child {{ display: block; }} }}"
)


def render_themed_svg(figure: Figure, name: str) -> str:
    """Return a figure as SVG with an id that must be unique on the page. It scales to the page, up to its original width."""
    from matplotlib import rc_context

    drawn = io.StringIO()
    with rc_context(SETTINGS):
        _mark_texts_on_surfaces(figure)
        figure.savefig(drawn, format="svg", transparent=True, metadata=NO_METADATA)
    text = drawn.getvalue()
    root = ElementTree.fromstring(text[text.index("<svg") :])
    _shorten(root)
    _recolor(root)
    _rename(root, name, set(re.findall(r'(?:href="|url\()#([^")]+)', text)))
    _flatten(root)
    _entitle(root, title_of(figure), set(COLOR.findall(text)))
    return re.sub(r"\s*\n\s*", "\n", ElementTree.tostring(root, encoding="unicode"))


def render_both(wide: str, narrow: str) -> str:
    """Return two drawings of one figure as HTML that shows the one that fits its column."""
    return f'<div class="drawn-twice"><style>{TWICE}</style>\n<div>{wide}</div>\n<div>{narrow}</div></div>'


def title_of(figure: Figure) -> str:
    """Return the titles of a figure and its axes."""
    titles = (figure.get_suptitle(), *(axes.get_title(place) for axes in figure.axes for place in ("left", "center", "right")))
    return ", ".join(" ".join(title.split()) for title in titles if title)


def _mark_texts_on_surfaces(figure: Figure) -> None:
    """Mark texts on bars, cells or images with an id that the SVG keeps."""
    figure.draw_without_rendering()  # matplotlib computes positions only when it draws
    for axes in figure.axes:
        surfaces = [*(patch.get_window_extent() for patch in axes.patches), *(image.get_window_extent() for image in axes.images)]
        for text in axes.texts:
            if any(surface.contains(*_middle(text)) for surface in surfaces):
                text.set_gid(KEPT)


def _middle(text: Text) -> tuple[float, float]:
    box = text.get_window_extent()
    return (box.x0 + box.x1) / 2, (box.y0 + box.y1) / 2


def _shorten(root: ElementTree.Element) -> None:
    """Remove details that aren't visible: decimals below a hundredth of a dot, and font names in each text."""
    for element in root.iter():
        element.attrib |= {key: LONG.sub(r"\1", value) for key, value in element.attrib.items() if key != "style"}
        if style := element.get("style"):
            element.set("style", FONT.sub("", style))


def _recolor(root: ElementTree.Element) -> None:
    """Use the colours of the page for all elements except the marked ones."""
    if root.get("id") == KEPT:
        root.set("class", KEPT)
        return
    if style := root.get("style"):
        root.set("style", COLOR.sub(lambda found: NAMED.get(found[0]) or f"var(--ink-{found[0][1:]}, {found[0]})", style))
    for child in root:
        _recolor(child)


def _rename(root: ElementTree.Element, name: str, known: set[str]) -> None:
    """Prefix the ids that are referenced, and remove other ids and namespaces."""
    for element in root.iter():
        element.tag = element.tag.rpartition("}")[2]
        if (own := element.attrib.pop("id", None)) in known:
            element.set("id", f"{name}-{own}")
        if link := element.attrib.pop(LINK, None):
            element.set("href", f"#{name}-{link[1:]}" if link.startswith("#") else link)
        if clipped := element.get("clip-path"):
            element.set("clip-path", clipped.replace("url(#", f"url(#{name}-"))


def _flatten(parent: ElementTree.Element) -> None:
    """Replace groups without attributes by their children."""
    for place, child in reversed(list(enumerate(parent))):
        _flatten(child)
        if child.tag == "g" and not child.attrib:
            parent[place : place + 1] = list(child)


def _entitle(root: ElementTree.Element, title: str, inks: set[str]) -> None:
    """Set title, size and dark-mode colours of the SVG, and remove matplotlib's global styles."""
    for parent in list(root.iter("defs")):
        for style in parent.findall("style"):
            parent.remove(style)
    width = float(root.attrib.pop("width").removesuffix("pt"))
    del root.attrib["height"]
    size = f"max-width: {width:.0f}pt"
    root.attrib |= {"xmlns": SVG, "class": "drawn-figure", "role": "img", "aria-label": title, "style": size}
    dark = "; ".join(f"--ink-{ink[1:]}: {bright}" for ink in sorted(inks - set(NAMED)) if (bright := brighten_color(ink)) != ink)
    rules = ElementTree.Element("style")
    rules.text = STYLE + (f' html[data-theme="dark"] .drawn-figure {{ {dark}; }}' if dark else "")
    root.insert(0, rules)


def brighten_color(color: str) -> str:
    """Mix a colour with as little white as is needed to make it readable in dark mode."""
    from matplotlib.colors import to_hex, to_rgb

    red, green, blue = to_rgb(color)
    for share in range(0, 101, 2):
        white = share / 100
        mixed = to_hex((red + (1 - red) * white, green + (1 - green) * white, blue + (1 - blue) * white))
        if contrast(mixed, DARK) >= READABLE:
            break
    return mixed


def contrast(one: str, other: str) -> float:
    """Return the contrast ratio of two colours, from 1 to 21."""
    low, high = sorted(map(_luminance, (one, other)))
    return (high + 0.05) / (low + 0.05)


def _luminance(color: str) -> float:
    from matplotlib.colors import to_rgb

    parts = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in to_rgb(color)]
    return sum(weight * part for weight, part in zip((0.2126, 0.7152, 0.0722), parts, strict=True))
