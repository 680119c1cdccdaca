"""The page of the support matrix: totals, a table, what its cells open, what changed. Not here: the sweep, nor its script and style."""

from __future__ import annotations

import hashlib
import inspect
import json
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from html import escape
from pathlib import Path
from statistics import median
from typing import Any

from pygments import highlight
from pygments.formatters import HtmlFormatter
from pygments.lexers import PythonLexer
from sphinx.application import Sphinx

from exportlab import exporters, zoo
from exportlab.cases import Case
from exportlab.errors import recognise
from exportlab.sweep import MODES, records
from exportlab.sweep.changes import changes, worst
from exportlab.sweep.records import Record

ROOT = Path(__file__).parent.parent
STORED, PREVIOUS = ROOT / "docs/data/matrix.jsonl", ROOT / "docs/data/matrix-previous.jsonl"
DATA = "matrix-data.js"
FLOOR = "torch.export"  # the exporter whose time is 1
SIGNS = {  # the most serious first
    "wrong": "W", "frozen": "F", "crash": "X", "timeout": "T", "run": "R", "load": "L", "convert": "V", "capture": "C", "ok": "✓",
}  # fmt: skip
KINDS = {
    "wrong": ("wrong",),
    "frozen": ("frozen",),
    "failed": ("crash", "timeout", "run", "load"),
    "refused": ("convert", "capture"),
    "ok": ("ok",),
}
SILENT = ("wrong", "frozen")
CHOICES = {  # of the filter by outcome
    "silent": ("wrong or frozen", SILENT),
    **{kind: (kind if outcomes == (kind,) else f"{kind}: {', '.join(outcomes)}", outcomes) for kind, outcomes in KINDS.items()},
    "not ok": ("anything but ok", tuple(outcome for outcome in SIGNS if outcome != "ok")),
}

ONNX, GRAPH = "generated/gallery/torch_onnx", "generated/gallery/torch_export"
CASE_PAGES = {
    "branch_on_value": f"{ONNX}/cond",
    "cond_on_value": f"{ONNX}/cond",
    "row_loop": f"{ONNX}/loop_over_the_batch",
    "scan_sum": f"{GRAPH}/scan",
    "linear_regression": f"{ONNX}/linear_regression",
    "mlp": f"{ONNX}/two_exporters",
    "custom_op": f"{ONNX}/untranslated_op",
    "index_update": f"{GRAPH}/inplace_index",
    "block_stack": f"{ONNX}/submodules_to_onnx",
    "same_tensor_thrice": "tutorials/101_module_to_file",
    "branch_on_batch": "tutorials/103_shapes_that_move",
}
TOPIC_PAGES = {
    "branches": f"{ONNX}/cond",
    "early exit": f"{ONNX}/cond",
    "cond": f"{ONNX}/cond",
    "scan": f"{GRAPH}/scan",
    "loops": f"{ONNX}/loop_over_the_batch",
    "control flow": f"{GRAPH}/scan",
    "mutation": f"{GRAPH}/inplace_index",
    "custom ops": f"{ONNX}/custom_op_function",
    "hierarchy": f"{ONNX}/submodules",
    "shared weights": f"{ONNX}/submodules",
    "containers": f"{GRAPH}/kwargs_and_caches",
    "Python values": f"{GRAPH}/kwargs_and_caches",
    "None": f"{GRAPH}/kwargs_and_caches",
    "keywords": f"{GRAPH}/kwargs_and_caches",
    "cache": f"{GRAPH}/kwargs_and_caches",
    "dynamic shapes": f"{GRAPH}/dynamic_shapes",
    "bounds": f"{GRAPH}/dynamic_shapes",
    "equal sizes": f"{GRAPH}/dynamic_shapes",
    "state": "docs/converter",
    "signature": f"{ONNX}/simple_case",
    "silence": "docs/outcomes",
}

Cell = tuple[str, str, str]  # case, exporter, mode
Runs = Mapping[Cell, Sequence[Record]]  # the rounds of each


@dataclass(frozen=True)
class Sweep:
    """A stored sweep: its records, and what they were made with."""

    records: Sequence[Record]
    environments: Sequence[Mapping[str, Any]] = ()

    @classmethod
    def read(cls, path: Path) -> Sweep:
        """The sweep of a file; an empty one where there is no file."""
        return cls(records.read(path), list(records.environments(path).values())) if path.exists() else cls([])

    @cached_property
    def runs(self) -> Runs:
        """Its records by case, exporter and mode."""
        return records.groups(self.records)

    def versions(self) -> list[str]:
        """The packages it was made with, as `torch 2.13.0`."""
        named = {(key.removesuffix("_version"), value) for e in self.environments for key, value in e.items() if key.endswith("_version")}
        return sorted(f"{name} {value}" for name, value in named if name not in ("perf", "python"))


def store_parts() -> None:
    """Writes what docs/support.md includes, and what its script loads, from the stored sweeps and the zoo."""
    for name, text in parts(Sweep.read(STORED), Sweep.read(PREVIOUS), zoo.cases()).items():
        path = ROOT / "generated" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")


def parts(sweep: Sweep, previous: Sweep, cases: Sequence[Case]) -> dict[str, str]:
    """The generated files, by their names in generated/."""
    loaded = data(sweep.runs, cases)
    version = hashlib.sha256(loaded.encode()).hexdigest()[:8]
    return {
        "parts/matrix-totals.html": in_words(sweep.runs) + totals(sweep.runs) + made_with(sweep),
        "parts/matrix-table.html": table(sweep.runs, cases, f"../_static/{DATA}?v={version}"),
        "parts/matrix-changes.html": changes_table(previous, sweep),
        f"static/{DATA}": loaded,
    }


def add_files(app: Sphinx, page: str, *_: Any) -> None:
    """Gives the page of the matrix its style and its script, which no other page needs."""
    if page == "docs/support":
        app.add_css_file("matrix.css")
        app.add_js_file("matrix.js", loading_method="defer")


def exporters_of(runs: Runs) -> list[str]:
    """The exporters that were run, in the order of the package, then those that it does not know."""
    seen = {exporter for _, exporter, _ in runs}
    known = [name for name in exporters.available() if name in seen]
    return known + sorted(seen.difference(known))


def counts(runs: Runs) -> dict[tuple[str, str], Counter[str]]:
    """How often each kind of outcome was seen, by exporter and mode; those without a run are left out."""
    found = {(exporter, mode): Counter[str]() for exporter in exporters_of(runs) for mode in MODES}
    for (_, exporter, mode), rounds in runs.items():
        found[exporter, mode][kind_of(worst(rounds).outcome)] += 1
    return {key: counter for key, counter in found.items() if counter}


def kind_of(outcome: str) -> str:
    """The column of the totals that an outcome is counted in."""
    return next(kind for kind, outcomes in KINDS.items() if outcome in outcomes)


def in_words(runs: Runs) -> str:
    """Who is right how often when axes move: those that are silently wrong in the smallest share of their cases first."""
    dynamic = {exporter: counter for (exporter, mode), counter in counts(runs).items() if mode == "dynamic"}
    silent = {exporter: counter["wrong"] + counter["frozen"] for exporter, counter in dynamic.items()}
    ranked = sorted(dynamic, key=lambda name: (silent[name] / dynamic[name].total(), -dynamic[name]["ok"]))
    right = {name: f"right in {dynamic[name]['ok']} of {dynamic[name].total()}" for name in ranked}
    never = [f"<code>{escape(name)}</code> ({right[name]})" for name in ranked if not silent[name]]
    some = [f"<code>{escape(name)}</code> ({right[name]}, silent in {silent[name]})" for name in ranked if silent[name]]
    said = [f"With axes that move, never wrong and never frozen: {', '.join(never)}."] if never else []
    said += [f"Wrong or frozen in some case, without an error: {', '.join(some)}."] if some else []
    return f"<p>{' '.join(said)}</p>\n"


def totals(runs: Runs) -> str:
    """A row an exporter and mode: a bar, and the counts that it draws."""
    head = "".join(f'<th scope="col" class="n">{kind}</th>' for kind in KINDS)
    rows = "\n".join(_totals_row(exporter, mode, counter) for (exporter, mode), counter in counts(runs).items())
    return (
        '<div class="matrix-scroll"><table class="matrix-totals" id="matrix-totals"><thead><tr><th scope="col">exporter</th>'
        f'<th scope="col">mode</th><th scope="col" class="bar">outcomes</th>{head}<th scope="col" class="n">of</th></tr></thead>\n'
        f"<tbody>\n{rows}\n</tbody></table></div>\n"
    )


def _totals_row(exporter: str, mode: str, counter: Counter[str]) -> str:
    seen = {kind: counter[kind] for kind in KINDS}
    bar = "".join(f'<span class="{kind}" style="flex-grow:{n}"></span>' for kind, n in seen.items() if n)
    said = ", ".join(f"{n} {kind}" for kind, n in seen.items() if n)
    numbers = "".join(f'<td class="n" data-outcome="{kind}">{n or ""}</td>' for kind, n in seen.items())
    return (
        f'<tr class="{mode}" data-exporter="{escape(exporter)}" data-mode="{mode}"><th scope="row">{escape(exporter)}</th><td>{mode}</td>'
        f'<td class="bar"><div role="img" aria-label="{said}">{bar}</div></td>{numbers}<td class="n">{counter.total()}</td></tr>'
    )


def made_with(sweep: Sweep) -> str:
    """The versions and the day of a sweep, in a line."""
    days = sorted({str(e.get("date", ""))[:10] for e in sweep.environments})
    return f'<p class="matrix-made">Made with {escape(", ".join([*sweep.versions(), *days]))}.</p>\n'


def table(runs: Runs, cases: Sequence[Case], loaded: str) -> str:
    """The filters, a row a case by family, a column an exporter and mode, and the empty panel; `loaded` is where its texts are."""
    names = exporters_of(runs)
    families = dict.fromkeys(case.family for case in cases)
    bodies = "\n".join(_family(family, [c for c in cases if c.family == family], names, runs) for family in families)
    legend = " ".join(f'<span class="key {word}">{sign}</span> {word}' for word, sign in SIGNS.items())
    return (
        f'{_filters(cases, names)}<p class="matrix-legend">{legend}</p>\n'
        f'<div class="matrix-scroll matrix-box"><table id="matrix" data-texts="{loaded}" style="--columns: {len(MODES) * len(names)}">\n'
        f"{_head(names)}\n{bodies}\n</table></div>\n"
        '<aside id="matrix-panel" role="dialog" aria-label="One cell of the table" tabindex="-1" hidden></aside>\n'
    )


def _head(names: Sequence[str]) -> str:
    columns = [(i, name, mode) for i, name in enumerate(map(escape, names)) for mode in MODES]
    widths = "".join(f'<col class="e{i} {mode}">' for i, _, mode in columns)
    groups = "".join(
        f'<th scope="colgroup" colspan="2" class="e{i}" data-exporter="{name}">{name}</th>' for i, name, mode in columns if mode == MODES[0]
    )
    modes = "".join(f'<th scope="col" class="e{i} {mode}">{mode[:3]}.</th>' for i, _, mode in columns)
    return f'<colgroup><col>{widths}</colgroup>\n<thead><tr><th scope="col" rowspan="2">case</th>{groups}</tr><tr>{modes}</tr></thead>'


def _family(family: str, cases: Sequence[Case], names: Sequence[str], runs: Runs) -> str:
    rows = "\n".join(_row(case, names, runs) for case in cases)
    title = f'<tr class="family"><th scope="rowgroup" colspan="{1 + 2 * len(names)}"><span>{family}</span></th></tr>'
    return f'<tbody data-family="{family}">{title}\n{rows}</tbody>'


def _row(case: Case, names: Sequence[str], runs: Runs) -> str:
    found = [(i, mode, runs.get((case.name, name, mode))) for i, name in enumerate(names) for mode in MODES]
    cells = "".join(_cell(f"e{i} {mode}", worst(rounds).outcome if rounds else "") for i, mode, rounds in found)
    title = f"<b>{case.name.replace('_', '_<wbr>')}</b> <span>{marked_up(case.doc)}</span>"
    return f'<tr data-case="{case.name}" data-topics="{escape(",".join(case.topics))}"><th scope="row">{title}</th>{cells}</tr>'


def marked_up(text: str) -> str:
    """A line of a docstring as HTML, what stands in backticks as code."""
    return re.sub("`([^`]+)`", r"<code>\1</code>", escape(text))


def _cell(classes: str, outcome: str) -> str:
    return f'<td class="{classes} {outcome}">{SIGNS[outcome]}</td>' if outcome else f'<td class="{classes}"></td>'


def _filters(cases: Sequence[Case], names: Sequence[str]) -> str:
    topics = sorted({topic for case in cases for topic in case.topics})
    outcomes = "".join(
        f'<option value="{value}" data-cells="{",".join(f".{word}" for word in words)}">{text}</option>'
        for value, (text, words) in CHOICES.items()
    )
    boxes = "".join(f'<label><input type="checkbox" name="exporter" value="{escape(n)}"> {escape(n)}</label>' for n in names)
    return (
        '<form id="matrix-filters" hidden>\n<label>search <input type="search" name="search" placeholder="name, question, error"></label>\n'
        f'<label>outcome <select name="outcome"><option value="">any</option>{outcomes}</select></label>\n'
        f"{_select('family', dict.fromkeys(case.family for case in cases))}{_select('topic', topics)}{_select('mode', MODES)}"
        f'<fieldset><legend>only</legend>{boxes}</fieldset>\n<output></output> <button type="reset">show all</button>\n</form>\n'
        "<noscript><p>With JavaScript you can filter this table and open its cells.</p></noscript>\n"
    )


def _select(name: str, values: Iterable[str]) -> str:
    options = "".join(f"<option>{escape(value)}</option>" for value in values)
    return f'<label>{name} <select name="{name}"><option value="">all</option>{options}</select></label>\n'


def data(runs: Runs, cases: Iterable[Case]) -> str:
    """What the panel shows of each case and each run: a script, since a page that is opened as a file cannot load anything else."""
    known = {case.name: about(case) for case in cases}
    shown = {"/".join(cell): seen(cell, runs) for cell in runs if cell[0] in known}
    return f"window.matrixTexts = {json.dumps({'cases': known, 'runs': shown}, ensure_ascii=False, separators=(',', ':'))};\n"


def about(case: Case) -> dict[str, Any]:
    """A case for its panel: the question, its source, and the pages that say more."""
    source, line = inspect.getsourcelines(case.factory)
    return {
        "doc": marked_up(case.doc),
        "file": f"exportlab/zoo/{case.family}.py",
        "line": line,
        "source": highlight("".join(source), PythonLexer(), HtmlFormatter(nowrap=True)),
        "pages": [[title(page), f"../{page}.html"] for page in pages_of(case)],
    }


def pages_of(case: Case) -> list[str]:
    """The pages about a case: its own first, then those of its topics."""
    own = [CASE_PAGES[case.name]] if case.name in CASE_PAGES else []
    return list(dict.fromkeys([*own, *(TOPIC_PAGES[topic] for topic in case.topics if topic in TOPIC_PAGES)]))


def source_of(page: str) -> Path:
    """The file that a page is written in.

    Raises:
        FileNotFoundError: there is none.
    """
    for end in (".py", ".md"):
        path = ROOT / (page.removeprefix("generated/") + end)
        if path.exists():
            return path
    raise FileNotFoundError(f"docs/matrix.py links to {page}, which nothing is the source of")


def title(page: str) -> str:
    """The title of a page, from its source."""
    lines = source_of(page).read_text(encoding="utf-8").splitlines()
    found = next((line for line in lines if line.startswith("# ") and not line.startswith("# %%")), lines[0])
    return (lines[1] if source_of(page).suffix == ".py" else found.removeprefix("# ")).replace("`", "")


def seen(cell: Cell, runs: Runs) -> dict[str, Any]:
    """A run for its panel, without what was not reached."""
    record = worst(runs[cell])
    case, _, mode = cell
    figures = {
        **{name: getattr(record, name) for name in ("outcome", "error", "where", "nodes", "bytes", "weights_bytes", "peak_bytes", "worst")},
        "failed": [{key: value for key, value in check.items() if value not in (None, "")} for check in record.failed],
        "known": known(record),
        "export": ratio([(r.seconds, b.seconds) for r, b in paired(runs[cell], runs.get((case, FLOOR, mode), ()))], "export", "export"),
        "call": ratio([(r.seconds, r.seconds) for r in runs[cell]], "call", "eager"),
    }
    return {name: value for name, value in figures.items() if value not in (None, [])}


def known(record: Record) -> str | None:
    """The name of the known error that a record's message is; None where it is none, or has no message."""
    found = [error.name for error in recognise(record.error or "") if error.stage != "silent"]
    return found[0] if found else None


def paired(rounds: Iterable[Record], others: Iterable[Record]) -> list[tuple[Record, Record]]:
    """The records of two runs that were made in the same round."""
    by_round = {record.round: record for record in others}
    return [(record, by_round[record.round]) for record in rounds if record.round in by_round]


def ratio(pairs: Iterable[tuple[Mapping[str, float | None], Mapping[str, float | None]]], figure: str, base: str) -> float | None:
    """The median of one figure over another, to two digits; None where either is missing."""
    both = [(ours.get(figure), theirs.get(base)) for ours, theirs in pairs]
    found = [mine / other for mine, other in both if mine and other]
    return float(f"{median(found):.2g}") if found else None


def changes_table(before: Sweep, now: Sweep) -> str:
    """What differs between two sweeps, after a sentence that says between which."""
    if not before.runs:
        return "<p>No earlier sweep is stored.</p>\n"
    found = changes(before.records, now.records).outcomes
    old, new = (", ".join(v for v in one.versions() if v not in other.versions()) for one, other in ((before, now), (now, before)))
    said = f"Between {escape(old) or 'one sweep'} and {escape(new) or 'another of the same versions'}"
    if not found:
        return f"<p>{said}, no outcome differs.</p>\n"
    head = "".join(f'<th scope="col">{word}</th>' for word in found[0].row())
    rows = "\n".join(f"<tr>{''.join(map(_changed, change.row().values()))}</tr>" for change in found)
    return (
        f"<p>{said}, {len(found)} of {len(before.runs.keys() & now.runs.keys())} outcomes differ.</p>\n"
        f'<div class="matrix-scroll"><table class="matrix-changes"><thead><tr>{head}</tr></thead>\n'
        f"<tbody>\n{rows}\n</tbody></table></div>\n"
    )


def _changed(text: str) -> str:
    return f'<td><b class="key {text}">{text}</b></td>' if text in SIGNS else f"<td>{escape(text)}</td>"
