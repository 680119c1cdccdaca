"""Pages without what nobody sees: elements of code that colour nothing, and the indents, empty lines and comments of templates.

For names, brackets and spaces the theme has the colour of all code. The fonts of icons and the pictures that extensions bring stay away
where no page asks for them.
"""

from __future__ import annotations

import re
from pathlib import Path

from sphinx.application import Sphinx

AFTER_THE_LINKS = 900  # a priority; sphinx-gallery finds by these elements what of a recipe to link to the API, at Sphinx's own, 500
RULE = re.compile(r'html\[data-theme="(\w+)"\] \.highlight (?:\.(\w+) )?\{([^}]*)\}')
COLOR = re.compile(r"(?<![\w-])color: *([^; ]+)")
BLOCK = re.compile(r"<pre>.*?</pre>", re.DOTALL)
COMMENT = re.compile(r"<!--.*?-->", re.DOTALL)
KEPT = r"<(?:(pre|script|style|textarea)\b.*?</\2>|(?!!--)[^>]*>)"  # where spaces count, or may
KEPT_OR_SPACE = re.compile(rf"({KEPT})|(?:\s+|{COMMENT.pattern})+", re.DOTALL)
ASKED_BY = {  # files below _static, and the text of a page that wants one
    "vendor/fontawesome/webfonts/fa-brands-400.woff2": "fa-brands",
    "vendor/fontawesome/webfonts/fa-regular-400.woff2": "fa-regular",
    "broken_example.png": "broken_example.png",
    "no_image.png": "no_image.png",
    "jupyterlite_badge_logo.svg": "jupyterlite_badge_logo.svg",
}
READ = {"gp", "go"}  # what the button that copies code leaves out


def setup(app: Sphinx) -> dict[str, bool]:
    """Do it behind the last page."""
    app.connect("build-finished", thin_all, priority=AFTER_THE_LINKS)
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def thin_all(app: Sphinx, error: Exception | None) -> None:
    """Thin every page."""
    if error or app.builder.format != "html":
        return
    site = Path(app.outdir)
    classes = colorless((site / "_static/pygments.css").read_text(encoding="utf-8"))
    unasked = dict(ASKED_BY)
    for page in site.rglob("*.html"):
        before = page.read_text(encoding="utf-8")
        after = minify(thin(before, classes))
        unasked = {path: text for path, text in unasked.items() if text not in after}
        if after != before:
            page.write_text(after, encoding="utf-8")
    for path in unasked:
        (site / "_static" / path).unlink(missing_ok=True)


def colorless(css: str) -> set[str]:
    """Return the classes of code that a style sheet gives no look of their own, in any of its themes.

    Raises:
        ValueError: it does not say what colour code has.
    """
    rules = {(theme, name): declared.strip() for theme, name, declared in RULE.findall(css)}
    plain = {theme: f"color: {found[1]}" for (theme, name), declared in rules.items() if not name and (found := COLOR.search(declared))}
    if not plain:
        raise ValueError(
            "_static/pygments.css has no rule for .highlight with a color: nobody can tell which classes of code differ from it"
        )
    names = {name for _, name in rules} - READ - {""}
    return {name for name in names if all(rules.get((theme, name), "") in ("", color) for theme, color in plain.items())}


def thin(html: str, classes: set[str]) -> str:
    """Return a page of which no code has an element of these classes, but in links, which have a colour of their own."""
    if not classes:
        return html
    plain = re.compile(rf'<a\b.*?</a>|<span class="(?:{"|".join(sorted(classes))})">([^<]*)</span>', re.DOTALL)
    return BLOCK.sub(lambda block: plain.sub(lambda found: found[0] if found[1] is None else found[1], block[0]), html)


def minify(html: str) -> str:
    """Return a page without comments, and of spaces with a line break only that; in code, scripts and tags all stays."""
    return KEPT_OR_SPACE.sub(lambda found: found[1] or shortest(found[0]), html)


def shortest(space: str) -> str:
    """Return what is seen of spaces and comments between two elements or words."""
    left = COMMENT.sub("", space)
    return "\n" if "\n" in left else left
