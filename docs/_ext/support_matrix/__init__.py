"""The page of the support matrix: totals, a table, what its cells open, what changed. Its script and its style are in docs/_static."""

from __future__ import annotations

import hashlib
import inspect
import json
import re
from collections.abc import Iterable, Sequence
from html import escape
from pathlib import Path
from typing import Any

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup
from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import PythonLexer
from site_files import GENERATED, ROOT, publish_static, write
from sphinx.application import Sphinx

from exportlab import zoo
from exportlab.cases import Case
from exportlab.said import CAUSES, NOISE, name_of
from exportlab.sweep import MODES
from exportlab.sweep.changes import worst
from exportlab.sweep.records import Record

from . import links, sweeps
from .sweeps import Runs, Sweep

STORED, PREVIOUS = ROOT / "docs/data/matrix.jsonl", ROOT / "docs/data/matrix-previous.jsonl"
DATA = "matrix-data.js"
OWN = "to_onnx"  # the exporter that is this site's own, which the page says wherever it is compared


def setup(app: Sphinx) -> dict[str, bool]:
    """Store what the page includes before it is read; style and script are for this page alone."""
    app.connect("builder-inited", store_parts)
    app.connect("html-page-context", add_files)
    return {"parallel_read_safe": True}


def store_parts(app: Sphinx) -> None:
    """Write what docs/support.md includes, and what its script loads, from the stored sweeps and the zoo."""
    publish_static(app)
    for name, text in parts(Sweep.read(STORED), Sweep.read(PREVIOUS), zoo.cases()).items():
        write(GENERATED / name, text)


def add_files(app: Sphinx, page: str, *_: Any) -> None:
    """Give the page of the matrix its style and its script, which no other page needs."""
    if page == "docs/support":
        app.add_css_file("matrix.css")
        app.add_js_file("matrix.js", loading_method="defer")


def parts(sweep: Sweep, previous: Sweep, cases: Sequence[Case]) -> dict[str, str]:
    """Return the generated files, by their names in generated/."""
    loaded = data(sweep.runs, cases)
    version = hashlib.sha256(loaded.encode()).hexdigest()[:8]
    return {
        "parts/matrix-totals.html": totals(sweep),
        "parts/matrix-causes.html": rendered("lines.html", lines=[("", cause.pattern, cause.why) for cause in CAUSES]),
        "parts/matrix-noise.html": rendered("lines.html", lines=[(name_of(noise.source), noise.pattern, noise.why) for noise in NOISE]),
        "parts/matrix-table.html": table(sweep.runs, cases, f"../_static/{DATA}?v={version}"),
        "parts/matrix-changes.html": changes(previous, sweep),
        f"static/{DATA}": loaded,
    }


def totals(sweep: Sweep) -> str:
    """Return who is right how often in a sentence, a row an exporter and mode, and what the sweep was made with."""
    scores = sweeps.scores(sweep.runs)
    return rendered(
        "totals.html",
        never=[score for score in scores if not score.silent],
        some=[score for score in scores if score.silent],
        kinds=sweeps.titles(),
        own=OWN,
        rows=[(exporter, mode, counter, counter.total()) for (exporter, mode), counter in sweeps.counts(sweep.runs).items()],
        made_with=sweep.made_with(),
    )


def table(runs: Runs, cases: Sequence[Case], loaded: str) -> str:
    """Return the filters, a row a case by family, a column an exporter and mode, and the empty panel; `loaded` is where its texts are."""
    names = sweeps.exporters_of(runs)
    families = dict.fromkeys(case.family for case in cases)
    return rendered(
        "table.html",
        exporters=names,
        modes=MODES,
        outcomes=sweeps.OUTCOMES,
        choices=sweeps.choices(),
        topics=sorted({topic for case in cases for topic in case.topics}),
        families={family: [(case, cells(case, names, runs)) for case in cases if case.family == family] for family in families},
        own=OWN,
        loaded=loaded,
    )


def cells(case: Case, names: Sequence[str], runs: Runs) -> list[tuple[int, str, Record | None]]:
    """Return the row of a case: the number of the exporter, the mode, and the record where there is one."""
    found = [(number, mode, runs.get((case.name, name, mode))) for number, name in enumerate(names) for mode in MODES]
    return [(number, mode, worst(rounds) if rounds else None) for number, mode, rounds in found]


def changes(before: Sweep, now: Sweep) -> str:
    """Return what differs between two sweeps, after a sentence that says between which."""
    old, new = sweeps.versions_apart(before, now)
    return rendered(
        "changes.html",
        stored=bool(before.runs),
        old=old,
        new=new,
        changes=[change.row() for change in sweeps.changed(before, now)],
        common=len(before.runs.keys() & now.runs.keys()),
        outcomes=sweeps.OUTCOMES,
    )


def rendered(template: str, **values: Any) -> str:
    """Return a template of this folder with its values, which it escapes."""
    loader = FileSystemLoader(Path(__file__).parent / "templates")
    page = Environment(
        loader=loader, autoescape=True, undefined=StrictUndefined, trim_blocks=True, lstrip_blocks=True, keep_trailing_newline=True
    )
    page.filters["marked_up"] = lambda text: Markup(marked_up(text))
    return page.get_template(template).render(values)


def marked_up(text: str) -> str:
    """Return a line of a docstring as HTML, what stands in backticks as code."""
    return re.sub("`([^`]+)`", r"<code>\1</code>", escape(text))


def data(runs: Runs, cases: Iterable[Case]) -> str:
    """Return what the panel shows of each case and run, as a script: a page that is opened as a file cannot load anything else."""
    known = {case.name: about(case) for case in cases}
    shown = {"/".join(cell): sweeps.seen(cell, runs) for cell in runs if cell[0] in known}
    return f"window.matrixTexts = {json.dumps({'cases': known, 'runs': shown}, ensure_ascii=False, separators=(',', ':'))};\n"


def about(case: Case) -> dict[str, Any]:
    """Return a case for its panel: the question, its source, and the pages that say more."""
    source, line = inspect.getsourcelines(case.factory)
    return {
        "doc": marked_up(case.doc),
        "file": f"exportlab/zoo/{case.family}.py",
        "line": line,
        "source": highlight("".join(source), PythonLexer(), HtmlFormatter(nowrap=True)),
        "pages": [[links.title(page), f"../{page}.html"] for page in links.pages_of(case)],
    }
