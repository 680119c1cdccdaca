"""Uses the demos of the site in Chromium: two sliders, a drawing, a sentence that a model completes. Models run there, and are right.

usage: PYTHONPATH=tutorials check_demos.py SITE
"""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Iterator
from pathlib import Path

from browser.chromium import Page, opened
from browser.hosting import served
from browser.strokes import STROKES

LINKS = 22  # at most, on the landing page, of those that a reader sees, without the numbers of the heatmap
MOVE = """(() => {{
  const slider = document.getElementById("instrument-batch");
  slider.value = {rows};
  slider.dispatchEvent(new Event("input"));
}})()"""
STATE = """({
  numbers: [...document.querySelectorAll("[data-of] .numbers")].map((all) => [...all.children].map((e) => Number(e.textContent))),
  verdicts: [...document.querySelectorAll("[data-of] .verdict")].slice(1).map((e) => e.textContent),
})"""
BRANCHES = "generated/gallery/torch_onnx/cond.html"
SLIDER = """(() => {{
  const slider = document.getElementById("demo-branches-value");
  slider.value = {place};
  slider.dispatchEvent(new Event("input"));
}})()"""
BRANCHES_SHOW = """({
  numbers: [...document.querySelectorAll("#demo-branches .demo-numbers")].map((all) => [...all.children].map((e) => Number(e.textContent))),
  outcomes: [...document.querySelectorAll("#demo-branches [data-outcome]")].map((e) => e.dataset.outcome),
  ran: [...document.querySelectorAll("#demo-branches .runs")].map((e) => e.textContent.split(":")[0]),
})"""
SENTENCE = "tutorials/302_language_model_with_cache.html"
FRAME = "document.querySelector('iframe')?.contentDocument"
CORNER = """(() => {
  const frame = document.querySelector("iframe");
  frame.scrollIntoView({ block: "center", behavior: "instant" });
  const [outer, inner] = [frame, frame.contentDocument.getElementById("board")].map((e) => e.getBoundingClientRect());
  return [outer.left + inner.left, outer.top + inner.top];
})()"""
FETCHED = "performance.getEntriesByType('resource').filter((entry) => entry.name.includes('/ort/')).length"
VISIBLE_LINKS = """[...document.querySelectorAll("a[href]:not(.headerlink, .heatmap td a)")].filter((a) => a.checkVisibility()).length"""


def build_expected_state(rows: int) -> dict[str, object]:
    """What the page shows at a batch: eager, the file that kept one branch, the file that has both."""
    right = 2 if rows > 4 else 3
    numbers = [[value] * rows * 3 for value in (right, 2, right)]
    return {"numbers": numbers, "verdicts": ["Right." if rows > 4 else "Wrong. No error was raised.", "Right."]}


def problems(page: Page, runs_here: bool) -> Iterator[str]:
    """One line for each batch at which the page shows something else, or did not compute it; and one for too many links."""
    page.wait_for("document.readyState == 'complete' && document.querySelector('.numbers span') != null")
    for rows in (3, 8, 1, 4, 5):
        page.evaluate(MOVE.format(rows=rows))
        if runs_here:
            page.wait_for(f"document.querySelector('.instrument').dataset.computed == '{rows}'")
        if (seen := page.evaluate(STATE)) != build_expected_state(rows):
            yield f"at a batch of {rows} the landing page shows {json.dumps(seen)}"
    if not runs_here and page.evaluate(FETCHED):
        yield "the landing page loads ONNX Runtime, which this site does not have"
    if (links := page.evaluate(VISIBLE_LINKS)) > LINKS:
        yield f"the landing page has {links} links, more than {LINKS}"


def misread(page: Page, address: str) -> Iterator[str]:
    """One line for each digit that the frame of lesson 306 takes for another."""
    page.call("Page.navigate", url=f"{address}tutorials/306_in_the_browser.html")
    page.wait_for("document.readyState == 'complete' && document.querySelector('button[data-frame]') != null")
    page.evaluate("document.querySelector('button[data-frame]').click()")
    page.wait_for(f"{FRAME}?.body?.dataset.ready")
    for digit in (2, 7):
        page.evaluate(f"{FRAME}.getElementById('clear').click()")
        left, top = page.evaluate(CORNER)
        for stroke in STROKES[digit]:
            page.stroke([(left + 50 + 1.8 * x, top + 50 + 1.8 * y) for x, y in stroke])
        page.wait_for(f"{FRAME}.body.dataset.scores")
        if (said := page.evaluate(f"{FRAME}.getElementById('digit').textContent")) != str(digit):
            yield f"the page of lesson 306 takes a drawn {digit} for {said!r}"


def find_branch_errors(page: Page, address: str, runs_here: bool) -> Iterator[str]:
    """One line for each place of the slider at which the recipe on two branches shows other numbers than eager's, or the wrong branch."""
    go(page, f"{address}{BRANCHES}", "document.getElementById('demo-branches-data') != null")
    data = json.loads(page.evaluate("document.getElementById('demo-branches-data').textContent"))
    for place, (value, eager) in enumerate(zip(data["values"], data["eager"], strict=True)):
        page.evaluate(SLIDER.format(place=place))
        if runs_here:
            page.wait_for(f"document.getElementById('demo-branches').dataset.computed == '{place}'")
        seen = page.evaluate(BRANCHES_SHOW)
        wanted = {"outcomes": ["right", "right" if value > 0 else "wrong"], "ran": ["then" if value > 0 else "else", "the whole file"]}
        like_eager = [all(abs(a - b) < 1e-3 for a, b in zip(shown, eager, strict=True)) for shown in seen["numbers"]]
        if like_eager != [True, True, value > 0] or {**seen, **wanted} != seen:
            yield f"at a first value of {value} the recipe on two branches shows {json.dumps(seen)}"


def find_sentence_errors(page: Page, address: str, runs_here: bool) -> Iterator[str]:
    """One line for each beginning that lesson 302 completes otherwise than eager; one where it takes a strange character."""
    go(page, f"{address}{SENTENCE}", "document.getElementById('demo-sentence-data') != null")
    data = json.loads(page.evaluate("document.getElementById('demo-sentence-data').textContent"))
    how = "computed" if runs_here else "stored"
    for number, (start, answer) in enumerate(data["answers"].items()):
        page.evaluate(f"document.querySelectorAll('#demo-sentence [data-start]')[{number}].click()")
        page.wait_for(f"document.getElementById('demo-sentence').dataset.{how} === {json.dumps(start)}")
        if (written := page.evaluate("document.querySelector('#demo-sentence .demo-written span').textContent")) != answer:
            yield f"lesson 302 goes on after {start!r} with {written!r}, eager with {answer!r}"
    page.evaluate("document.getElementById('demo-sentence-start').value = 'Gr\u00f6\u00dfe'")
    page.evaluate("document.querySelector('#demo-sentence form button').click()")
    if "does not know" not in (said := page.evaluate("document.querySelector('#demo-sentence .demo-source').textContent")):
        yield f"lesson 302 says of a character that its model does not know: {said}"


def go(page: Page, address: str, ready: str) -> None:
    """Opens a page, and returns when a script says that it is ready."""
    page.call("Page.navigate", url=address)
    page.wait_for(f"document.readyState == 'complete' && location.href == {json.dumps(address)} && {ready}")


def main(site: Path) -> int:
    """Prints what is not as it should be; 1 when there is anything."""
    if not (site / "index.html").is_file():
        print(f"there is no site in {site}: run make site first")
        return 2
    if shutil.which("chromium") is None:
        print("left out: the demos need Chromium (Debian: apt install chromium)")
        return 0
    runs_here = (site / "_static/ort").is_dir()
    with served(site) as address, opened(f"{address}index.html") as page:
        page.call("Emulation.setDeviceMetricsOverride", width=1280, height=1600, deviceScaleFactor=1, mobile=False)
        found = [*problems(page, runs_here), *find_branch_errors(page, address, runs_here), *find_sentence_errors(page, address, runs_here)]
        found += misread(page, address) if runs_here else ()
    how = "computed in the pages" if runs_here else "as stored: onnxruntime-web is not in this site (make web)"
    print("\n".join(found) or f"the demos show what their pages say, {how}")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
