"""Build the page of older runtimes: models of both exporters at each opset, run in releases of ONNX Runtime by tools/try_runtimes.py."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import date
from functools import cached_property
from itertools import groupby
from pathlib import Path
from typing import Any

from site_files import PARTS, ROOT, write
from sphinx.application import Sphinx

from exportlab.measure.words import spoken
from exportlab.show.templates import environment

STORED = ROOT / "docs/data/old_runtimes.jsonl"
EXPORTERS = ("dynamo", "to_onnx")
IR_LIMIT = re.compile(r"max supported IR version: (\d+)")
OPSET_TOO_NEW = re.compile(r"Opset \d+ is under development")


def setup(app: Sphinx) -> dict[str, bool]:
    """Store the page's parts before it is read."""
    app.connect("builder-inited", lambda _: store_parts())
    return {"parallel_read_safe": True}


def store_parts() -> None:
    """Write the files that docs/versions.md includes."""
    for name, text in parts(read(STORED)).items():
        write(PARTS / name, text)


@dataclass(frozen=True)
class Run:
    """The result of one file in one runtime: as written, and with a lowered IR version if the original version was too new."""

    release: str
    outcome: str
    said: str = ""
    lowered: str = ""
    lowered_said: str = ""

    @property
    def at_last(self) -> str:
        """The outcome with an IR version that the runtime accepts."""
        return self.lowered or self.outcome

    @property
    def why(self) -> str:
        """The message of that outcome."""
        return self.lowered_said if self.lowered else self.said

    @property
    def too_new(self) -> bool:
        """Whether the runtime rejects the opset itself."""
        return OPSET_TOO_NEW.search(self.why) is not None


@dataclass(frozen=True)
class File:
    """An exported file, or the refusal of its exporter."""

    case: str
    exporter: str
    opset: int
    written: int
    ir: int
    refused: str
    runs: tuple[Run, ...]


@dataclass(frozen=True)
class Runtime:
    """One release: the date of its wheel, and the newest IR version and opset that it accepts."""

    release: str
    made: str
    ir: int | None
    opset: int

    @property
    def month(self) -> str:
        """The date, such as `November 2024`."""
        return date.fromisoformat(f"{self.made}-01").strftime("%B %Y")


@dataclass(frozen=True)
class Tried:
    """All results."""

    made_by: dict[str, str]
    months: dict[str, str]
    files: tuple[File, ...]

    @cached_property
    def runtimes(self) -> list[Runtime]:
        """The releases, oldest first."""
        return [self._runtime(release, made) for release, made in self.months.items()]

    def _runtime(self, release: str, made: str) -> Runtime:
        runs = [(file, run) for file in self.files for run in file.runs if run.release == release]
        limits = {int(told[1]) for _, run in runs if (told := IR_LIMIT.search(run.said))}
        taken = [file.written for file, run in runs if run.at_last == "ok"]
        return Runtime(release, made, min(limits, default=None), max(taken))

    @property
    def cases(self) -> list[str]:
        """The models, without duplicates."""
        return list(dict.fromkeys(file.case for file in self.files))

    @property
    def opsets(self) -> list[int]:
        """The requested opsets, without duplicates."""
        return sorted({file.opset for file in self.files})

    @property
    def pinned(self) -> str:
        """The release that builds this site."""
        return self.made_by["onnxruntime"]

    @cached_property
    def sound(self) -> list[File]:
        """The files that are right in the pinned release. Their other failures are caused by the runtime."""
        return [file for file in self.files if any(run.release == self.pinned and run.at_last == "ok" for run in file.runs)]

    def at(self, exporter: str, opset: int) -> list[File]:
        """Return the sound files of one exporter and opset."""
        return [file for file in self.sound if (file.exporter, file.opset) == (exporter, opset)]

    def right(self, exporter: str, opset: int, release: str) -> int:
        """Return how many of these are right in a runtime, with an IR version that it accepts."""
        return sum(run.at_last == "ok" for file in self.at(exporter, opset) for run in file.runs if run.release == release)

    def problems(self) -> Iterator[tuple[File, Run]]:
        """Yield the runs of sound files that are not right although the runtime supports the IR version and the opset."""
        known = {runtime.release: runtime.opset for runtime in self.runtimes}
        for file in self.sound:
            yield from ((file, run) for run in file.runs if run.at_last != "ok" and file.written <= known[run.release])


def read(path: Path) -> Tried:
    """Read the stored results."""
    head, *rows = map(json.loads, path.read_text(encoding="utf-8").splitlines())
    return Tried(head["made_by"], head["runtimes"], tuple(_file(row, head["said"]) for row in rows))


def _file(row: dict[str, Any], said: Sequence[str]) -> File:
    runs = tuple(
        Run(
            release,
            run["outcome"],
            _find_message(run, "said", said),
            run.get("lowered_outcome", ""),
            _find_message(run, "lowered_said", said),
        )
        for release, run in row["runs"].items()
    )
    return File(*(row[name] for name in ("case", "exporter", "opset", "written", "ir", "refused")), runs)


def _find_message(run: dict[str, Any], key: str, said: Sequence[str]) -> str:
    return said[run[key]] if key in run else ""


def parts(tried: Tried) -> dict[str, str]:
    """Return the generated files by their names in generated/parts/."""
    return {
        "old-runtimes-asked.html": render_summary(tried),
        "old-runtimes-releases.html": table(*releases(tried)),
        "old-runtimes-lowered.html": render_lowered(tried),
        "old-runtimes-problems.html": table(*problems(tried)),
        "old-runtimes-opsets.html": table(*opsets(tried)),
    }


def render_summary(tried: Tried) -> str:
    """Return a summary: what was run, how many outputs were wrong, and which files are not right in the pinned release."""
    first, *_, last = tried.runtimes
    made_by = ", ".join(f"{name} {tried.made_by[name]}" for name in ("torch", "onnxscript"))
    runs = [run for file in tried.sound for run in file.runs]
    answers = [run for run in runs if run.at_last in ("ok", "wrong")]
    wrong = sum(run.at_last == "wrong" for run in answers)
    left_out = "; ".join(filter(None, (_unsound(tried, exporter) for exporter in EXPORTERS)))
    return (
        f"<p>We exported {len(tried.cases)} models with both exporters for each opset from {tried.opsets[0]} to {tried.opsets[-1]}, with "
        f"{made_by}. Each file was run in {len(tried.runtimes)} releases of ONNX Runtime, from {first.release} ({first.month}) to "
        f"{last.release} ({last.month}), at sizes not used in the export. {len(tried.sound)} of {len(tried.files)} files are right "
        f"in {tried.pinned}, and the tables cover only these. <strong>Of their {len(runs)} runs, {len(answers)} returned a result, "
        f"and {wrong} of these differ from eager mode</strong>; the others were rejected.</p>\n"
        f"<p>Files that are not right in {tried.pinned}, or were not written: {left_out}.</p>\n"
    )


def _unsound(tried: Tried, exporter: str) -> str:
    """List the models of an exporter that are not right in the pinned release, with their opsets."""
    found: dict[str, list[int]] = {}
    for file in tried.files:
        if file.exporter == exporter and file not in tried.sound:
            found.setdefault(file.case, []).append(file.opset)
    told = ", ".join(f"<code>{case}</code> (opset {_spans(opsets, tried.opsets)})" for case, opsets in found.items())
    return told and f"by {spoken(exporter)}, {told}"


def releases(tried: Tried) -> tuple[list[str], list[list[str]]]:
    """Return for each release its limits, and how many models are right at its newest opset. Consecutive equal releases share a row."""
    newest = max(file.ir for file in tried.files)

    def row(runtime: Runtime) -> tuple[str, ...]:
        counts = (
            _format_share(tried.right(name, runtime.opset, runtime.release), len(tried.at(name, runtime.opset))) for name in EXPORTERS
        )
        return str(runtime.opset), f"{newest}, as written" if runtime.ir is None else f"up to {runtime.ir}, so lower it", *counts

    heads = ["ONNX Runtime", "built", "newest opset", "IR version", *map(spoken, EXPORTERS)]
    rows = []
    for values, alike in groupby(tried.runtimes, row):
        same = list(alike)
        rows.append([*(_spans(given, given) for given in ([one.release for one in same], [one.month for one in same])), *values])
    return heads, rows


def render_lowered(tried: Tried) -> str:
    """Return the results of the files of which only the IR version was too new."""
    runs = [(file, run) for file in tried.sound for run in file.runs if run.lowered and not run.too_new]
    right = sum(run.lowered == "ok" for _, run in runs)
    where = list(dict.fromkeys(run.release for _, run in runs))
    return (
        f"<p>In {len(runs)} runs, the release supports the opset but rejects the file's IR version: {', '.join(where)}. "
        f"With a lower IR version, {right} of them are right.</p>\n"
    )


def problems(tried: Tried) -> tuple[list[str], list[list[str]]]:
    """Return the failures that the age of the runtime doesn't explain, by exporter, model and message."""
    found: dict[tuple[str, str, str, str], list[tuple[int, str]]] = {}
    for file, run in tried.problems():
        found.setdefault((file.case, spoken(file.exporter), run.at_last, plain_error(run.why)), []).append((file.opset, run.release))
    known = list(tried.months)

    def spans(at: Sequence[tuple[int, str]]) -> tuple[str, str]:
        return _spans((opset for opset, _ in at), tried.opsets), _spans((release for _, release in at), known)

    rows = [[case, exporter, *spans(at), f"{outcome}: {said}"] for (case, exporter, outcome, said), at in found.items()]
    return ["model", "exporter", "opset", "in", "message"], rows


def opsets(tried: Tried) -> tuple[list[str], list[list[str]]]:
    """Return for each opset how many models of each exporter are right in the pinned release, and the oldest release in which all of those
    are.
    """
    heads = ["opset", *(word for name in EXPORTERS for word in (f"right by {spoken(name)}", "all of these right from"))]
    return heads, [[str(opset), *(cell for name in EXPORTERS for cell in _describe_opset(tried, name, opset))] for opset in tried.opsets]


def _describe_opset(tried: Tried, exporter: str, opset: int) -> tuple[str, str]:
    """Return the count, and the first release from which on all of them are right."""
    count = len(tried.at(exporter, opset))
    bad = [number for number, release in enumerate(tried.months) if tried.right(exporter, opset, release) < max(count, 1)]
    return _format_share(count, len(tried.cases)), [*tried.months, "none here"][bad[-1] + 1 if bad else 0]


def plain_error(said: str) -> str:
    """Return a runtime's message without its prefix, names of nodes and numbers of samples."""
    said = re.sub(r"^\[ONNXRuntimeError\] : \d+ : \w+ : |^sample \d+: ", "", said)
    return re.sub(r"Load model from \S+ failed:", "", said)[:160]


def _spans(values: Iterable[Any], among: Sequence[Any]) -> str:
    """Format values as `18 to 22, 26`: consecutive values of `among` become ranges."""
    places = sorted({among.index(value) for value in values})
    runs = [[among[place] for _, place in run] for _, run in groupby(enumerate(places), lambda pair: pair[1] - pair[0])]
    return ", ".join(str(run[0]) if len(run) == 1 else f"{run[0]} to {run[-1]}" for run in runs)


def _format_share(count: int, total: int) -> str:
    return f"{count} of {total}"


def table(heads: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table that folds on a phone."""
    return environment(Path(__file__).parent, trim=True).get_template("old_runtimes.html").render(heads=heads, rows=rows, zip=zip)
