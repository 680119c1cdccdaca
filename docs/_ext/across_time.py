"""Build the page on the effect of other releases: for each package, compare two stored sweeps run by run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

from own_exporter import OURS
from previous import AGAIN, STORED, both, load_sweep
from site_files import GENERATED, STATIC, publish_static, write
from sphinx.application import Sphinx
from support_matrix import STYLE

from exportlab.measure.words import spoken
from exportlab.outcomes import Outcome
from exportlab.show.templates import environment
from exportlab.sweep import page as swept
from exportlab.sweep.changes import Change, changes, find_worst_record
from exportlab.sweep.page.counts import OUTCOMES, Sweep
from exportlab.sweep.records import Record

PAGE = "docs/versions"
PACKAGES = ("torch", "transformers", "onnxscript")


def setup(app: Sphinx) -> dict[str, bool]:
    """Store the page's parts before it is read. The style is that of the support matrix."""
    app.connect("builder-inited", store_parts)
    app.connect("html-page-context", lambda app, page, *_: app.add_css_file(STYLE) if page == PAGE else None)
    return {"parallel_read_safe": True}


def store_parts(app: Sphinx) -> None:
    """Write the files that docs/versions.md includes, from the stored sweeps."""
    publish_static(app)
    write(STATIC / STYLE, swept.style())
    for name, text in parts().items():
        write(GENERATED / name, text)


def parts() -> dict[str, str]:
    """Return the generated files by their names in generated/."""
    found = {package: compare_package(package) for package in PACKAGES}
    each = {f"parts/across-{package}.html": render_template("across_package.html", found=one) for package, one in found.items()}
    return {"parts/across-summary.html": render_template("across_summary.html", all=list(found.values())), **each}


def compare_package(package: str) -> Compared:
    """Return the effect of another release of a package, from its stored sweeps."""
    before, now = both(package)
    return Compared(package, before, now, len(load_sweep(STORED / f"{package}{AGAIN}.jsonl").runs))


@dataclass(frozen=True)
class Row:
    """A run whose outcome differs, with its record for each release."""

    change: Change
    before: Record
    now: Record

    @property
    def turned(self) -> str:
        """`silent` if it is silently wrong only now, `loud` if it was silently wrong before and isn't right now, else ""."""
        if self.before.silent == self.now.silent:
            return ""
        return "silent" if self.now.silent else "loud" * (self.now.outcome is not Outcome.OK)

    @property
    def said(self) -> str:
        """The first line of the error or the first failed check: of the new record, or of the earlier one if the new one is right."""
        shown = self.before if self.now.outcome is Outcome.OK else self.now
        return shown.error or (str(shown.failed[0]["detail"]) if shown.failed else "")

    @property
    def exporter(self) -> str:
        """Its display name."""
        return spoken(self.now.exporter)


@dataclass(frozen=True)
class Compared:
    """Two sweeps of the same runs with two releases of a package. `again` contains the repetitions of runs that differed."""

    package: str
    before: Sweep
    now: Sweep
    again: int = 0

    @cached_property
    def pairs(self) -> list[tuple[Record, Record]]:
        """The pairs of records of each run in both sweeps."""
        now = self.now.runs
        return [(find_worst_record(rounds), find_worst_record(now[run])) for run, rounds in self.before.runs.items() if run in now]

    @cached_property
    def rows(self) -> list[Row]:
        """The runs whose outcome differs, regressions first."""
        records = {(then.case, then.exporter, then.mode): (then, now) for then, now in self.pairs}
        return [Row(change, *records[change.run]) for change in changes(self.before.records, self.now.records).outcomes]

    @property
    def versions(self) -> list[str]:
        """The releases that differ, earlier and current, such as `torch 2.12.1`. Empty if none differs."""
        sides = (self.before, self.now), (self.now, self.before)
        return [", ".join(v for v in one.versions() if v not in other.versions()) for one, other in sides]

    @property
    def days(self) -> list[str]:
        """The first and last days of the two sweeps."""
        return [" to ".join(dict.fromkeys((days[0], days[-1]))) for days in map(days_of, (self.before, self.now)) if days]

    def count(self, kind: str) -> int:
        """The number of runs that are `better`, `broke` or `other`."""
        return sum(row.change.kind == kind for row in self.rows)

    def turned(self, way: str) -> int:
        """The number of runs that turned `silent` or `loud`."""
        return sum(row.turned == way for row in self.rows)

    @property
    def exporters(self) -> Sequence[str]:
        """The exporters of the sweeps."""
        return [spoken(name) for name in dict.fromkeys(then.exporter for then, _ in self.pairs)]

    @property
    def redrawn(self) -> dict[str, tuple[int, int]]:
        """For each exporter: how many of the runs with the same outcome have a different number of nodes, and how many have a number.
        `to_onnx` is left out, because its code may have changed in the meantime.
        """
        alike = [(then, now) for then, now in self.pairs if then.outcome == now.outcome and None not in (then.nodes, now.nodes)]
        others = dict.fromkeys(then.exporter for then, _ in alike if then.exporter != OURS)
        of = {name: [then.nodes != now.nodes for then, now in alike if then.exporter == name] for name in others}
        return {spoken(name): (sum(differ), len(differ)) for name, differ in of.items()}


def days_of(sweep: Sweep) -> list[str]:
    """Return the days of a sweep, in order."""
    return sorted(str(made_in["date"])[:10] for made_in in sweep.environments)


def render_template(template: str, **values: object) -> str:
    """Render a template of this folder. Values are escaped."""
    return environment(Path(__file__).parent, trim=True).get_template(template).render(outcomes=OUTCOMES, **values)
