"""Lay out the page of a benchmark: the finding and the figure first, then the limits and the tables, and the measurement folded."""

from __future__ import annotations

import csv
import io
import json
import runpy
import sys
from contextlib import suppress
from html import escape
from pathlib import Path, PurePosixPath
from typing import Any, NamedTuple

from docutils import nodes
from freshness import is_fresh, made_of, mark_fresh
from gallery_pages import BEFORE_THE_GALLERY
from own_exporter import OURS, build_line
from site_files import ROOT, write
from sphinx import addnodes
from sphinx.application import Sphinx
from sphinx.transforms import SphinxTransform

from exportlab.isolation import run_isolated
from exportlab.measure.figures import COLORS
from exportlab.measure.finding import further_picture
from exportlab.measure.sources import commits

PAGES = ("generated/benchmarks", "generated/page-benchmarks")  # the second is what make page makes
PICTURE = "images/finding_{name}.svg"
VALUES = "images/{name}.csv"
DATA = "benchmarks/data/{name}.json"
LIMITS = "What this does not show"
SHOWN = (LIMITS, "How the comparison with to_onnx is kept fair")  # sections that are not folded
PACKAGES = ("torch", "onnx", "onnxscript", "onnxruntime", "transformers")
SECONDS, BYTES = 300, 16 << 30  # limits for a script until it has written its finding


class Part(NamedTuple):
    """What a page shows of another script: a heading, which figure (counted from 0) if any, and from which line of the finding on."""

    title: str
    figure: int | None = 0
    line: int = 0


PARTS = {  # by page and script
    "export_time": {
        "captures": Part("By model"),
        "llama_layers": Part("By number of layers, with a KV cache"),
        "own_exporter": Part("Conversion alone, and equal layers captured once", figure=None, line=1),
    },
    "transformer_files": {"llama_layers": Part("One token by number of layers", figure=1, line=1)},
}
HIDDEN = frozenset(name for parts in PARTS.values() for name in parts)  # scripts without a page of their own


def setup(app: Sphinx) -> dict[str, bool]:
    """Write the findings before the gallery copies the scripts, and add the transform that inserts them."""
    app.add_transform(FindingFirst)
    app.connect("builder-inited", write_findings, priority=BEFORE_THE_GALLERY)
    app.connect("html-page-context", add_files)
    return {"parallel_read_safe": True}


def write_findings(app: Sphinx) -> None:
    """Write the finding of each benchmark, if it is missing or one of its sources has changed."""
    gallery = app.config.sphinx_gallery_conf
    for scripts, pages in zip(gallery["examples_dirs"], gallery["gallery_dirs"], strict=True):
        for script in sorted(Path(app.srcdir, scripts).glob("*.py")) if pages in PAGES else ():
            picture = Path(app.srcdir, pages, PICTURE.format(name=script.stem))
            sources = made_of(script, Path(__file__), *stored_runs(script.stem))
            if not is_fresh(picture, sources):
                write_finding(script, picture)
                write_values(script.stem, picture.parent)
                mark_fresh(picture, sources)


def stored_runs(name: str) -> list[Path]:
    """Return the files with the stored run of a benchmark: its own file, or the matrix."""
    run = ROOT / DATA.format(name=name)
    return [run] if run.exists() else [ROOT / "docs/data/matrix.jsonl"]


def write_finding(script: Path, picture: Path) -> None:
    """Run a script up to its finding, in a separate process.

    Raises:
        RuntimeError: the script fails or writes no finding.
    """
    picture.parent.mkdir(parents=True, exist_ok=True)
    failure = run_isolated(lambda: run_to_finding(script, picture), seconds=SECONDS, memory=BYTES).failure
    if failure is not None or not picture.exists():
        raise RuntimeError(f"{script.name} writes no finding: {failure.message if failure else 'it never calls page.open or page.begin'}")


def write_values(name: str, folder: Path) -> None:
    """Write the values of a stored run as CSV, a line for each value. A benchmark without a run of its own has none."""
    run = ROOT / DATA.format(name=name)
    if not run.exists():
        return
    stored = json.loads(run.read_text(encoding="utf-8"))
    text = io.StringIO()
    lines = csv.writer(text, lineterminator="\n")
    lines.writerow(["what", "name", "unit", "round", "value"])
    for one in stored["benchmarks"]:
        told = {**stored["metadata"], **one.get("metadata", {})}
        for place, value in enumerate(one["runs"][0]["values"]):
            lines.writerow([told["title"], told["label"], told["unit"], place + 1, value])
    write(folder / Path(VALUES.format(name=name)).name, text.getvalue())


def run_to_finding(script: Path, picture: Path) -> None:
    """Run a script, which exits after it has written its finding."""
    sys.argv = [str(script), "--finding", str(picture)]
    with suppress(SystemExit):
        runpy.run_path(str(script), run_name="__main__")


def add_files(app: Sphinx, page: str, template: str, context: dict[str, Any], tree: nodes.document | None) -> None:
    """Load the script and the style sheet on pages of benchmarks."""
    if str(PurePosixPath(page).parent) in PAGES:
        app.add_css_file("findings.css", priority=860)  # after those of all tables
        app.add_js_file("findings.js", loading_method="defer")


class FindingFirst(SphinxTransform):
    """Lay out a page of the gallery as the page of a benchmark, if it has a finding."""

    default_priority = 100  # text that is added is treated as the text that is there

    def apply(self, **options: Any) -> None:
        """Apply the transform to a page that has a finding."""
        page = PurePosixPath(self.env.docname)
        if str(page.parent) not in PAGES or not self.find_json(page.name).exists():
            return
        section = next(self.document.findall(nodes.section))
        title, *rest = section.children
        shown = [node for node in rest if title_of(node) in SHOWN]
        labels = {part: take_labels(part) for part in shown}
        end = [node for part in shown for node in take(part, addnodes.only)]
        introduction = next((node for node in rest if isinstance(node, nodes.paragraph)), None)
        folded = [node for node in rest if node is not introduction and node not in shown]
        parts = [self.build_part(name, part) for name, part in PARTS.get(page.name, {}).items() if self.find_json(name).exists()]
        lead = [*self.build_lead(page.name), *filter(None, [introduction])]
        section.children = []
        limits = [node for part in shown for node in (*labels[part], part)]
        section += [title, *lead, *limits, *self.build_rest(page.name), *parts, *fold(folded), *end]

    def find_json(self, name: str) -> Path:
        """Return the file with the finding of a benchmark."""
        page = PurePosixPath(self.env.docname)
        return Path(self.env.srcdir, page.parent, PICTURE.format(name=name)).with_suffix(".json")

    def read(self, name: str) -> dict[str, Any]:
        """Return the finding of a benchmark, on which the page then depends."""
        written = self.find_json(name)
        self.env.note_dependency(str(written))
        found: dict[str, Any] = json.loads(written.read_text(encoding="utf-8"))
        return found

    def build_lead(self, name: str, figure: int | None = 0, line: int = 0) -> list[nodes.Node]:
        """Return the finding, the figure, the origin with its links, and the badge."""
        found = self.read(name)
        first = [found["first"], *found["others"]][line]
        badge = [nodes.paragraph("", f"{found['badge']}.", classes=["stale-run"])] if found.get("badge") else []
        ours = [build_line(self.env.docname)] if OURS in f"{found['first']} {found['others']}" and name not in HIDDEN else []
        drawn = [] if figure is None else [self.build_figure(name, figure, found["titles"][figure])]
        return [
            nodes.paragraph("", f"{capitalise(first)}.", classes=["finding"]),
            *drawn,
            self.build_origin(name, found),
            *ours,
            *badge,
        ]

    def build_figure(self, name: str, place: int, title: str) -> nodes.raw:
        """Return a figure in a box that scrolls on narrow screens."""
        picture = further_picture(self.find_json(name).with_suffix(".svg"), place)
        return scroll("finding-figure", title, picture.read_text(encoding="utf-8"))

    def build_origin(self, name: str, found: dict[str, Any]) -> nodes.paragraph:
        """Return one line: when, where and from what the values are, the values, and how to measure them again."""
        run = Path(self.env.srcdir, DATA.format(name=name))
        metadata = json.loads(run.read_text(encoding="utf-8"))["metadata"] if run.exists() else {}
        parts = [found["origin"], *describe_versions(metadata)]
        line = nodes.paragraph("", f"{'; '.join(parts)}. ", classes=["origin"])
        if run.exists():
            line += [nodes.Text("Values: "), self.link(run, "JSON")]
        values = self.find_json(name).with_name(Path(VALUES.format(name=name)).name)
        if values.exists():
            line += [nodes.Text(", "), self.link(values, "CSV")]
        script = Path(self.env.srcdir, f"benchmarks/{name}.py")
        if script.exists():
            line += [nodes.Text(". Run "), self.link(script, script.name), nodes.Text(": "), nodes.literal("", f"make bench BENCH={name}")]
        return line

    def link(self, file: Path, text: str) -> nodes.Node:
        """Return a link that downloads a file."""
        target = f"/{file.relative_to(self.env.srcdir).as_posix()}"
        return addnodes.download_reference("", nodes.Text(text), refdoc=self.env.docname, reftarget=target)

    def build_rest(self, name: str) -> list[nodes.Node]:
        """Return the further findings and the tables, each under a heading."""
        found = self.read(name)
        tables = [node for table in found["tables"] for node in build_table(table)]
        points = build_list(found["others"])
        return [*([head("Further findings", [points])] if found["others"] else []), *([head("Table", tables)] if tables else [])]

    def build_part(self, name: str, part: Part) -> nodes.section:
        """Return what another script found, as a section."""
        found = self.read(name)
        tables = [html(f"<details><summary>{escape(t['title'])}</summary>{t['pivot'] or t['html']}</details>") for t in found["tables"]]
        return head(part.title, [*self.build_lead(name, part.figure, part.line), build_list(found["others"][part.line :]), *tables])


def take(part: nodes.Element, kind: type[nodes.Node]) -> list[nodes.Node]:
    """Remove the children of a kind, and return them: the downloads at the end of the gallery's page are in its last section."""
    found = [child for child in part.children if isinstance(child, kind)]
    for child in found:
        part.remove(child)
    return found


def take_labels(section: nodes.Element) -> list[nodes.Node]:
    """Remove the labels above a section, which are at the end of the section before it, and return them."""
    before = section.previous_sibling()
    return take(before, nodes.target) if isinstance(before, nodes.section) else []


def title_of(node: nodes.Node) -> str:
    """Return the title of a section, and "" for other nodes."""
    return node[0].astext() if isinstance(node, nodes.section) else ""


def describe_versions(metadata: dict[str, Any]) -> list[str]:
    """Return the versions of packages and the commit of a stored run."""
    versions = [f"{name} {metadata[f'{name}_version']}" for name in PACKAGES if f"{name}_version" in metadata]
    return [", ".join(versions), ", ".join(commits(metadata))] if metadata else []


def head(title: str, children: list[nodes.Node]) -> nodes.section:
    """Return a section with a title."""
    return nodes.section("", nodes.title("", title), *children, ids=[nodes.make_id(title)])


def capitalise(line: str) -> str:
    """Return a line with a capital letter, unless its first word is a name from code, such as `to_onnx`."""
    word = line.partition(" ")[0]
    return line[0].upper() + line[1:] if word.rstrip(",").isalpha() and word not in COLORS else line


def build_list(lines: list[str]) -> nodes.bullet_list:
    """Return lines as a list."""
    return nodes.bullet_list("", *(nodes.list_item("", nodes.paragraph("", f"{capitalise(line)}.")) for line in lines), bullet="-")


def html(text: str) -> nodes.raw:
    """Return HTML that the page contains unchanged."""
    return nodes.raw("", text, format="html")


def scroll(kind: str, title: str, content: str) -> nodes.raw:
    """Return content in a box that scrolls, also with the keyboard."""
    return html(f'<div class="{kind}" tabindex="0" role="region" aria-label="{escape(title)}">{content}</div>')


def build_table(table: dict[str, str]) -> list[nodes.raw]:
    """Return the pivot of a table, and the table itself folded; only the table if it has no pivot."""
    whole = scroll("finding-table", table["title"], table["html"])
    if not table.get("pivot"):
        return [whole]
    summary = f'<details class="finding-code"><summary>{escape(table["title"])}: ratios and intervals</summary>'
    return [scroll("finding-pivot", table["title"], table["pivot"]), html(summary), whole, html("</details>")]


def is_code(node: nodes.Node) -> bool:
    """Return whether a node is Python code."""
    return isinstance(node, nodes.literal_block) and node.get("language", "").lower().startswith("python")


def fold(children: list[nodes.Node]) -> list[nodes.Node]:
    """Return nodes folded, if they contain code."""
    lines = sum(block.astext().count("\n") + 1 for child in children for block in child.findall(is_code))
    summary = html(f'<details class="finding-code"><summary>How it is measured: text and {lines} lines of code</summary>')
    return [summary, *children, html("</details>")] if lines else children
