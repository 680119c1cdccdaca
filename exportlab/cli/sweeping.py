"""Run `exportlab sweep` and `exportlab compare`: export many models, and compare two sweeps."""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import Executor
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

import typer

from ..cases import Case, NotInstalled, atlas, atlas_families, registered, registered_case
from ..exporters.session import CPU
from ..exporters.to_onnx import SAID
from ..isolation import run_isolated
from ..messages import first_line
from ..sweep import MODES, Limits, SweepError, Task, grid, sweep
from ..sweep.changes import changes
from ..sweep.progress import progress, totals
from ..sweep.records import Record, RecordsError, environment, read, save_pyperf
from ..target import BadInput
from ..userfile import all_cases, built, named_case
from . import validation
from .exit_codes import Interrupted, NotRight
from .matrix import matrix, names, save_csv, save_page
from .names import file_of, split_names


@dataclass(frozen=True)
class Asked:
    """The options of a sweep. `everything` confirms that all test cases are meant if `cases` is empty."""

    cases: str
    exporters: tuple[str, ...]
    modes: tuple[str, ...]
    rounds: int
    everything: bool = False
    providers: tuple[str, ...] = ()

    def tasks(self, limits: Limits) -> tuple[list[Case], list[Task]]:
        """Return the cases and their tasks.

        Raises:
            BadInput: a case, exporter or mode doesn't exist.
        """
        validation.check_named("exporters", self.exporters)
        validation.check_named("modes", self.modes)
        for name in self.exporters:
            validation.check_exporter(name)
        for mode in self.modes:
            if mode not in MODES:
                raise BadInput(f"no mode {mode!r}: use {' or '.join(MODES)}")
        cases = _cases(self.cases, limits)
        return cases, grid(cases, self.exporters, self.modes, self.rounds, file_of(self.cases))

    def check_meant(self, tasks: Sequence[Task]) -> None:
        """Ask for confirmation if no cases were named.

        Raises:
            BadInput: the user declines, or standard input is not a terminal.
        """
        if self.cases or self.everything:
            return
        runs = f"without --cases, this sweep has {len(tasks):,} runs of {len({task.case for task in tasks})} cases"
        if not sys.stdin.isatty():
            raise BadInput(f"{runs}: select cases with --cases, or confirm with --all")
        if not typer.confirm(f"{runs}. Run them all?", err=True):
            raise BadInput("nothing was run: select cases with --cases")


@dataclass(frozen=True)
class Outputs:
    """Files to write: the records, and other formats of the same results."""

    records: Path
    pyperf: Path | None = None
    csv: Path | None = None
    html: Path | None = None

    def check(self) -> None:
        """Raise `BadInput` if a file can't be written, or if two outputs have the same path."""
        named = [path for path in (self.records, self.pyperf, self.csv, self.html) if path is not None]
        for path in named:
            validation.check_writable(path)
        taken = [path for number, path in enumerate(named) if path.resolve() in (other.resolve() for other in named[:number])]
        if taken:
            raise BadInput(f"{taken[0]} is the path of two outputs: use a different file for each")


def write_records(outputs: Outputs, asked: Asked, limit: tuple[float, int, int], processes: int, scheduler: str) -> None:
    """Run a sweep, write its records, and print the outcome of each case and the totals.

    Raises:
        BadInput: the input can't be used. NotRight: a model itself fails. Interrupted: by the user.
    """
    outputs.check()
    limits = Limits(*limit, providers=asked.providers or (CPU,))
    cases, tasks = asked.tasks(limits)
    asked.check_meant(tasks)
    records = _swept(tasks, outputs.records, limits, processes, scheduler)
    print(f"{matrix(records, asked.exporters)}\n\n{totals(records)}\n{len(records)} records are in {outputs.records}")
    for line, count in Counter(record.instead for record in records if record.instead).items():
        print(f"{count} runs: {line}")
    if left := list(dict.fromkeys(record.case for record in records if record.was_training)):
        print(f"{names(left)}: {SAID}; @case(training=True) exports it as it is")
    if (pyperf := outputs.pyperf) is not None:
        validation.write_file(lambda: save_pyperf(records, pyperf, environment(limits.threads, providers=limits.providers)), pyperf)
    if (csv := outputs.csv) is not None:
        validation.write_file(lambda: save_csv(records, csv), csv)
    if (html := outputs.html) is not None:
        validation.write_file(lambda: save_page(records, outputs.records, cases, html), html)


def _swept(tasks: list[Task], output: Path, limits: Limits, processes: int, scheduler: str) -> list[Record]:
    try:
        with progress(len(tasks)) as tell, _executor(scheduler) as executor:
            return sweep(tasks, output, processes=processes, limits=limits, executor=executor, tell=tell)
    except KeyboardInterrupt as error:
        raise Interrupted(f"interrupted; run the same command to resume from the {len(read(output))} records in {output}") from error
    except SweepError as error:
        raise NotRight(str(error)) from error
    except RecordsError as error:
        raise BadInput(str(error)) from error


def compare_records(before: Path, after: Path) -> None:
    """Print the differences between two sweeps.

    Raises:
        BadInput: a file can't be read. NotRight: an outcome is worse in the second sweep.
    """
    try:
        found = changes(*(validation.read(partial(read, path), path) for path in (before, after)))
    except RecordsError as error:
        raise BadInput(str(error)) from error
    print(found)
    if any(change.kind == "broke" for change in found.outcomes):
        raise NotRight(f"{after} is worse than {before}")


def _cases(asked: str, limits: Limits) -> list[Case]:
    """Return the cases of a user's file, all or those named after a colon; otherwise cases of the test suite."""
    path = file_of(asked)
    if path is None:
        return [found for name in split_names(asked) for found in _find_registered_cases(name)] if asked else list(registered().values())
    if path == asked:
        return [_looked_at(case, path, limits) for case in all_cases(path)]
    return [_looked_at(named_case(path, name), path, limits, named=True) for name in split_names(asked.rpartition(":")[2])]


def _looked_at(case: Case, path: str, limits: Limits, named: bool = False) -> Case:
    """Return the case, and record whether its samples have dynamic dimensions.

    This requires a call of its factory, which may hang or crash and therefore runs in a separate process. If it fails, a case that the
    user named is an error; other cases are kept, and their tasks fail.
    """
    if case.dims:
        return case
    made = run_isolated(lambda: built(case, Path(path), case.build).dynamic_shapes is not None, seconds=limits.seconds, memory=limits.bytes)
    if made.failure is not None and named:
        raise BadInput(f"{path}:{case.name}: {made.failure.error.removeprefix('BadInput: ')}")
    return replace(case, samples_move=bool(made.value))


def _find_registered_cases(name: str) -> list[Case]:
    """Return a family or one case. `atlas` and `atlas:family` select the models that run only on request."""
    collection, _, family = name.partition(":")
    if collection == "atlas":
        return _load_atlas_cases((family,)) if family else _load_atlas_cases(atlas_families(), leave_out=True)
    if name.partition(".")[0] in atlas_families():
        return [_one_of_atlas(name)]
    families: dict[str, list[Case]] = {}
    for case in registered().values():
        families.setdefault(case.family, []).append(case)
    if name not in families and name not in registered():
        raise BadInput(f"the test suite has no case or family {name!r}; its families are {', '.join(families)} and atlas")
    return families[name] if name in families else [registered()[name]]


def _load_atlas_cases(families: Sequence[str], leave_out: bool = False) -> list[Case]:
    """Return the cases of these families. If a library is not installed, print a message and skip its family, or raise `BadInput`."""
    found: list[Case] = []
    for family in families:
        try:
            found += atlas(family).values()
        except NotInstalled as error:
            if not leave_out:
                raise BadInput(str(error)) from error
            print(f"{error}; its models are skipped", file=sys.stderr)
        except KeyError as error:
            raise BadInput(str(error.args[0])) from error
    if not found:
        raise BadInput("none of the model libraries of the atlas is installed: pip install 'exportlab[atlas]'")
    return found


def _one_of_atlas(name: str) -> Case:
    try:
        return registered_case(name)
    except NotInstalled as error:
        raise BadInput(str(error)) from error
    except KeyError as error:
        raise BadInput(f"the atlas has no model {name!r}") from error


@contextmanager
def _executor(scheduler: str) -> Iterator[Executor | None]:
    """Yield the executor of a cluster, or None without a scheduler."""
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
        raise BadInput(f"cannot connect to a scheduler at {scheduler}: {first_line(error)}") from error
    with client:
        yield client.get_executor()
