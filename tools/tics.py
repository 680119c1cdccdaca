"""Count habits of phrase that a native technical writer would not have, per 1,000 words of prose, page by page.

usage: tics.py [--show PAGE]

It counts the documentation, recipes, benchmarks, error pages, and the strings of exportlab. The command prints the rate of each group, then
the pages above the limit, and exits with 1 where the whole or a page is above its limit. `--show PAGE` prints the lines of one page.
CONTRIBUTING.md explains what to write instead. A count is not a verdict: EXCEPTIONS lists pages that need one of the words.
"""

from __future__ import annotations

import argparse
import ast
import re
import sys
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
WHOLE, PAGE, WORDS = 2.0, 5.0, 200  # per 1,000 words, at most; the words of a page that is judged by itself
SKIPPED = re.compile(r"(\.|build/|generated/|tests/|tools/|fx2onnx/|.*/\.|CHANGELOG\.md)")  # fx2onnx follows when its capture is rebuilt
EXCEPTIONS = {  # pages above the limit, each with the reason
    "CONTRIBUTING.md": "it quotes the words to avoid",
    "content/errors/branch_on_a_size.py": "it quotes a message of fx2onnx, and the pattern that matches it",
    "exportlab/show/svg.py": "its style sheets have borders",
}
SHORT = 3  # spaces of a string that is not a sentence

TICS = {
    "held against": r"\b(held|holds?|holding)\b[^.;:]{0,45}\bagainst\b",
    "stands (is)": r"\b(stands?|stood)\b(?! (for|alone|out))",
    "moves, moving (dynamic)": r"\b(moves?|moving)\b(?! (average|to|from|it|on|the))",
    "asks, asked (of things)": r"\b(asks|asked)\b",
    "says, tells (of pages, files, tables)": r"\b(page|file|table|row|column|report|lesson|recipe|line|name|figure|graph|message|test|exporter"  # noqa: E501
    r"|to_onnx|it|which|that) (says?|tells?)\b",
    "nobody, somebody, whoever": r"\b(nobody|somebody|whoever)\b",
    "of yours, of its own": r"\bof (yours|ours|theirs|its own|your own|their own|one's own)\b",
    "beside": r"\bbeside\b",
    "is no, has no": r"\b(is|are|was) no(t a word)?\b (?!longer|more|need|way|one\b)",
    "without a word": r"\b(without a word|not a word|says? nothing|said nothing)\b",
    "past it": r"\b(past it|ways? past|gets? past|got past)\b",
    "becomes of, comes of": r"\b(becomes? of|became of|came of|comes? of)\b",
    "is none": r"\b(is|are) none\b",
    "mend": r"\bmend(s|ed|ing)?\b",
    "anew, once more": r"\b(anew|once more)\b",
    "road": r"\broads?\b",
    "turn (iteration)": r"\b(a|each|every|one|two|three|first|last|many|of|per) turns?\b",
    "place (position)": r"\b(first|last|other|another|each|same|one) places?\b",
    "border": r"\bborders?\b",
    "goes on": r"\bgo(es)? on\b",
    "takes (accepts)": r"\btakes?\b (?!(a |about |less |more |some |\d|longer|care|place|time|hours|minutes"
    r"|seconds|the time|part|into|at most|at least|under|over|about|up to|one command|effect|precedence|advantage|days|weeks))",
    "disclaimer": r"this site's own exporter, so check",
    "fronted phrase": r"(?<=[.!?] )(Of|To|In|With|For|At|By|On) [a-z`][^.,]{2,50},? (it|there|they|one|no|both|what) ",
    "one-to-three-word sentence": r"(?<=[.!?] )[A-Z][\w*`-]*( [\w*`-]+){0,2}\.(?= )",
}
CASED = {"fronted phrase", "one-to-three-word sentence"}
PATTERNS = {name: re.compile(pattern, 0 if name in CASED else re.IGNORECASE) for name, pattern in TICS.items()}
FENCE = re.compile(r"^(```|~~~|:::)")


Line = tuple[int, str]


def read_markdown(text: str) -> Iterator[Line]:
    """Yield the numbered prose lines of a Markdown page: no fences, no front matter, no raw HTML."""
    fenced, front = False, text.startswith("---\n")
    for number, line in enumerate(text.splitlines(), 1):
        if front:
            front = not (line == "---" and number > 1)
        elif FENCE.match(line.strip()) and not line.strip().startswith(":::"):
            fenced = not fenced
        elif not fenced and line.strip() and not line.lstrip().startswith(("<", ":", "|---")):
            yield number, re.sub(r"`[^`]*`", "`x`", re.sub(r"\]\([^)]*\)|<[^>]*>", "", line))


def read_script(text: str) -> Iterator[Line]:
    """Yield the prose lines of a gallery script: its docstring and the comments of its text cells."""
    for number, line in enumerate((ast.get_docstring(ast.parse(text), clean=False) or "").splitlines(), 1):
        if line.strip(" =-"):
            yield number, line
    cell = False
    for number, line in enumerate(text.splitlines(), 1):
        if line.startswith("# %%"):
            cell = True
        elif cell and line.startswith("#"):
            yield number, re.sub(r"``[^`]*``", "`x`", line.lstrip("# "))
        elif line.strip():
            cell = False


def read_strings(text: str) -> Iterator[Line]:
    """Yield the sentences in the strings of a module."""
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            for line in node.value.splitlines():
                if line.count(" ") > SHORT:
                    yield node.lineno, re.sub(r"`[^`]*`", "`x`", line)


def read_pages(root: Path) -> dict[str, list[Line]]:
    """Return the prose of each page, by its path."""
    found = {}
    for path in sorted(root.rglob("*")):
        name = path.relative_to(root).as_posix()
        if path.suffix not in (".md", ".py") or SKIPPED.match(name) or ".venv" in name:
            continue
        reader = read_markdown if path.suffix == ".md" else read_script if name.startswith(("gallery/", "benchmarks/")) else read_strings
        if path.suffix == ".md" or name.startswith(("gallery/", "benchmarks/", "content/errors/", "exportlab/")):
            found[name] = list(reader(path.read_text(encoding="utf-8")))
    return found


def find_tics(lines: list[Line]) -> list[tuple[int, str, str]]:
    """Return each habit that lines have: the number of the line, the habit, and the line."""
    return [(number, kind, line) for number, line in lines for kind, pattern in PATTERNS.items() for _ in pattern.finditer(line)]


def count_words(lines: list[Line]) -> int:
    """Return how many words lines have."""
    return sum(len(line.split()) for _, line in lines)


def rate(tics: int, words: int) -> float:
    """Return tics per 1,000 words."""
    return 1000 * tics / max(words, 1)


def group_of(name: str) -> str:
    """Return the group that a page is counted in."""
    return name.split("/")[0] if "/" in name else "front pages"


def print_groups(counts: dict[str, tuple[int, int]]) -> float:
    """Print the rate of each group and of all, and return the latter."""
    groups: defaultdict[str, list[int]] = defaultdict(lambda: [0, 0])
    for name, (tics, words) in counts.items():
        for group in (group_of(name), "all"):
            groups[group][0] += tics
            groups[group][1] += words
    for group, (tics, words) in groups.items():
        print(f"{rate(tics, words):5.1f} per 1,000  ({tics} in {words} words)  {group}")
    return rate(*groups["all"])


def main() -> int:
    """Print the rates; return 1 where one is too high."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--show", default="", metavar="PAGE", help="print the lines of this page")
    given = parser.parse_args()
    pages = read_pages(ROOT)
    if given.show:
        print(*(f"{given.show}:{number}: [{kind}] {line.strip()}" for number, kind, line in find_tics(pages[given.show])), sep="\n")
        return 0
    counts = {name: (len(find_tics(lines)), count_words(lines)) for name, lines in pages.items()}
    whole = print_groups(counts)
    above = {name: count for name, count in counts.items() if count[1] >= WORDS and rate(*count) > PAGE and name not in EXCEPTIONS}
    for name, count in above.items():
        print(f"{name}: {rate(*count):.1f} per 1,000 words; at most {PAGE}. Run tools/tics.py --show {name}")
    return int(whole > WHOLE or bool(above))


if __name__ == "__main__":
    sys.exit(main())
