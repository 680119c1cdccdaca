"""Finds links inside the rendered site that lead nowhere.

usage: check_links.py FOLDER
"""

from __future__ import annotations

import sys
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit


class Page(HTMLParser):
    """The links of one page, and the names that others may point at."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.links: list[str] = []
        self.names: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        """Collects `href`, `src`, `id` and `name`."""
        values = {key: value for key, value in attrs if value}
        self.names |= {values[key] for key in ("id", "name") if key in values}
        self.links += [values[key] for key in ("href", "src") if key in values]


def broken(site: Path) -> Iterator[str]:
    """One line for each link to a file or an anchor that the site does not have."""
    pages = {path.resolve(): Page(path.read_text(encoding="utf-8")) for path in site.rglob("*.html") if "_static" not in path.parts}
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
    """Prints the broken links; 1 when there are any."""
    if not (site / "index.html").is_file():
        print(f"there is no site in {site}: run make site first")
        return 2
    found = sorted(set(broken(site)))
    print("\n".join(found) or "no broken link")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
