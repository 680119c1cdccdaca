"""Pastes the message of each known error into the rendered site, by Chromium, and expects its page first.

usage: PYTHONPATH=tutorials check_search.py SITE
"""

from __future__ import annotations

import json
import re
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote

from browser.chromium import Page, opened
from browser.hosting import served

from exportlab.errors import KnownError, registered

ROOT = Path(__file__).parents[1]
FIRST_RESULT = "(document.querySelector('#search-results li a') ?? {}).href"
DONE = "document.readyState == 'complete' && document.querySelector('#search-results .search-summary')?.textContent.length > 0"
PASTED = """(() => {{
  const box = document.getElementById("error-message");
  box.value = {message};
  box.dispatchEvent(new Event("input"));
  return (document.querySelector("#error-found a") ?? {{}}).href;
}})()"""


def not_found(page: Page, address: str) -> Iterator[str]:
    """One line for each error that its message does not find: by the box on the index, or by the search of the site."""
    page.wait_for("document.readyState == 'complete' && document.getElementById('error-message') != null")
    for error in registered():
        found = page.evaluate(PASTED.format(message=json.dumps(message_of(error))))
        if not _is_page_of(found, error):
            yield f"{error.name}: the box on the index finds {found}"
    for error in registered():
        query = query_for(error)
        page.call("Page.navigate", url=f"{address}search.html?q={quote(query)}")
        page.wait_for(f"new URLSearchParams(location.search).get('q') == {json.dumps(query)} && {DONE}")
        found = page.evaluate(FIRST_RESULT)
        if not _is_page_of(found, error):
            yield f"{error.name}: the search for {query!r} finds {found}"


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
        found = list(not_found(page, address))
    print("\n".join(found) or f"each of {len(registered())} messages finds its page first")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
