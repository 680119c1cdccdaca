"""Give a benchmark script its command line, its stored runs and the description of the machine. `timing` measures the rounds."""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from importlib.metadata import version
from pathlib import Path
from textwrap import fill
from typing import Any

import torch

from ..cases import Inputs, Sample
from ..exporters import OnnxArtifact
from ..exporters.session import session, session_options
from ..files import atomic_write, check_replaceable
from ..messages import quiet
from ..show.table import Table
from . import sources
from .figures import entitle
from .finding import Lines, write_finding
from .timing import Make, Timings, chance

DATA = Path(__file__).parents[2] / "benchmarks" / "data"  # the full runs, one file for each page
WIDTH = 96  # of a printed line
PACKAGES = ("torch", "onnx", "onnxscript", "onnxruntime")

# Metadata of pyperf that is stored; the host name, paths and the boot time are not.
KEPT = ("cpu_count", "cpu_model_name", "date", "perf_version", "python_implementation", "python_version", "timer")


@dataclass(frozen=True)
class Run:
    """The results of one run of a benchmark: `run["a title"].ratio("a", "b")`.

    Attributes:
        times: seconds, bytes or counts, by title and then by name.
        facts: other results that the page shows: outcomes, differences, sizes.
        metadata: the machine, the versions, and whether the run was `full` or `quick`.
    """

    times: Mapping[str, Timings]
    facts: Mapping[str, Any] = field(default_factory=dict)
    metadata: Mapping[str, Any] = field(default_factory=dict)

    def __getitem__(self, title: str) -> Timings:
        return self.times[title]

    @property
    def rounds(self) -> int:
        """The smallest number of counted rounds. A page with several comparisons stores it in `facts`."""
        return self.facts.get("rounds", min(len(timings.rounds) for timings in self.times.values()))

    @property
    def origin(self) -> str:
        """The date and the machine: `Full run of 21 November 2026 (AMD EPYC, 2 cores, 1 torch thread, 15 rounds)`."""
        date = datetime.fromisoformat(self.metadata["date"])
        threads = self.metadata["torch_threads"]
        processor = self.metadata.get("cpu_model_name", self.metadata["system"])
        rounds = f", {self.rounds} rounds" * (self.rounds > 1)
        where = f"{processor}, {self.metadata['cpu_count']} cores, {threads} torch thread{'s' * (threads > 1)}{rounds}"
        return f"{self.metadata['kind'].capitalize()} run of {date.day} {date:%B %Y} ({where})"


Finding = Callable[[Run], Lines]
Draw = Callable[[Run], object]
Tables = Callable[[Run], Sequence[Table]]


def no_tables(run: Run) -> tuple[()]:
    """Return none."""
    return ()


@dataclass(frozen=True)
class Page:
    """One benchmark: the options of its command line, and the functions that show and store a run.

    Attributes:
        quick: whether to measure only a few rounds.
        json: where to write the run. plot: where to write the picture.
        finding: where to write the finding of the stored run, without measuring anything.
        only: the models to measure; all of them if it is empty.
    """

    name: str
    quick: bool
    json: Path | None = None
    plot: Path | None = None
    finding: Path | None = None
    only: tuple[str, ...] = ()

    def open(self, finding: Finding, draw: Draw, tables: Tables = no_tables) -> None:
        """Show the finding of the stored run before anything is measured. A full run, which replaces it, does not show it."""
        if not (self.quick or self.finding):
            return
        if not (DATA / f"{self.name}.json").exists():
            print(f"No full run is stored yet: python benchmarks/{self.name}.py --json benchmarks/data/{self.name}.json")
            return
        run = stored(self.name)
        self.begin(run.origin, finding(run), lambda: draw(run), tables(run))

    def begin(self, origin: str, lines: Lines, draw: Callable[[], object], tables: Sequence[Table] = ()) -> None:
        """Print and draw a finding. With `--finding`, write it for the site and exit.

        Raises:
            SystemExit: the finding was written.
        """
        if self.finding:
            write_finding(self.finding, origin, lines, draw, tables, self.badge())
            sys.exit()
        print(format_finding(origin, lines), *tables, sep="\n\n")
        draw()
        entitle(lines[0])

    @property
    def script(self) -> Path:
        """The path of the script in the repository."""
        return DATA.parent / f"{self.name}.py"

    def badge(self) -> str:
        """Return the note about a stored run that is older than the code it measured, or "" if it is current."""
        path = DATA / f"{self.name}.json"
        return sources.badge(load(path).metadata, self.script) if path.exists() else ""

    def tell(self, line: str) -> None:
        """Print the progress of a full run to the terminal."""
        if not self.quick:
            print(line, file=sys.__stderr__, flush=True)

    def earlier(self, packages: Iterable[str] = PACKAGES, may_differ: Sequence[str] = ()) -> Run:
        """Return the full run in the file of `--json`, to which `--only` adds models. It is empty without a file or without `--only`.

        Args:
            may_differ: keys of the environment that may differ, where times of different machines are not compared.

        Raises:
            ValueError: the run is from a different machine or from different versions, so its times can't be compared with new ones.
        """
        if not (self.only and self.json and self.json.exists()):
            return Run({})
        run, now = load(self.json), environment(packages)
        if differs := [name for name, value in now.items() if name not in ("date", *may_differ) and run.metadata.get(name) != value]:
            seen = ", ".join(f"{name} was {run.metadata.get(name)} and is {now[name]}" for name in differs)
            raise ValueError(f"{self.json.name} cannot be added to: {seen}; write a new file, or measure all models")
        return run

    def keep(
        self,
        times: Mapping[str, Timings],
        *,
        facts: Mapping[str, Any] | None = None,
        unit: str | Mapping[str, str] = "second",
        packages: Iterable[str] = PACKAGES,
        machine: Mapping[str, str] | None = None,
    ) -> Run:
        """Return the run as it is stored, and write it to the file of `--json`.

        Args:
            facts: anything that JSON can hold.
            unit: the unit, for all titles or by title: `second`, `byte` or `integer`, pyperf's names. All values are above 0.
            machine: metadata that replaces the machine's own, for a file with times of several machines.
        """
        before = sources.read_states(load(self.json).metadata) if self.only and self.json and self.json.exists() else {}
        measured = json.dumps({**before, **sources.collect_states(self.script, self.only)})
        metadata = {**environment(packages), **(machine or {}), "kind": "quick" if self.quick else "full", sources.KEY: measured}
        with tempfile.TemporaryDirectory() as folder:
            return load(save(self.json or Path(folder) / "run.json", times, metadata, unit, facts))

    def close(self, run: Run, finding: Finding, draw: Draw, tables: Tables = no_tables) -> None:
        """Draw this run, write the picture to the file of `--plot`, and print the finding and its uncertainty."""
        from matplotlib import pyplot

        lines = finding(run)
        draw(run)
        entitle(lines[0])
        if self.plot:
            with atomic_write(self.plot) as draft:
                pyplot.savefig(draft, dpi=150)
        print(format_finding(f"This run was {run.metadata['kind']}, {run.rounds} rounds", lines), *tables(run), sep="\n\n")
        print(f"By chance alone, equals would look different {chance(run.rounds)}.")
        print(machine(PACKAGES))


def format_finding(origin: str, lines: Lines) -> str:
    """Return the finding, further findings and the origin as paragraphs, wrapped to `WIDTH`."""
    first, *others = lines
    points = [fill(f"- {line}", WIDTH, subsequent_indent="  ") for line in others]
    blocks = [fill(f"{first}.", WIDTH), "\n".join(points), fill(f"{origin}.", WIDTH)]
    return "\n\n".join(block for block in blocks if block)


def page(name: str, question: str, quick: str, models: Iterable[str] = ()) -> Page:
    """Return a benchmark with its command line: `--quick`, `--json`, `--plot`, `--finding`. In a notebook, the run is quick.

    From here on, torch computes on one thread, because several threads wait for each other on a busy machine. Python warnings are hidden:
    they are about models that the reader did not write, and they contain paths of the machine that builds the page.

    Args:
        question: the question that the benchmark answers. quick: the difference between the quick and the full run.
        models: the values of `--only`, if models can be measured separately.
    """
    notebook = "ipykernel" in sys.modules
    parser = argparse.ArgumentParser(description=question, allow_abbrev=False)
    parser.add_argument("--quick", action="store_true", help=quick)
    parser.add_argument("--json", type=_new_file, metavar="FILE", help="write the run to FILE, in pyperf's format")
    parser.add_argument("--plot", type=_new_plot, metavar="FILE", help="write the plot to FILE (.png, .svg, .pdf)")
    parser.add_argument("--finding", type=_new_plot, metavar="FILE", help="write what the stored run found to FILE (.svg), and exit")
    if models:
        parser.add_argument("--only", action="append", choices=list(models), default=[], help="measure this one; may be given again")
    given, unknown = parser.parse_known_args()
    if unknown and not notebook:
        parser.error(f"unknown: {' '.join(unknown)}")
    torch.set_num_threads(1)
    quiet()
    warnings.simplefilter("ignore")
    only = tuple(given.only) if models else ()
    return Page(name, given.quick or notebook, given.json, given.plot, given.finding, only)


def _new_file(name: str) -> Path:
    """Return a path that can be written, which is checked before the measurement."""
    try:
        check_replaceable(name)
    except OSError as error:
        raise argparse.ArgumentTypeError(str(error)) from error
    return Path(name)


def _new_plot(name: str) -> Path:
    if not name.endswith((".png", ".svg", ".pdf")):
        raise argparse.ArgumentTypeError(f"cannot write {name}: a plot ends in .png, .svg or .pdf")
    return _new_file(name)


def in_onnxruntime(artifact: OnnxArtifact, sample: Inputs, repeats: int = 1) -> Make:
    """Return a function to time: `repeats` runs of a model in ONNX Runtime on one thread, with inputs prepared in advance."""
    import onnx_ir as ir

    running = session(ir.to_proto(artifact.model).SerializeToString(), session_options(threads=1))
    given = Sample.of(sample)
    leaves = artifact.calling.feed(given.args, given.kwargs)
    feeds = {i.name: x.numpy() for i, x in zip(running.get_inputs(), leaves, strict=True)}
    return lambda: lambda: [running.run(None, feeds) for _ in range(repeats)]


def in_process(code: str, *arguments: str, **variables: str) -> dict[str, Any]:
    """Run Python code in a separate process, and return the last line of its output, which is JSON.

    Args:
        variables: environment variables in addition to those of this process.

    Raises:
        RuntimeError: the process failed. The message contains the end of its error output.
    """
    command = [sys.executable, "-c", code, *arguments]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env={**os.environ, **variables})
    if done.returncode:
        raise RuntimeError(f"the process failed: {done.stderr[-2000:]}")
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return found


def environment(packages: Iterable[str]) -> dict[str, Any]:
    """Return what the times depend on: processor, threads, Python and the versions of `packages`, without the machine's name."""
    import pyperf

    found = pyperf.Run([1.0]).get_metadata()
    return {
        **{key: found[key] for key in KEPT if key in found},
        "system": f"{platform.system()} {platform.machine()}",
        "torch_threads": torch.get_num_threads(),
        **{f"{package}_version": version(package) for package in packages},
    }


def machine(packages: Iterable[str]) -> str:
    """Return the environment in one line."""
    versions = ", ".join(f"{package} {version(package)}" for package in packages)
    return f"{os.cpu_count()} cores, {torch.get_num_threads()} torch threads, Python {platform.python_version()}, {versions}"


def save(
    path: str | Path,
    times: Mapping[str, Timings],
    metadata: Mapping[str, Any],
    unit: str | Mapping[str, str] = "second",
    facts: Mapping[str, Any] | None = None,
) -> Path:
    """Write one pyperf benchmark for each name in each of `times`. `python -m pyperf compare_to` compares two such files.

    Args:
        unit: the unit, for all titles or by title: `second`, `byte`, `integer`.
        facts: any JSON value; it is stored in the metadata.

    Raises:
        OSError: the file cannot be written. ValueError: pyperf does not support a value, such as 0, or a unit.
    """
    import pyperf

    common = {**metadata, **({"facts": json.dumps(facts)} if facts else {})}
    units = unit if isinstance(unit, Mapping) else dict.fromkeys(times, unit)
    benchmarks = [
        pyperf.Benchmark([_pyperf_run(timings, name, {**common, "title": title, "unit": units.get(title, "second")})])
        for title, timings in times.items()
        for name in timings.rounds[0]
    ]
    with atomic_write(path) as draft:
        pyperf.BenchmarkSuite(benchmarks).dump(str(draft))
    return Path(path)


def _pyperf_run(timings: Timings, name: str, metadata: Mapping[str, Any]) -> Any:
    import pyperf

    discarded = [(1, seconds[name]) for seconds in timings.discarded]
    named = {**metadata, "label": name, "name": f"{metadata['title']}, {name}"}
    return pyperf.Run(timings.of(name), warmups=discarded, metadata=named, collect_metadata=False)


def load(path: str | Path) -> Run:
    """Return the run in a file written by `save`.

    Raises:
        OSError: the file cannot be read. ValueError: `save` did not write this file.
    """
    import pyperf

    suite = pyperf.BenchmarkSuite.load(str(path))
    runs: dict[str, dict[str, Any]] = {}
    for benchmark in suite:
        metadata = benchmark.get_metadata()
        if "title" not in metadata:
            raise ValueError(f"{Path(path).name} is pyperf's, but not a run of a benchmark here: {benchmark.get_name()} has no title")
        runs.setdefault(metadata["title"], {})[metadata["label"]] = benchmark.get_runs()[0]
    shared = suite.get_metadata()
    return Run({title: _timings(named) for title, named in runs.items()}, json.loads(shared.pop("facts", "{}")), shared)


def _timings(runs: Mapping[str, Any]) -> Timings:
    discarded = zip(*([seconds for _, seconds in run.warmups] for run in runs.values()), strict=True)
    rounds = zip(*(run.values for run in runs.values()), strict=True)
    return Timings(*(tuple(dict(zip(runs, seen, strict=True)) for seen in kept) for kept in (discarded, rounds)))


def stored(name: str) -> Run:
    """Return the full run that is stored for the page of this name, from benchmarks/data/NAME.json.

    Raises:
        OSError: no run is stored.
    """
    return load(DATA / f"{name}.json")
