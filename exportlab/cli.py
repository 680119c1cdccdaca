"""The command line: each verb reads its input, calls the package once, and prints."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from concurrent.futures import Executor
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Annotated, TypeVar

import typer

from .cases import Built, Case, registered
from .doctor import EXPORTERS as DOCTORS
from .doctor import Options
from .doctor.terminal import diagnosed
from .eager import called_once
from .entry_points import BrokenEntryPoint
from .exporters import Artifact, from_file, get
from .files import check_replaceable
from .isolation import apart
from .messages import first_line, quiet
from .outcomes import Outcome
from .samples import A_SAMPLE, FORMS
from .show.plain import plain
from .sweep import MODES, Limits, SweepError, grid, sweep
from .sweep.changes import changes
from .sweep.isolated import GiB
from .sweep.progress import progress, totals
from .sweep.records import RecordsError, environment, read, save_pyperf
from .target import BadInput, check_is_file
from .userfile import all_cases, built, guarded, load_case, named_case, user_line
from .verification.comparison import EXPORTERS, Attempt, attempt, reason
from .verification.difference import TOLERANCES, Tolerances
from .verification.report import Report
from .verification.verify import verify

NOT_RIGHT, BAD_INPUT, INTERRUPTED = 1, 2, 130
GRAMMAR = f"A function that returns {FORMS}; or a @case. A sample is {A_SAMPLE}."
CASES = "A file of your own @cases; such functions in it, by name; or names or families of the zoo."
LOAD_REFUSED = "ONNX Runtime refuses the file"

T = TypeVar("T")

app = typer.Typer(help="Export PyTorch models, and verify what came out.", no_args_is_help=True, add_completion=False)
Target = Annotated[str, typer.Argument(metavar="FILE.py:NAME", help=GRAMMAR)]
Output = Annotated[Path, typer.Option("--output", "-o", metavar="PATH", help="Where to write the file.")]
Name = Annotated[str, typer.Option("--exporter", help="Which exporter.")]
Opset = Annotated[int | None, typer.Option("--opset-version", help="The ONNX opset to ask for; the exporter's own by default.")]
Static = Annotated[bool, typer.Option("--static", help="Keep every size as it is, even where a @case names dimensions.")]
Force = Annotated[bool, typer.Option("--force", help="Write the file even when it is not right.")]
File = Annotated[Path, typer.Argument(metavar="MODEL.onnx", help="The file to run.")]


@app.command()
def export(
    target: Target, output: Output, exporter: Name = "dynamo", opset_version: Opset = None, static: Static = False, force: Force = False
) -> None:
    """Export a model, verify it against eager, and write it when it is right."""
    case = load_case(target)
    _check_exporter(exporter)
    _check_writable(output)
    _check_eager(case, target)
    options = {} if opset_version is None else {"opset_version": opset_version}
    samples, shapes = (case.samples[:1], None) if static else (case.samples, case.dynamic_shapes)
    tried = guarded(lambda: attempt(get(exporter), case.module, samples, shapes, **options), f"running {target}", _file(target))
    for line in tried.said:
        print(f"{exporter} said: {line}")
    artifact, report = _succeeded(tried, target)
    print(report)
    if report.outcome != Outcome.OK and not force:
        raise NotRight(f"the outcome is {report.outcome}, so {output} was not written (--force writes it all the same)")
    _written(lambda: artifact.save(output), output)
    print(f"wrote {output} ({output.stat().st_size:,} bytes)")


@app.command("verify")
def verify_file(
    file: File,
    target: Target,
    rtol: Annotated[float | None, typer.Option(min=0, help="Relative tolerance of every floating dtype.")] = None,
    atol: Annotated[float | None, typer.Option(min=0, help="Absolute tolerance of every floating dtype.")] = None,
) -> None:
    """Run an ONNX file beside the module it was exported from, at every size that the @case names."""
    check_is_file(file)
    case = load_case(target)
    first, returned = case.samples[0], _check_eager(case, target)
    artifact = _read(lambda: from_file(file, first.args, first.kwargs, returned), file)
    _check_loads(artifact)
    report = guarded(
        lambda: verify(artifact, case.module, case.samples, tolerances=_tolerances(rtol, atol)), f"running {target}", _file(target)
    )
    print(report)
    if report.outcome != Outcome.OK:
        raise NotRight(f"{file} is not right: {report.outcome}")


def _tolerances(rtol: float | None, atol: float | None) -> Tolerances | None:
    """The stated ones, the other of the two being 0; None where neither is stated."""
    return None if rtol is None and atol is None else dict.fromkeys(TOLERANCES, (rtol or 0.0, atol or 0.0))


@app.command("sweep")
def run_sweep(
    output: Annotated[Path, typer.Option("--output", "-o", metavar="FILE.jsonl", help="The records; the same call goes on there.")],
    cases: Annotated[str, typer.Option(metavar="FILE.py[:NAMES]|NAMES", help=CASES)] = "",
    exporters: Annotated[str, typer.Option(metavar="NAMES", help="Separated by commas.")] = ",".join(EXPORTERS),
    modes: Annotated[str, typer.Option(metavar="NAMES", help="static, dynamic, or both.")] = ",".join(MODES),
    rounds: Annotated[int, typer.Option(min=1, help="How often everything is done; times need four or more.")] = 1,
    processes: Annotated[int, typer.Option(min=1, help="How many tasks at a time.")] = 2,
    timeout: Annotated[float, typer.Option(min=0.1, help="Seconds that a task may take.")] = Limits.seconds,
    memory: Annotated[float, typer.Option(min=0.1, help="GiB that a task may take.")] = Limits.bytes / GiB,
    threads: Annotated[int, typer.Option(min=1, help="Threads of each task.")] = Limits.threads,
    scheduler: Annotated[str, typer.Option(metavar="ADDRESS", help="A dask.distributed scheduler to hand the tasks to.")] = "",
    pyperf: Annotated[Path | None, typer.Option(metavar="FILE.json", help="Write the times as pyperf JSON too.")] = None,
) -> None:
    """Export many cases by several exporters, verify each, and keep a record of each."""
    _check_writable(output)
    limits = Limits(timeout, int(memory * GiB), threads)
    (file, chosen), names = _cases(cases, limits), _listed(exporters)
    for name in names:
        _check_exporter(name)
    tasks = grid(chosen, names, _modes(modes), rounds, file)
    try:
        with progress(len(tasks)) as tell, _executor(scheduler) as executor:
            records = sweep(tasks, output, processes=processes, limits=limits, executor=executor, tell=tell)
    except KeyboardInterrupt as error:
        raise Interrupted(f"interrupted; the same command goes on from the {len(read(output))} records in {output}") from error
    print(totals(records))
    print(f"{len(records)} records are in {output}")
    if pyperf is not None:
        _written(lambda: save_pyperf(records, pyperf, environment(threads)), pyperf)


@app.command("compare")
def compare_files(
    before: Annotated[Path, typer.Argument(metavar="A.jsonl", help="The records of one sweep.")],
    after: Annotated[Path, typer.Argument(metavar="B.jsonl", help="Those of another.")],
) -> None:
    """Hold two sweeps against each other: what got better, what broke, what is only noise."""
    found = changes(*(_read(partial(read, path), path) for path in (before, after)))
    print(found)
    if any(change.kind == "broke" for change in found.outcomes):
        raise NotRight(f"{after} is worse than {before}")


@app.command("doctor")
def run_doctor(
    target: Target,
    output: Annotated[Path | None, typer.Option("--output", "-o", metavar="REPORT.html", help="Write the report, without weights.")] = None,
    save: Annotated[Path | None, typer.Option(metavar="MODEL.onnx", help="Write the best export, where one is right.")] = None,
    limit: Annotated[float, typer.Option(min=1, help="Seconds that all of it may take.")] = 300.0,
    memory: Annotated[float, typer.Option(min=0.1, help="GiB that a step may take, the model included.")] = 8.0,
    exporters: Annotated[str, typer.Option(metavar="NAMES", help="Separated by commas.")] = ",".join(DOCTORS),
    train: Annotated[bool, typer.Option("--train", help="Export a model in training mode as it is, and not as eval().")] = False,
) -> None:
    """Find out what is wrong with an export: the defect, your line, and what gets past it.

    Exit code 0: an export that is right was found; 1: none is right; 2: the input cannot be used (the file or the factory raises,
    hangs, exits, takes too much memory, or returns something else; or the model itself fails); 130: interrupted.
    """
    names = _listed(exporters)
    for name in names:
        _check_exporter(name)
    for path in filter(None, (output, save)):
        _check_writable(path)
    sys.exit(diagnosed(target, Options(limit, memory, names, save, train), output))


class Interrupted(Exception):
    """By the user; what was done is kept."""


class NotRight(Exception):
    """The export failed, or its result differs from eager."""


def main() -> None:
    """Run the command line.

    Exit code 0: right; 1: an export failed or is not right; 2: what was given cannot be used; 130: interrupted.
    """
    quiet()
    try:
        app(prog_name="exportlab")
    except (BadInput, BrokenEntryPoint) as error:
        _stop(error, BAD_INPUT)
    except (NotRight, SweepError) as error:
        _stop(error, NOT_RIGHT)
    except RecordsError as error:
        _stop(error, BAD_INPUT)
    except Interrupted as error:
        _stop(error, INTERRUPTED)


def _cases(given: str, limits: Limits) -> tuple[str | None, list[Case]]:
    """The file of one's own, or None, and its cases: all of it, or those named behind a colon; else those of the zoo."""
    if given.endswith(".py"):
        return given, [_looked_at(case, given, limits) for case in all_cases(given)]
    path, _, names = given.rpartition(":")
    if path.endswith(".py"):
        return path, [_looked_at(named_case(path, name), path, limits, named=True) for name in _listed(names)]
    return None, [found for name in _listed(given) for found in _registered(name)] if given else list(registered().values())


def _looked_at(case: Case, path: str, limits: Limits, named: bool = False) -> Case:
    """The case, and whether its samples move, which only a call of its factory tells; in a process of its own, since it may hang or die.

    What fails there is refused where it was named, and else left to its tasks, which fail by themselves.
    """
    if case.dims:
        return case
    made = apart(lambda: built(case, Path(path), case.build).dynamic_shapes is not None, seconds=limits.seconds, memory=limits.bytes)
    if made.failure is not None and named:
        raise BadInput(f"{path}:{case.name}: {made.failure.error.removeprefix('BadInput: ')}")
    return replace(case, samples_move=bool(made.value))


def _registered(name: str) -> list[Case]:
    """A family, or one case."""
    families: dict[str, list[Case]] = {}
    for case in registered().values():
        families.setdefault(case.family, []).append(case)
    if name not in families and name not in registered():
        raise BadInput(f"the zoo has no case and no family {name!r}; its families: {', '.join(families)}")
    return families[name] if name in families else [registered()[name]]


def _listed(names: str) -> tuple[str, ...]:
    return tuple(dict.fromkeys(name.strip() for name in names.split(",") if name.strip()))


def _modes(given: str) -> tuple[str, ...]:
    for mode in _listed(given):
        if mode not in MODES:
            raise BadInput(f"no mode {mode!r}: there are {', '.join(MODES)}")
    return _listed(given)


@contextmanager
def _executor(scheduler: str) -> Iterator[Executor | None]:
    """The executor of a cluster; None where no scheduler is named."""
    if not scheduler:
        yield None
        return
    try:
        from distributed import Client
    except ImportError as error:
        raise BadInput("--scheduler needs the package distributed: pip install distributed") from error
    try:
        client = Client(scheduler, timeout="10s")
    except (OSError, ValueError) as error:
        raise BadInput(f"no scheduler answers at {scheduler}: {first_line(error)}") from error
    with client:
        yield client.get_executor()


def _stop(error: Exception, code: int) -> None:
    print(f"exportlab: {plain(error)}", file=sys.stderr)
    sys.exit(code)


def _succeeded(tried: Attempt, target: str) -> tuple[Artifact, Report]:
    """The artifact and its report.

    Raises:
        NotRight: the exporter refused the model, or the runtime the file.
    """
    if tried.artifact is None or tried.report is None:
        assert tried.error is not None
        if tried.outcome == Outcome.LOAD:
            raise NotRight(f"{LOAD_REFUSED}: {first_line(tried.error)}") from tried.error
        why = f"{tried.outcome}: {reason(tried.error)}{user_line(tried.error, _file(target))}"
        raise NotRight(f"{tried.exporter} refuses {target}: {why}") from tried.error
    return tried.artifact, tried.report


def _check_loads(artifact: Artifact) -> None:
    try:
        artifact.load()
    except Exception as error:
        raise NotRight(f"{LOAD_REFUSED}: {first_line(error)}") from error


def _check_eager(case: Built, target: str) -> object:
    """Return what eager returns for the first sample: a model that does not run cannot be exported."""
    return guarded(lambda: called_once(case.module, case.samples[0]), f"running {target}", _file(target))


def _file(target: str) -> Path:
    return Path(target.rpartition(":")[0])


def _check_exporter(name: str) -> None:
    try:
        get(name)
    except ValueError as error:
        raise BadInput(str(error)) from error


def _check_writable(path: Path) -> None:
    """Before minutes are spent on an export whose result cannot be kept."""
    try:
        check_replaceable(path)
    except OSError as error:
        raise BadInput(str(error)) from error


def _written(write: Callable[[], object], path: Path) -> None:
    try:
        write()
    except OSError as error:
        raise BadInput(f"cannot write {path}: {error.strerror or error}") from error


def _read(open_file: Callable[[], T], path: Path) -> T:
    try:
        return open_file()
    except (OSError, ValueError) as error:
        raise BadInput(f"cannot read {path}: {error}") from error


if __name__ == "__main__":
    main()
