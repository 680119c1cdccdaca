"""Build the index of the error search: weighted words of errors, lessons and recipes. The exact patterns are in known_errors."""

from __future__ import annotations

import ast
import csv
import json
import math
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from typing import Any

from error_fixes import store_fixes
from gallery_pages import BEFORE_THE_GALLERY
from known_errors import excerpt_message, page_of
from site_files import ROOT, STATIC, publish_static, write
from sphinx.application import Sphinx

from exportlab.errors import KnownError, load_known_errors, recognise
from exportlab.errors.known import candidates

NAME = "error-box.json"
WISHES = ROOT / "docs/data/wishes.csv"
NEAR = 0.35  # below this likeness, lessons and recipes are shown instead of errors
LISTED = 5  # at most so many errors with the same message are shown
WORTH_READING = 0.12  # below this likeness, nothing is shown
LETTERS = r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+"  # the words of CamelCase and of snake_case
AWAY = r"https?://\S+|\S*[/\\]\S*[/\\]\S*|^\s*File .*$|0x[0-9a-f]+"  # locations: addresses, paths, memory addresses

COMMON = frozenset(
    re.findall(r"\w+", "an the of to is are do does did how my it in and or for by be with that this what not no on at as can you")
)

Weights = Mapping[str, float]


@dataclass(frozen=True)
class Entry:
    """A page that the search can find."""

    kind: str
    title: str
    page: str
    text: str


def setup(app: Sphinx) -> dict[str, bool]:
    """Store the index after the messages of the errors, and publish it."""
    app.connect("builder-inited", store_index, priority=BEFORE_THE_GALLERY + 1)
    return {"parallel_read_safe": True}


def store_index(app: Sphinx) -> None:
    """Write the index and the first fixes."""
    publish_static(app)
    store_fixes()
    write(STATIC / NAME, json.dumps(index(entries()), ensure_ascii=False, separators=(",", ":")))


def entries() -> list[Entry]:
    """Return all errors, lessons, recipes and benchmarks, each with the searches that should find it."""
    found = [*map(make_error_entry, load_known_errors()), *lessons(), *scripts("gallery", "recipe"), *scripts("benchmarks", "benchmark")]
    asked_for = wishes()
    return [replace(page, text="\n".join([page.text, *asked_for.get(page.page.removesuffix(".html"), ()) * 3])) for page in found]


def wishes() -> dict[str, tuple[str, ...]]:
    """Return by page the searches that should find it although its title has other words."""
    with WISHES.open(encoding="utf-8", newline="") as file:
        return {row["page"]: tuple(row["wishes"].split("; ")) for row in csv.DictReader(file)}


def make_error_entry(error: KnownError) -> Entry:
    """Return the entry of an error. Its title and pattern count more than the message, and the message more than the cause."""
    title = error.title.replace("`", "")
    literal = re.sub(r"\\[a-zA-Z]|[^\w\s]", " ", re.sub(r"\(\?\S", " ", error.message)) if error.stage != "silent" else ""
    stored = page_of(error).with_suffix(".txt")
    message = excerpt_message(stored.read_text(encoding="utf-8"), error.message) if stored.exists() and error.stage != "silent" else ""
    return Entry("error", title, error.page, "\n".join([title] * 3 + [literal] * 2 + [message, error.why]))


def lessons() -> Iterator[Entry]:
    """Yield the lessons, by title and first paragraph."""
    for path in sorted((ROOT / "tutorials").glob("[0-9]*.md")):
        title, _, rest = path.read_text(encoding="utf-8").partition("\n# ")[2].partition("\n")
        first = rest.strip().partition("\n\n")[0]
        yield Entry("lesson", title.replace("`", ""), f"tutorials/{path.stem}.html", f"{title}\n" * 3 + first)


def scripts(folder: str, kind: str) -> Iterator[Entry]:
    """Yield the pages that are generated from scripts, by title and first paragraph."""
    for path in sorted((ROOT / folder).rglob("*.py")):
        said = ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or ""
        title, _, rest = said.partition("\n")
        if rest.startswith("==="):
            page = f"generated/{path.relative_to(ROOT).with_suffix('.html').as_posix()}"
            yield Entry(kind, title.replace("`", ""), page, f"{title}\n" * 3 + rest.split("\n\n")[1])


def words(text: str) -> list[str]:
    """Return the words of a text for comparison: in lower case, without plural, in American spelling, CamelCase split.

    docs/_static/errors.js does the same.
    """
    kept = re.sub(AWAY, " ", text, flags=re.MULTILINE)
    return [plain(word.lower()) for word in re.findall(LETTERS, kept) if len(word) > 1 and word.lower() not in COMMON]


def plain(word: str) -> str:
    """Return a word without plural, in American spelling."""
    word = re.sub(r"^(.{4,})is(e|ed|es|er|ers|ing|ation)$", r"\1iz\2", word)
    return re.sub(r"^(.{3,}[^s])s$", r"\1", word)


def weigh_words(text: str, rarity: Weights, unknown: float) -> dict[str, float]:
    """Return the words and pairs of words of a text, weighted by frequency and rarity, as a vector of length 1."""
    found = words(text)
    counts = Counter([*found, *map(" ".join, pairwise(found))])
    weights = {
        word: (1 + math.log(count)) * rarity.get(word, unknown) for word, count in counts.items() if word in rarity or " " not in word
    }
    length = math.sqrt(sum(weight**2 for weight in weights.values())) or 1
    return {word: weight / length for word, weight in weights.items()}


def index(pages: Sequence[Entry]) -> dict[str, object]:
    """Return the data that the script of the search reads."""
    texts = [page.text for page in pages]
    counts: Counter[str] = Counter()
    for text in texts:
        found = words(text)
        counts.update({*found, *map(" ".join, pairwise(found))})
    rarity = {word: round(math.log(len(pages) / count), 3) for word, count in counts.items() if count < len(pages)}
    titles = " | ".join(" ".join(words(page.title)) for page in pages)
    rarity = {word: rare for word, rare in rarity.items() if " " not in word or counts[word] > 1 or word in titles}
    unknown = round(math.log(len(pages)) * 0.7, 3)
    common = sorted(COMMON)
    return {
        "common": common,
        "near": NEAR,
        "worth": WORTH_READING,
        "unknown": unknown,
        "rarity": rarity,
        "pages": [_row(p, rarity, unknown) for p in pages],
    }


def _row(page: Entry, rarity: Weights, unknown: float) -> dict[str, object]:
    weights = {word: round(weight, 3) for word, weight in weigh_words(page.text, rarity, unknown).items() if weight > 0.03}
    return {"kind": page.kind, "title": page.title, "page": page.page, "weights": weights}


def nearest(text: str, index: Mapping[str, Any]) -> list[tuple[str, float]]:
    """Return the pages of an index, sorted by their likeness to a text, or to its most similar line."""
    parts = [weigh_words(part, index["rarity"], index["unknown"]) for part in (text, *(x for x in text.splitlines() if len(words(x)) > 3))]
    return sorted(((page["page"], max(likeness(part, page["weights"]) for part in parts)) for page in index["pages"]), key=lambda p: -p[1])


def likeness(one: Weights, other: Weights) -> float:
    """Return the cosine similarity of two texts."""
    return sum(weight * other.get(word, 0) for word, weight in one.items())


def judge_quote(quote: Mapping[str, str], index: Mapping[str, Any]) -> str:
    """Return the result of the search for a message: `certain`, `unsure` or `near` for the right page, `wrong` or `missed`."""
    certain = [error.name for error in recognise(quote["message"])]
    if certain:
        return "certain" if certain[0] in quote["page"].split() else "wrong"
    unsure = [error.name for error in candidates(quote["message"])][:LISTED]
    if unsure:
        return "unsure" if set(unsure) & set(f"{quote['page']} {quote['near']}".split()) else "missed"
    page, score = next(found for found in nearest(quote["message"], index) if "/errors/" in found[0])
    return "near" if score >= index["near"] and Path(page).stem in f"{quote['page']} {quote['near']}".split() else "missed"
