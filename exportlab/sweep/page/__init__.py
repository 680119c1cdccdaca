"""Render a sweep as one page: totals per exporter, a filterable table of cases and exporters, and a panel with details of each run.

The page is a self-contained file. The support matrix of the site uses the same parts.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import cache
from html import escape
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...cases import Case, registered
from ...defaults import MODES
from ...exporters.display_names import spoken
from ...outcomes import Mark, Outcome
from ...printable import one_line
from ...show.templates import environment
from ..changes import find_worst_record
from ..records import Record
from . import counts
from .cells import data, marked_up
from .counts import Runs, Sweep

if TYPE_CHECKING:
    from jinja2 import Environment

TEMPLATES = Path(__file__).parent / "templates"
OWN, LAB = "to_onnx", "Export Lab"  # an exporter and its maintainer, whom the page names wherever the exporter is compared
LIGHT, DARK = "default", "github-dark"  # styles of pygments


def _many(count: int, what: str) -> str:
    return f"{count} {what}{'s' * (count != 1)}"


def page(sweep: Sweep, cases: Sequence[Case], changed: str = "") -> str:
    """Return the page of a sweep as self-contained HTML. Texts from models, records and names are escaped.

    Args:
        changed: the differences from an earlier sweep, as lines of text.
    """
    return (
        environment_of(TEMPLATES)
        .get_template("page.html")
        .render(
            title=f"{_many(len(cases), 'case')}, {_many(len(sweep.records), 'run')}: outcomes by exporter",
            totals=totals(sweep, beside=any(case in registered().values() for case in cases)),
            table=table(sweep.runs, cases),
            colors=colors(),
            style=style(),
            highlighting=highlighting(),
            texts=data(sweep.runs, cases),
            script=script(),
            changed=changed,
            outcomes=sorted({record.outcome for record in sweep.records}, key=list(Outcome).index),
        )
    )


def totals(sweep: Sweep, whose: str = LAB, beside: bool = False) -> str:
    """Return a summary sentence, a table with a row per exporter and mode, and the environment of the sweep.

    Args:
        whose: the maintainer of the exporter `OWN`, who is named on the page.
        beside: whether to note that `OWN` was developed with these cases.
    """
    scores = counts.scores(sweep.runs)
    return render_template(
        "totals.html",
        never=[score for score in scores if not score.silent],
        some=[score for score in scores if score.silent],
        kinds=counts.titles(),
        own=OWN if OWN in counts.exporters_of(sweep.runs) else "",
        whose=whose,
        beside=beside,
        rows=[(exporter, mode, counter, counter.total()) for (exporter, mode), counter in counts.counts(sweep.runs).items()],
        made_with=sweep.made_with(),
    )


def table(runs: Runs, cases: Sequence[Case], loaded: str = "", whose: str = LAB) -> str:
    """Return the filters, the table with a row per case and a column per exporter and mode that was run, and the empty panel.

    Args:
        loaded: the address of the panel's texts, if the page doesn't contain them.
        whose: the maintainer of the exporter `OWN`, who is named on the page.
    """
    modes = counts.modes_of(runs)
    families = dict.fromkeys(case.family for case in cases)
    return render_template(
        "table.html",
        exporters=modes,
        modes=[mode for mode in MODES if any(mode in ran for ran in modes.values())],
        outcomes=counts.OUTCOMES,
        choices=counts.choices(),
        masked=Mark.MASKED,
        beside=counts.BESIDE,
        topics=sorted({topic for case in cases for topic in case.topics}),
        families={family: [(case, row_of(case, modes, runs)) for case in cases if case.family == family] for family in families},
        own=OWN if OWN in modes else "",
        whose=whose,
        loaded=loaded,
    )


def row_of(case: Case, modes: Mapping[str, Sequence[str]], runs: Runs) -> list[tuple[int, str, Record | None]]:
    """Return the cells of a case: the number of the exporter, the mode, and the record if there is one."""
    found = [(number, mode, runs.get((case.name, name, mode))) for number, (name, ran) in enumerate(modes.items()) for mode in ran]
    return [(number, mode, find_worst_record(rounds) if rounds else None) for number, mode, rounds in found]


def render_template(template: str, **values: Any) -> str:
    """Render a part of the page. Values are escaped."""
    return environment_of(TEMPLATES).get_template(template).render(values)


@cache
def environment_of(folder: Path) -> Environment:
    """Return the Jinja environment of a folder, with filters for docstrings, names and exporters."""
    from markupsafe import Markup

    made = environment(folder, trim=True)
    made.filters["marked_up"] = lambda text: Markup(marked_up(text))
    made.filters["breakable"] = lambda name: Markup(breakable(name))
    made.filters["spoken"] = spoken
    return made


def breakable(name: str) -> str:
    """Return a name as HTML that lines break between its words: `unet_<wbr>block`, `diffusers.<wbr>Autoencoder<wbr>KL`."""
    return re.sub(r"(?<=[_.])(?=\w)|(?<=[a-z])(?=[A-Z])", "<wbr>", escape(one_line(name)))


def colors() -> str:
    """Return a CSS rule that defines the colour of each outcome: `--outcome-wrong` and so on."""
    named = "\n".join(f"  --outcome-{outcome}: {outcome.color};" for outcome in Outcome)
    return f":root {{\n{named}\n}}\n"


def style() -> str:
    """Return the style sheet of the parts. It uses the variables of `colors` and of the site's theme."""
    return (TEMPLATES / "matrix.css").read_text(encoding="utf-8")


def script() -> str:
    """Return the script of the parts."""
    return (TEMPLATES / "matrix.js").read_text(encoding="utf-8")


def highlighting() -> str:
    """Return the style sheet of highlighted Python, for light and dark."""
    from pygments.formatters import HtmlFormatter

    light, dark = (HtmlFormatter(style=name).get_style_defs(".highlight") for name in (LIGHT, DARK))
    return f"{light}\n@media (prefers-color-scheme: dark) {{\n{dark}\n}}\n"
