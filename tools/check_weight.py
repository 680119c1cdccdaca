"""Weighs the rendered site: each page compressed, without its figures; the whole without the runtime; who loads the search index.

usage: check_weight.py SITE
"""

from __future__ import annotations

import gzip
import re
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

PAGE, SITE = 350_000, 27_000_000  # bytes, at most
RUNTIME = "_static/ort"
INDEX = "searchindex.js"
LOADED = re.compile(r'<(?:script\b[^>]*\bsrc|link\b(?=[^>]*\brel="(?:stylesheet|preload)")[^>]*\bhref)="([^":]+)"')
SHOWN = 10  # of the heaviest pages


def main(site: Path) -> int:
    """Prints what is too heavy, then the heaviest pages and the whole; 1 when there is anything."""
    if not (site / "index.html").is_file():
        print(f"there is no site in {site}: run make site first")
        return 2
    pages = {path.relative_to(site).as_posix(): weight_of(path) for path in site.rglob("*.html") if "_static" not in path.parts}
    whole = sum(path.stat().st_size for path in site.rglob("*") if path.is_file() and not path.is_relative_to(site / RUNTIME))
    found = [*problems(site, pages, whole)]
    print(*found, sep="\n", end="\n" if found else "")
    for name, weight in sorted(pages.items(), key=lambda item: -item[1])[:SHOWN]:
        print(f"{weight / 1000:6.0f} kB  {name}")
    print(f"{whole / 1e6:.1f} MB the site without {RUNTIME}, of {SITE / 1e6:.2f}; a page has at most {PAGE / 1000:.0f} kB, compressed")
    return 1 if found else 0


def problems(site: Path, pages: dict[str, int], whole: int) -> Iterator[str]:
    """Yields a line for each page above its limit, for a site above its own, and for a page that loads the index and does not search."""
    for name, weight in pages.items():
        if weight > PAGE:
            yield f"{name}: {weight} bytes compressed, without its figures; at most {PAGE}"
        if name != "search.html" and any(path.name == INDEX for path in loaded_by(site / name)):
            yield f"{name} loads {INDEX}, which only the page that searches needs"
    if whole > SITE:
        yield f"the site has {whole} bytes without {RUNTIME}; at most {SITE}"


def weight_of(page: Path) -> int:
    """Bytes of a page, its scripts and its style sheets, each compressed as a server does."""
    return measure_compressed_size(page) + sum(measure_compressed_size(path) for path in loaded_by(page))


def loaded_by(page: Path) -> set[Path]:
    """Scripts and style sheets that a page names."""
    names = LOADED.findall(page.read_text(encoding="utf-8"))
    return {path for name in names if (path := (page.parent / name.partition("?")[0]).resolve()).is_file()}


@cache
def measure_compressed_size(path: Path) -> int:
    """Bytes of a file, compressed."""
    return len(gzip.compress(path.read_bytes(), compresslevel=6))


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
