"""Searches the rendered site in Chromium: messages of known errors find their page first, other queries a fit page in the first three.

usage: PYTHONPATH=tutorials check_search.py SITE
"""

from __future__ import annotations

import csv
import json
import re
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

from browser.chromium import Page, opened
from browser.hosting import served

sys.path.append(str(Path(__file__).parents[1] / "docs/_ext"))
from error_box import NAME, judge_quote
from site_files import STATIC

from exportlab.errors import KnownError, load_known_errors

ROOT = Path(__file__).parents[1]
QUERIES, QUOTES = ROOT / "tests/site/queries.csv", ROOT / "tests/site/quotes.csv"
RESULTS = "[...document.querySelectorAll('#search-results li > a')].map((found) => found.href)"
DONE = "document.readyState == 'complete' && document.querySelector('#search-results .search-summary')?.textContent.length > 0"
PASTED = """(() => {{
  const box = document.getElementById("error-message");
  delete document.getElementById("error-found").dataset.state;
  box.value = {message};
  box.dispatchEvent(new Event("input"));
  return (document.querySelector("#error-found a") ?? {{}}).href;
}})()"""


def not_found(page: Page, address: str) -> Iterator[str]:
    """One line for each error that its message does not find: by the box on the index, or by the search of the site."""
    page.wait_for("document.readyState == 'complete' && document.getElementById('error-message') != null")
    for error in load_known_errors():
        found = page.evaluate(PASTED.format(message=json.dumps(message_of(error))))
        if not _is_page_of(found, error):
            yield f"{error.name}: the box on the index finds {found}"
    for error in load_known_errors():
        found = first_pages(page, address, query_for(error))
        if f"generated/errors/{error.name}" not in found[: known_by(query_for(error))]:
            yield f"{error.name}: the search for {query_for(error)!r} finds {', '.join(found[:3])}"


def known_by(line: str) -> int:
    """How many errors are known by a line of a message: one line can have several causes, and the search sees no more."""
    return max(1, sum(bool(re.search(error.message, line)) for error in load_known_errors()))


def badly_ranked(page: Page, address: str) -> Iterator[str]:
    """One line for each query of tests/site/queries.csv that finds no page that fits among the first three."""
    with QUERIES.open(encoding="utf-8", newline="") as rows:
        for row in csv.DictReader(rows):
            found = first_pages(page, address, row["query"])
            if not set(found[:3]) & set(row["pages"].split()):
                yield f"the search for {row['query']!r} finds {', '.join(found[:3])}"


def first_pages(page: Page, address: str, query: str) -> list[str]:
    """The pages that a search finds, the first first."""
    page.call("Page.navigate", url=f"{address}search.html?q={quote(query)}")
    page.wait_for(f"new URLSearchParams(location.search).get('q') == {json.dumps(query)} && {DONE}")
    return [re.sub(r"\.html.*", "", found.removeprefix(address)) for found in page.evaluate(RESULTS)]


def wrong_guesses(page: Page, address: str) -> Iterator[str]:
    """One line for each of the quotes for which the box's script and its twin in Python find different pages."""
    index = json.loads((STATIC / NAME).read_text(encoding="utf-8"))
    page.call("Page.navigate", url=f"{address}docs/errors.html")
    page.wait_for("document.readyState == 'complete' && document.getElementById('error-message') != null")
    with QUOTES.open(encoding="utf-8", newline="") as rows:
        for row in csv.DictReader(rows):
            page.evaluate(PASTED.format(message=json.dumps(row["message"])))
            page.wait_for("document.getElementById('error-found').dataset.state")
            found = page.evaluate("(document.querySelector('#error-found a') ?? {}).href") or ""
            if judge_quote(row, index) in ("certain", "unsure", "near") and not set(f"{row['page']} {row['near']}".split()) & {
                Path(found).stem
            }:
                yield f"{row['source']}: the box finds {found}"


def _is_page_of(found: str | None, error: KnownError) -> bool:
    return bool(re.search(rf"/generated/errors/{error.name}\.html", found or ""))


def message_of(error: KnownError) -> str:
    """What it said when its page was made."""
    return (ROOT / f"generated/errors/{error.name}.txt").read_text(encoding="utf-8")


def query_for(error: KnownError) -> str:
    """What one would search for: the line of the message by which it is known; of a silent one, what happens."""
    if error.stage == "silent":
        return error.title.replace("`", "")
    match = re.search(error.message, message_of(error))
    start = message_of(error).rfind("\n", 0, match.start()) + 1
    return " ".join(message_of(error)[start : match.end()].split())  # a browser makes one line of what is pasted


def main(site: Path) -> int:
    """Prints what is not found; 1 when there is anything."""
    if not (site / "search.html").is_file():
        print(f"there is no site in {site}: run make site first")
        return 2
    if shutil.which("chromium") is None:
        print("left out: the search of the site needs Chromium (Debian: apt install chromium)")
        return 0
    with served(site) as address, opened(f"{address}docs/errors.html") as page:
        found = [*not_found(page, address), *wrong_guesses(page, address), *badly_ranked(page, address)]
    print("\n".join(found) or f"each of {len(load_known_errors())} messages finds its page first, and each query a page that fits")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
