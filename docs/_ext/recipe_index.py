"""Build the index of recipes, grouped by topic. Each card has the recipe's title, its finding, and a strip of the outcomes on the page."""

from __future__ import annotations

import ast
import html
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from docutils import nodes
from site_files import ROOT
from sphinx import addnodes
from sphinx.application import Sphinx
from sphinx.transforms import SphinxTransform

from exportlab.outcomes import Outcome

GALLERY = "generated/gallery"
GROUPS = {
    "First exports": ("first_graph", "simple_case", "linear_regression", "kwargs_and_caches", "two_exporters", "bench_your_model"),
    "Dynamic shapes": ("dynamic_shapes", "shapes_by_example", "data_dependent_sizes", "shape_inference"),
    "Models that fail to export": (
        "draft_export",
        "read_the_report",
        "cond",
        "loop_over_the_batch",
        "scan",
        "pairwise_distances",
        "untranslated_op",
    ),
    "Models that export but are wrong": ("strict_or_not", "inplace_index", "mutable_cache", "spectrogram"),
    "Custom operators": (
        "custom_op_function",
        "custom_op_kernel",
        "custom_op_recurrence",
        "custom_op_inplace",
        "custom_op_inplace_to_onnx",
    ),
    "Example models": ("model_mlp", "model_convnet", "model_bert", "model_vit", "model_llama", "model_whisper"),
    "Inspect and change an exported model": (
        *("save_and_load", "names", "external_data", "submodules", "submodules_to_onnx"),
        *("rewriting", "onnxscript_code", "half_precision"),
    ),
    "Write a recipe": ("template",),
}
WORDS = "|".join(re.escape(outcome.value) for outcome in Outcome)
PRINTED = re.compile(rf'font-weight: 600">({WORDS})</td>|^ +.*?\s{{2,}}({WORDS})(?:\s{{2,}}|$)', re.MULTILINE)
MOST = 40  # maximum number of squares on a card


@dataclass(frozen=True)
class Recipe:
    """The content of a card."""

    title: str
    page: str
    finding: str
    outcomes: tuple[Outcome, ...]


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the transform that inserts the cards."""
    app.add_transform(Cards)
    app.add_css_file("recipe_index.css", priority=850)  # after the style sheets of sphinx-gallery
    return {"parallel_read_safe": True}


class Cards(SphinxTransform):
    """Replace the thumbnails by cards, on the index of all recipes and of each chapter."""

    default_priority = 100

    def apply(self, **options: object) -> None:
        """Insert the cards if this is an index page."""
        if not re.fullmatch(rf"{GALLERY}/(\w+/)?index", self.env.docname):
            return
        folder = self.env.docname.removesuffix("/index").removeprefix(GALLERY).strip("/")
        scripts = sorted((ROOT / "gallery" / folder).rglob("*.py"))
        for script in scripts:
            self.env.note_dependency(str(script))
        recipes = {script.stem: read(script, ROOT / "gallery" / folder) for script in scripts}
        cards = [nodes.raw("", legend(recipes.values()), format="html"), *groups(recipes)]
        top = next(self.document.findall(nodes.section))
        kept = [node for node in top.children if isinstance(node, (nodes.title, nodes.paragraph))]
        trees = [tree.deepcopy() for tree in self.document.findall(addnodes.toctree)]
        top.children = []
        top += [*kept, *cards, *trees]


def groups(recipes: Mapping[str, Recipe]) -> Iterator[nodes.section]:
    """Yield a section for each group that contains some of these recipes, given by name."""
    for title, names in GROUPS.items():
        here = [recipes[name] for name in names if name in recipes]
        if here:
            section = nodes.section("", nodes.title("", title), ids=[nodes.make_id(title)])
            section += nodes.raw("", render_cards(here), format="html")
            yield section


def read(script: Path, folder: Path) -> Recipe:
    """Return the card of a recipe: its title, its last sentences, and the outcomes on its page."""
    source = script.read_text(encoding="utf-8")
    title = (ast.get_docstring(ast.parse(source)) or "").partition("\n")[0]
    page = ROOT / GALLERY / script.relative_to(ROOT / "gallery").with_suffix(".rst")
    printed = page.read_text(encoding="utf-8") if page.exists() else ""
    return Recipe(title, script.relative_to(folder).with_suffix(".html").as_posix(), finding(source), outcomes(printed))


def finding(source: str) -> str:
    """Return the sentence at the end of a recipe, before the link to the next page."""
    paragraph = re.split(r"\n(?:#|# %%)?\n", source.rstrip())[-1]
    text = " ".join(
        line.removeprefix("#").strip() for line in paragraph.splitlines() if line.startswith("#") and not line.startswith("# %%")
    )
    return re.split(r" Next: | :doc:| How to ", text)[0].removesuffix(".") + "."


def outcomes(printed: str) -> tuple[Outcome, ...]:
    """Return the outcomes in the tables of a page, in order."""
    return tuple(Outcome(one or other) for one, other in PRINTED.findall(printed))


def legend(recipes: Iterable[Recipe]) -> str:
    """Return the legend of the colours on these pages, with a link to the definitions."""
    seen = {outcome for recipe in recipes for outcome in recipe.outcomes}
    named = "".join(f"<span>{square(outcome)} {outcome.value}</span>" for outcome in Outcome if outcome in seen)
    return f'<p class="recipe-legend">Each square is an outcome on the page: {named}</p>' if seen else ""


def render_cards(recipes: Sequence[Recipe]) -> str:
    """Return the cards as HTML."""
    return f'<ul class="recipe-cards">{"".join(map(card, recipes))}</ul>'


def card(recipe: Recipe) -> str:
    """Return one card as HTML."""
    said = f'<span class="finding">{to_html(recipe.finding)}</span>'
    return f'<li><a href="{recipe.page}"><strong>{to_html(recipe.title)}</strong>{said}{strip(recipe.outcomes)}</a></li>'


def to_html(text: str) -> str:
    """Return a line of a docstring as HTML."""
    text = re.sub(r"``(.+?)``", r"<code>\1</code>", html.escape(text, quote=False))
    return re.sub(r"\*(.+?)\*", r"<em>\1</em>", text)


def strip(seen: Sequence[Outcome]) -> str:
    """Return the outcomes as coloured squares, with a text for screen readers."""
    if not seen:
        return ""
    squares = "".join(map(square, seen[:MOST]))
    counted = ", ".join(f"{count} {outcome.value}" for outcome, count in sorted(Counter(seen).items(), key=lambda pair: -pair[1]))
    said = f"Outcomes on the page: {counted}"
    return f'<span class="strip" role="img" aria-label="{said}" title="{said}">{squares}</span>'


def square(outcome: Outcome) -> str:
    """Return a square in the colour of the outcome."""
    return f'<i style="background: var(--outcome-{outcome.value})"></i>'
