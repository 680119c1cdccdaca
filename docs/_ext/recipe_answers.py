"""Show the answer of a recipe below its title with the code to copy, and leave asserts and the code of figures out of the way."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from textwrap import dedent
from typing import Any

from docutils import nodes
from sphinx.application import Sphinx
from sphinx.transforms import SphinxTransform

PAGE = re.compile(r"generated/(?:page-)?gallery/(?:\w+/)?(?!index$|sg_execution_times$)\w+")
START, STOP = "# sphinx_gallery_start_answer", "# sphinx_gallery_end_answer"
MARKED = re.compile(rf"^ *{START}\n(.*?)^ *{STOP}$", re.MULTILINE | re.DOTALL)
END = "<!-- end of the answer -->"  # get_it.py looks for it
FIGURE = re.compile(r"plt\.show\(\)|pyplot\.subplots\(")
SHORT = 5  # lines of code of a figure that are not folded


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the transform."""
    app.add_transform(AnswerFirst)
    return {"parallel_read_safe": True}


def read_answer(source: str) -> str:
    """Return the answer of a recipe: the paragraph below the title, on one line."""
    paragraphs = (ast.get_docstring(ast.parse(source)) or "").split("\n\n")
    return " ".join(paragraphs[1].split()) if len(paragraphs) > 1 else ""


def read_snippet(source: str) -> str:
    """Return the marked lines of a recipe, which run with it. An empty line separates functions and classes from the rest."""
    parts = [dedent(lines).strip("\n") for lines in MARKED.findall(source)]
    gaps = ["", *(separate(before, after) for before, after in pairwise(parts))]
    return "".join(gap + part for gap, part in zip(gaps, parts, strict=False))


def separate(before: str, after: str) -> str:
    """Return the line breaks between two parts of a snippet."""
    block = after.startswith(("@", "def ", "class ")) or before.rpartition("\n")[2].startswith(" ")
    return "\n\n" if block else "\n"


class AnswerFirst(SphinxTransform):
    """Put the answer and its code into a box below the title, and shorten the code of the page."""

    default_priority = 100  # before the code is highlighted

    def apply(self, **options: Any) -> None:
        """Apply the transform to the page of a recipe."""
        script = Path(self.env.srcdir, f"{self.env.docname}.py")
        if not PAGE.fullmatch(self.env.docname) or not script.exists():
            return
        for block in list(self.document.findall(is_code)):
            shorten(block)
        section = next(self.document.findall(nodes.section))
        place = section.first_child_matching_class(nodes.paragraph)
        if place is not None:
            section[place : place + 1] = render_box(section[place], read_snippet(script.read_text(encoding="utf-8")))


def render_box(answer: nodes.Node, snippet: str) -> list[nodes.Node]:
    """Return the answer in a box, with the snippet if there is one."""
    code = [nodes.literal_block(snippet, snippet, language="python")] if snippet else []
    return [nodes.container("", answer, *code, classes=["recipe-answer"]), nodes.raw("", END, format="html")]


def is_code(node: nodes.Node) -> bool:
    """Return whether a node is Python code of the recipe."""
    return isinstance(node, nodes.literal_block) and node.get("language") == "Python"


def shorten(block: nodes.literal_block) -> None:
    """Remove the asserts of a block of code, and fold the code of a figure."""
    code = remove_asserts(block.astext())
    shown = nodes.literal_block(code, code, **block.attributes)
    lines = code.count("\n") + 1
    if lines > SHORT and FIGURE.search(code):
        head = f'<details class="recipe-code"><summary>Code of the figure ({lines} lines)</summary>'
        block.replace_self([nodes.raw("", head, format="html"), shown, nodes.raw("", "</details>", format="html")])
    else:
        block.replace_self(shown)


def remove_asserts(code: str) -> str:
    """Return code without its asserts, which are in the download. Code that does nothing else than define names keeps them."""
    body = ast.parse(code).body
    asserts = list(find_asserts(body))
    if not any(isinstance(statement, (ast.Expr, ast.For, ast.With)) for statement in body if statement not in asserts):
        return code
    gone = {line for statement in asserts for line in range(statement.lineno, (statement.end_lineno or 0) + 1)}
    kept = [line for number, line in enumerate(code.splitlines(), 1) if number not in gone]
    return re.sub(r"\n{4,}", "\n\n\n", "\n".join(kept)).strip("\n")


def find_asserts(body: Sequence[ast.stmt]) -> Iterator[ast.stmt]:
    """Yield the asserts, and the loops and contexts that contain nothing else."""
    for statement in body:
        inner = statement.body if isinstance(statement, (ast.For, ast.With)) else []
        found = list(find_asserts(inner))
        if isinstance(statement, ast.Assert) or (inner and len(found) == len(inner) and all(other in found for other in inner)):
            yield statement
        else:
            yield from found
