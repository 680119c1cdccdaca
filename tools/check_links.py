"""Finds links inside the rendered site that lead nowhere, and what pages show of the machine that built them: its paths, its warnings.

usage: check_links.py FOLDER
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

ROOT = Path(__file__).parents[1]
OF_THE_MACHINE = re.compile(rf"[^\s\"'<>]*(?:site-packages/|\.venv/lib|ipykernel_\d|{re.escape(str(ROOT))}(?![\w-]))[^\s\"'<>]*")
WARNING = re.compile(r"\S+\.py:\d+: \w*Warning: .*")  # as Python prints one; a table may quote what an exporter warned of
BENCHMARKS = "generated/benchmarks/"  # whose pages show no warnings: these are about models that the reader did not write


class Page(HTMLParser):
    """The links of one page, the names that others may point at, and the text in it."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.links: list[str] = []
        self.names: set[str] = set()
        self.text: list[str] = []
        self.feed(text)

    def handle_data(self, data: str) -> None:
        """Collects text, scripts and data that stand in the page included."""
        self.text.append(data)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Collects `href`, `src`, `id` and `name`."""
        values = {key: value for key, value in attrs if value}
        self.names |= {values[key] for key in ("id", "name") if key in values}
        self.links += [values[key] for key in ("href", "src") if key in values]


def read(site: Path) -> dict[Path, Page]:
    """The pages of a site by their paths."""
    return {path.resolve(): Page(path.read_text(encoding="utf-8")) for path in site.rglob("*.html") if "_static" not in path.parts}


def find_machine_paths(site: Path, pages: dict[Path, Page]) -> Iterator[str]:
    """One line for each path of the machine that a page shows, and for each warning that a benchmark's page shows."""
    for path, page in pages.items():
        name, text = path.relative_to(site.resolve()).as_posix(), "".join(page.text)
        for found in OF_THE_MACHINE.findall(text):
            yield f"{name}: {found[:120]}: a path of the machine that built the site"
        for found in WARNING.findall(text) if name.startswith(BENCHMARKS) else ():
            yield f"{name}: {found[:120]}: a warning"


def find_broken_links(site: Path, pages: dict[Path, Page]) -> Iterator[str]:
    """One line for each link to a file or an anchor that the site does not have."""
    for path, page in pages.items():
        for link in page.links:
            problem = _problem(path, link, pages)
            if problem:
                yield f"{path.relative_to(site.resolve())}: {link}: {problem}"


def _problem(path: Path, link: str, pages: dict[Path, Page]) -> str:
    parts = urlsplit(link)
    if parts.scheme or parts.netloc:
        return ""
    target = (path.parent / unquote(parts.path)).resolve() if parts.path else path
    if not target.exists():
        return "no such file"
    page = pages.get(target / "index.html" if target.is_dir() else target)
    names_nothing = parts.fragment.startswith(":~:") or "=" in parts.fragment  # a text to find, the state of a filter
    anchored = parts.fragment and page is not None and not names_nothing
    return "no such anchor" if anchored and unquote(parts.fragment) not in page.names else ""


def main(site: Path) -> int:
    """Prints what it finds; 1 when there is anything."""
    if not (site / "index.html").is_file():
        print(f"there is no site in {site}: run make site first")
        return 2
    pages = read(site)
    found = sorted({*find_broken_links(site, pages), *find_machine_paths(site, pages)})
    print("\n".join(found) or "no broken link, and no path of the machine that built the site")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
