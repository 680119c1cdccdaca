"""Build the page of the atlas: the stored sweeps as a table, and the costs of exports that all exporters got right."""

from __future__ import annotations

import gzip
import hashlib
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

from site_files import GENERATED, ROOT, STATIC, publish_static, write
from sphinx.application import Sphinx
from support_matrix import SCRIPT, STYLE, WHOSE, link_from_matrix

from content.atlas import diffusers, segmentation_models, timm, torch_geometric, torchvision, transformers
from exportlab.cases import Case
from exportlab.outcomes import Mark
from exportlab.sweep import page as swept
from exportlab.sweep.page import environment_of
from exportlab.sweep.page.cells import pack_texts, texts
from exportlab.sweep.page.counts import Sweep, exporters_of
from exportlab.sweep.records import Record, latest, parse_records

STORED = ROOT / "docs/data/atlas"
PAGE, DATA = "docs/atlas", "atlas-data.js"
ASKED = {
    "timm": timm.Classifier,
    "torchvision": torchvision.Model,
    "transformers": transformers.Tiny,
    "diffusers": diffusers.Part,
    "segmentation_models": segmentation_models.Segmenter,
    "torch_geometric": torch_geometric.OnGraph,
}  # the function that builds a model of each family; the page shows its source
LISTED = {
    "timm": timm.MODELS,
    "torchvision": [*torchvision.CLASSIFIERS, *torchvision.SEGMENTATION, *torchvision.DETECTION, *torchvision.VIDEO, *torchvision.FLOW],
    "transformers": transformers.types(),
    "diffusers": [part.model for part, _ in diffusers.parts()],
    "segmentation_models": segmentation_models.DECODERS,
    "torch_geometric": torch_geometric.MODELS,
}  # all models of each family, tested or not
MB = 1e6


def setup(app: Sphinx) -> dict[str, bool]:
    """Store the page's parts before it is read. Style and script are those of the support matrix."""
    app.connect("builder-inited", store_parts)
    app.connect("html-page-context", lambda app, page, *_: add_files(app, page))
    return {"parallel_read_safe": True}


def store_parts(app: Sphinx) -> None:
    """Write the files that docs/atlas.md includes and loads, from the stored sweeps."""
    publish_static(app)
    write(STATIC / STYLE, swept.style())
    write(STATIC / SCRIPT, swept.script())
    for name, text in parts(load_sweeps(STORED)).items():
        write(GENERATED / name, text)


def add_files(app: Sphinx, page: str) -> None:
    """Add the style and the script of the page."""
    if page == PAGE:
        app.add_css_file(STYLE)
        app.add_js_file(SCRIPT, loading_method="defer")


def load_sweeps(folder: Path) -> Sweep:
    """Return the sweeps in a folder, one per family, combined."""
    environments: dict[str, dict[str, Any]] = {}
    records: list[Record] = []
    for path in sorted(folder.glob("*.jsonl.gz")):
        made_in, found = parse_records(gzip.decompress(path.read_bytes()), path)
        environments |= made_in
        records += latest(found)
    return Sweep(records, list(environments.values()))


class Listed(Case):
    """A case of the atlas by name. Its library isn't needed, because the model isn't built."""

    @property
    def doc(self) -> str:
        """Empty, because all cases ask the same question."""
        return ""


def list_cases(sweep: Sweep) -> list[Case]:
    """Return the cases of a sweep by family and name."""
    names = sorted({record.case for record in sweep.records}, key=lambda name: (family_of(name), name.lower()))
    return [Listed(name, ASKED[family_of(name)]) for name in names]


def family_of(case: str) -> str:
    """Return the family in the name of a case."""
    return case.partition(".")[0]


def parts(sweep: Sweep) -> dict[str, str]:
    """Return the generated files by their names in generated/."""
    cases = list_cases(sweep)
    loaded = texts(sweep.runs, cases, link_from_matrix, lambda case: [])
    version = hashlib.sha256(loaded.encode()).hexdigest()[:8]
    return {
        "parts/atlas-totals.html": swept.totals(sweep, WHOSE),
        "parts/atlas-costs.html": render_costs(families(sweep)),
        "parts/atlas-table.html": swept.table(sweep.runs, cases, f"../_static/{DATA}?v={version}", WHOSE),
        f"static/{DATA}": pack_texts(loaded),
    }


@dataclass(frozen=True)
class Cost:
    """The results of an exporter in a family, and its costs where all exporters with the same kind of output succeed."""

    family: str
    exporter: str
    right: int
    masked: int
    asked: int
    listed: int
    compared: int
    seconds: float | None
    nodes: float | None
    peak: float | None


def families(sweep: Sweep) -> list[Cost]:
    """Return the costs by family and exporter."""
    names = exporters_of(sweep.runs)
    found = dict.fromkeys(family_of(record.case) for record in sweep.records)
    return [cost for family in sorted(found) for cost in costs(family, names, select_family(sweep.records, family))]


def select_family(records: Sequence[Record], family: str) -> list[Record]:
    """Return the records of a family."""
    return [record for record in records if family_of(record.case) == family]


def costs(family: str, names: Sequence[str], records: Sequence[Record]) -> Iterator[Cost]:
    """Yield the results of each exporter, with medians over the models that all exporters of the family got right."""
    by_exporter = {name: {r.case: r for r in records if r.exporter == name} for name in names}
    asked = {name: seen for name, seen in by_exporter.items() if seen}
    works = {name: {case for case, r in seen.items() if r.mark.works} for name, seen in asked.items()}
    common = set.intersection(*works.values()) if works else set()
    for name, seen in asked.items():
        chosen = [seen[case] for case in sorted(common)]
        yield Cost(
            family,
            name,
            sum(r.mark is Mark.OK for r in seen.values()),
            sum(r.mark is Mark.MASKED for r in seen.values()),
            len(seen),
            len(LISTED[family]),
            len(common),
            middle([r.seconds["export"] for r in chosen if "export" in r.seconds]),
            middle([r.nodes for r in chosen if r.nodes is not None]),
            middle([r.peak_bytes / MB for r in chosen if r.peak_bytes is not None]),
        )


def middle(values: Sequence[float]) -> float | None:
    """Return the median, or None without values."""
    return median(values) if values else None


def render_costs(rows: Sequence[Cost]) -> str:
    """Return the table of costs."""
    return environment_of(Path(__file__).parent).get_template("atlas.html").render(rows=rows)
