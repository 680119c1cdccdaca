"""Many models: sweep over them, or hold two sweeps against each other."""

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
    """What a sweep is over: cases as they were named, exporters, modes, how often, on which providers; and whether all cases
    there are is what was meant."""

    cases: str
    exporters: tuple[str, ...]
    modes: tuple[str, ...]
    rounds: int
    everything: bool = False
    providers: tuple[str, ...] = ()

    def tasks(self, limits: Limits) -> tuple[list[Case], list[Task]]:
        """Return the cases, and the tasks over them.

        Raises:
            BadInput: there is no such case, exporter or mode.
        """
        validation.check_named("exporters", self.exporters)
        validation.check_named("modes", self.modes)
        for name in self.exporters:
            validation.check_exporter(name)
        for mode in self.modes:
            if mode not in MODES:
                raise BadInput(f"no mode {mode!r}: there are {', '.join(MODES)}")
        cases = _cases(self.cases, limits)
        return cases, grid(cases, self.exporters, self.modes, self.rounds, file_of(self.cases))

    def check_meant(self, tasks: Sequence[Task]) -> None:
        """Ask, where no cases were named and there is somebody to ask.

        Raises:
            BadInput: it was not meant, or there is nobody.
        """
        if self.cases or self.everything:
            return
        runs = f"without --cases these are {len(tasks):,} runs, of {len({task.case for task in tasks})} cases"
        if not sys.stdin.isatty():
            raise BadInput(f"{runs}: name some with --cases, or say --all")
        if not typer.confirm(f"{runs}. All of them?", err=True):
            raise BadInput("nothing was run: name some cases with --cases")


@dataclass(frozen=True)
class Outputs:
    """Files to write: the records, and what else is made of them."""

    records: Path
    pyperf: Path | None = None
    csv: Path | None = None
    html: Path | None = None

    def check(self) -> None:
        """Raise `BadInput` where one cannot be written, or would take another's place."""
        named = [path for path in (self.records, self.pyperf, self.csv, self.html) if path is not None]
        for path in named:
            validation.check_writable(path)
        taken = [path for number, path in enumerate(named) if path.resolve() in (other.resolve() for other in named[:number])]
        if taken:
            raise BadInput(f"{taken[0]} is named for two outputs: name a file for each")


def write_records(outputs: Outputs, asked: Asked, limit: tuple[float, int, int], processes: int, scheduler: str) -> None:
    """Sweep, keep the records, and print what became of each case, and the totals.

    Raises:
        BadInput: what was given cannot be used. NotRight: a case fails by itself. Interrupted: by the user.
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
        raise Interrupted(f"interrupted; the same command goes on from the {len(read(output))} records in {output}") from error
    except SweepError as error:
        raise NotRight(str(error)) from error
    except RecordsError as error:
        raise BadInput(str(error)) from error


def compare_records(before: Path, after: Path) -> None:
    """Print what differs between two sweeps.

    Raises:
        BadInput: a file cannot be read. NotRight: something broke.
    """
    try:
        found = changes(*(validation.read(partial(read, path), path) for path in (before, after)))
    except RecordsError as error:
        raise BadInput(str(error)) from error
    print(found)
    if any(change.kind == "broke" for change in found.outcomes):
        raise NotRight(f"{after} is worse than {before}")


def _cases(asked: str, limits: Limits) -> list[Case]:
    """The cases of a file of one's own, all of it or those named behind a colon; else those of the zoo."""
    path = file_of(asked)
    if path is None:
        return [found for name in split_names(asked) for found in _find_registered_cases(name)] if asked else list(registered().values())
    if path == asked:
        return [_looked_at(case, path, limits) for case in all_cases(path)]
    return [_looked_at(named_case(path, name), path, limits, named=True) for name in split_names(asked.rpartition(":")[2])]


def _looked_at(case: Case, path: str, limits: Limits, named: bool = False) -> Case:
    """The case, and whether its samples move, which only a call of its factory tells; in a process of its own, since it may hang or die.

    What fails there is refused where it was named, and else left to its tasks, which fail by themselves.
    """
    if case.dims:
        return case
    made = run_isolated(lambda: built(case, Path(path), case.build).dynamic_shapes is not None, seconds=limits.seconds, memory=limits.bytes)
    if made.failure is not None and named:
        raise BadInput(f"{path}:{case.name}: {made.failure.error.removeprefix('BadInput: ')}")
    return replace(case, samples_move=bool(made.value))


def _find_registered_cases(name: str) -> list[Case]:
    """A family, or one case; `atlas` and `atlas:family` for those that are run only where they are named."""
    collection, _, family = name.partition(":")
    if collection == "atlas":
        return _load_atlas_cases((family,)) if family else _load_atlas_cases(atlas_families(), leave_out=True)
    if name.partition(".")[0] in atlas_families():
        return [_one_of_atlas(name)]
    families: dict[str, list[Case]] = {}
    for case in registered().values():
        families.setdefault(case.family, []).append(case)
    if name not in families and name not in registered():
        raise BadInput(f"the zoo has no case and no family {name!r}; its families: {', '.join(families)}; and atlas")
    return families[name] if name in families else [registered()[name]]


def _load_atlas_cases(families: Sequence[str], leave_out: bool = False) -> list[Case]:
    """The cases of these families; one whose library is not installed is left out aloud, or refused."""
    found: list[Case] = []
    for family in families:
        try:
            found += atlas(family).values()
        except NotInstalled as error:
            if not leave_out:
                raise BadInput(str(error)) from error
            print(f"{error}; its models are left out", file=sys.stderr)
        except KeyError as error:
            raise BadInput(str(error.args[0])) from error
    if not found:
        raise BadInput("no library of the atlas is installed: pip install 'exportlab[atlas]'")
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
