"""Holds pages of the rendered site against WCAG 2.1, levels A and AA, by axe-core in Chromium: in both themes, wide and narrow.

usage: PYTHONPATH=tutorials check_access.py SITE [PART OF A PAGE'S PATH]
"""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

from browser.chromium import Page, opened
from browser.hosting import served

AXE = Path(__file__).parents[1] / "build/web/node_modules/axe-core/axe.min.js"
THEMES = ("light", "dark")
WIDTHS = (1280, 390)
PAGES = (
    "index.html",
    "tutorials/index.html",
    "tutorials/101_module_to_file.html",
    "tutorials/302_language_model_with_cache.html",
    "tutorials/303_llama_exporter_against_exporter.html",
    "tutorials/306_in_the_browser.html",
    "generated/gallery/index.html",
    "generated/gallery/torch_onnx/cond.html",
    "generated/gallery/torch_onnx/linear_regression.html",
    "generated/benchmarks/index.html",
    "generated/benchmarks/latency.html",
    "generated/errors/op_without_library.html",
    "docs/support.html",
    "docs/errors.html?q=GuardOnDataDependentSymNode",
    "docs/api.html",
    "docs/converter.html",
    "docs/choosing.html",
    "docs/reference.html",
    "404.html",
    "search.html?q=dynamic",
    "genindex.html",
)
PREPARED = {  # what is true of a page when it shows what a reader looks at
    "index.html": "document.querySelector('.numbers span') != null",
    "docs/errors.html": "document.getElementById('error-found').dataset.state",
    "search.html": "document.querySelector('#search-results .search-summary')?.textContent.length > 0",
}
# axe-core calls text in the very colour of its ground "incomplete", because such text may be hidden on purpose.
RUN = """axe.run(document, {
  runOnly: ["wcag2a", "wcag2aa", "wcag21a", "wcag21aa"], resultTypes: ["violations", "incomplete"]
}).then((found) => {
  const described = (id) => ({ target, failureSummary }) => [id, target.flat().join(" "), failureSummary];
  const named = (list) => list.flatMap(({ id, nodes }) => nodes.map(described(id)));
  const invisible = ({ any }) => any.some(({ data }) => data?.messageKey === "equalRatio");
  const unsure = found.incomplete.map(({ id, nodes }) => ({ id, nodes: nodes.filter(invisible) }));
  return [...named(found.violations), ...named(unsure)];
})"""


def violations(page: Page, root: str, name: str) -> list[list[str]]:
    """Return what axe finds on a page: rule, element, reason."""
    go(page, root + name)
    if script := PREPARED.get(name.partition("?")[0]):
        page.wait_for(script)
    page.evaluate(f"{AXE.read_text(encoding='utf-8')}; true")
    found: list[list[str]] = page.evaluate(RUN)
    return found


def go(page: Page, address: str) -> None:
    """Open an address, and return when it is loaded; the page may take its query out of the address."""
    page.call("Page.navigate", url=address)
    page.wait_for(f"document.readyState == 'complete' && location.href.startsWith({json.dumps(address.partition('?')[0])})")


def set_theme(page: Page, root: str, theme: str) -> None:
    """Choose a theme as a reader does: the site keeps it for all its pages."""
    go(page, f"{root}{PAGES[0]}")
    page.evaluate(f"localStorage.setItem('mode', '{theme}'); localStorage.setItem('theme', '{theme}')")


def everything(site: Path, part: str) -> Iterator[tuple[str, str, int, list[list[str]]]]:
    """Yield each page with its theme, its width, and what is wrong with it."""
    chosen = [name for name in PAGES if part in name]
    with served(site) as root, opened("about:blank") as page:
        for theme in THEMES:
            set_theme(page, root, theme)
            for width in WIDTHS:
                page.call("Emulation.setDeviceMetricsOverride", width=width, height=900, deviceScaleFactor=1, mobile=False)
                for name in chosen:
                    yield name, theme, width, violations(page, root, name)


def main(site: Path, part: str = "") -> int:
    """Print what is wrong; 1 when there is anything."""
    if not (site / "index.html").is_file():
        print(f"there is no site in {site}: run make site first")
        return 2
    if shutil.which("chromium") is None or not AXE.is_file():
        print("left out: access is checked by axe-core (make web, which needs npm) in Chromium (Debian: apt install chromium)")
        return 0
    if absent := [name for name in PAGES if not (site / name.partition("?")[0]).is_file()]:
        print(f"not in the site: {', '.join(absent)}")
        return 1
    seen = found = 0
    for name, theme, width, wrong in everything(site, part):
        seen += 1
        found += len(wrong)
        print(*report(f"{name}, {theme}, {width} px", wrong), sep="", end="", flush=True)
    print(f"axe-core names {found} violations of WCAG 2.1 AA in {seen} views of {seen // len(THEMES) // len(WIDTHS)} pages")
    return 1 if found else 0


def report(view: str, wrong: list[list[str]]) -> Iterator[str]:
    """Yield a line for each element of a page with a violation."""
    for rule, element, reason in wrong:
        yield f"{view}: {rule}: {element}: {' '.join(reason.split())}\n"


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), *sys.argv[2:]))
