"""Opens each page of the rendered site in Chromium, wide and narrow, and names code and tables that don't fit and don't scroll by keys.

usage: PYTHONPATH=tutorials check_pages.py SITE [PART OF A PAGE'S PATH]
"""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

from browser.chromium import Page, opened
from browser.hosting import served

sys.path.append(str(Path(__file__).parents[1] / "docs/_ext"))
from redirects import REDIRECTS

WIDE, NARROW = 1280, 390
# A table scrolls in its own box at 390 px.
SCROLLS = ("docs/atlas", "docs/outcomes", "docs/support", "docs/to_onnx", "docs/versions", "genindex", "tutorials/205")
LOADED = "document.readyState == 'complete' && location.href == {address}"
# A line of code that doesn't fit scrolls, and the keyboard reaches its block. It doesn't wrap, which would hide indents and columns.
CLIPPED = """[...document.querySelectorAll("main pre")].filter(it => it.scrollWidth > it.clientWidth + 1)
  .filter(it => it.tabIndex != 0 || !["auto", "scroll"].includes(getComputedStyle(it).overflowX)).length"""
SCROLLING = """(document.documentElement.scrollWidth > innerWidth + 1 ? 1 : 0) +
  [...document.querySelectorAll("main :is(table.compares, .finding-pivot)")]
  .filter(it => it.scrollWidth > it.clientWidth + 1 && it.tabIndex != 0).length +
  [...document.querySelectorAll("main table:not(#matrix, .compares, .pivot)")].filter(it => [it, it.parentElement].some(box =>
    box.scrollWidth > box.clientWidth + 1 && box.clientWidth > 0 && getComputedStyle(box).display != "table")).length"""


def find_layout_problems(page: Page, addresses: list[str]) -> Iterator[str]:
    """Yield a line for each page with clipped code at 1280 px, or with a table at 390 px that doesn't fold and isn't meant to scroll."""
    for width, script, what in ((WIDE, CLIPPED, "blocks clipped"), (NARROW, SCROLLING, "tables that scroll")):
        page.call("Emulation.setDeviceMetricsOverride", width=width, height=900, deviceScaleFactor=1, mobile=False)
        for address in addresses:
            go(page, address)
            known = width == NARROW and name_of(address).startswith(SCROLLS)
            if (count := page.evaluate(script)) and not known:
                yield f"{name_of(address)} at {width}: {count} {what}"


def go(page: Page, address: str) -> None:
    """Open an address, and return when it is loaded."""
    page.call("Page.navigate", url=address)
    page.wait_for(LOADED.format(address=json.dumps(address)))


def name_of(address: str) -> str:
    """Return the path of a page inside the site."""
    return address.split("/", 3)[3]


def problems(site: Path, part: str) -> Iterator[str]:
    """Yield a line for each thing wrong with the pages whose path has `part` in it."""
    moved = {f"{page}.html" for page in REDIRECTS}
    paths = [path for path in site.rglob("*.html") if "_static" not in path.parts]
    names = sorted({path.relative_to(site).as_posix() for path in paths} - moved)
    with served(site) as root, opened("about:blank") as page:
        yield from find_layout_problems(page, [root + name for name in names if part in name])


def main(site: Path, part: str = "") -> int:
    """Print what is wrong; 1 when there is anything."""
    if not (site / "index.html").is_file():
        print(f"there is no site in {site}: run make site first")
        return 2
    if shutil.which("chromium") is None:
        print("left out: how pages look needs Chromium (Debian: apt install chromium)")
        return 0
    found = 0
    for line in problems(site, part):
        found += 1
        print(line, flush=True)
    print(
        f"{found} things are wrong with the pages"
        if found
        else f"no code is clipped at {WIDE} px; tables fit {NARROW} px, but for those of {', '.join(SCROLLS)}"
    )
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), *sys.argv[2:]))
