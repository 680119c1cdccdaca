"""Run `exportlab bench`: measure one model with several exporters and runtimes."""

from __future__ import annotations

import hashlib
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from importlib.util import find_spec
from pathlib import Path

from ..bench.compare import compared
from ..bench.output import PAGE, write_all
from ..bench.plan import BATCH, Plan, assumed_batch, measured
from ..bench.result import Bench
from ..bench.run import RECORDS, Work, measure
from ..bench.ways import ways_of
from ..cases import Case
from ..exporters.session import CPU, can_fork, present
from ..isolation import run_isolated
from ..sweep import SweepError
from ..sweep.records import RecordsError, read
from ..target import BadInput, check_is_file, target_of
from ..userfile import built, named_case
from . import validation
from .exit_codes import Interrupted, NotRight


@dataclass(frozen=True)
class Asked:
    """The options of a benchmark, as given on the command line."""

    exporters: tuple[str, ...]
    runtimes: tuple[str, ...]
    sizes: Mapping[str, tuple[int, ...]]
    rounds: int
    threads: int
    seconds: float
    memory: int
    providers: tuple[str, ...]
    device: str

    def plan(self) -> tuple[Plan, list[str]]:
        """Return the plan, and a note for each unavailable provider or device that names its replacement."""
        absent = present(self.providers)[1]
        device, missing = resolve_device(self.device)
        return Plan(self.sizes, threads=self.threads, providers=self.providers or (CPU,), device=device), [
            line for line in (absent, missing) if line
        ]


def resolve_device(name: str) -> tuple[str, str]:
    """Return the device, or `cpu` and a note if the device is not available.

    Raises:
        BadInput: PyTorch doesn't support a device of this name.
    """
    import torch

    try:
        kind = torch.device(name).type
    except RuntimeError as error:
        raise BadInput(f"unknown device {name!r}: use for example cpu, cuda or cuda:0") from error
    available = kind == "cpu" or (torch.accelerator.is_available() and str(torch.accelerator.current_accelerator()) == kind)
    return (name, "") if available else ("cpu", f"the device {name} is not available: cpu was used instead")


def sizes_of(batches: str, sizes: list[str]) -> dict[str, tuple[int, ...]]:
    """Return the sizes of each dimension in `--batches 1,8` and `--sizes seq=16,128`. Dimensions other than the batch may be 0.

    Raises:
        BadInput: a value is not a list of integers, or a batch size is 0.
    """
    named = [(BATCH, batches)] * bool(batches) + [_parse_size_option(one) for one in sizes]
    return {name: _numbers(name, values) for name, values in named}


def _parse_size_option(one: str) -> tuple[str, str]:
    name, equals, values = one.partition("=")
    if not equals or not name:
        raise BadInput(f"--sizes {one} is not NAME=SIZES, as in seq=16,128")
    return name, values


def _numbers(name: str, values: str) -> tuple[int, ...]:
    found = [value.strip() for value in values.split(",")]
    least = int(name == BATCH)
    if not all(value.isascii() and value.isdecimal() and int(value) >= least for value in found):
        raise BadInput(f"invalid sizes {values!r} for {name}: give integers of at least {least}, separated by commas")
    return tuple(dict.fromkeys(map(int, found)))


def bench_model(target: str, output: Path | None, asked: Asked) -> None:
    """Measure a model, and write the page, figures and tables to a folder.

    Raises:
        BadInput: the input can't be used. NotRight: the model itself fails, or no export is correct. Interrupted: by the user.
    """
    if find_spec("pyperf") is None:
        raise BadInput("bench needs pyperf, which is not installed: pip install pyperf")
    path, name = target_of(target)
    ways, left_out = ways_of(asked.exporters, asked.runtimes)
    plan, absent = asked.plan()
    case = named_case(str(path), name)
    notes = [*left_out, *absent, *_looked_at(case, path, plan, asked)]
    for line in notes:
        print(line)
    folder = output or Path(f"bench-{name}")
    fingerprint = hashlib.sha256(path.read_bytes()).hexdigest()[:12]
    work = Work(name, ways, asked.rounds, plan, str(path.resolve()), asked.seconds, asked.memory, fingerprint)
    found = _run_bench(work, folder, notes)
    _close(found, folder)
    if not any(way.ranked for way in found.ways().values() if way.name != "eager"):
        raise NotRight(f"no export of {target} is correct")


def _looked_at(case: Case, path: Path, plan: Plan, asked: Asked) -> list[str]:
    """Build the model once in a separate process to detect input that can't be measured; return the assumptions about its sizes."""
    new_process = not can_fork(plan.providers, plan.device)
    look = partial(_look_anew, path, case.name, plan) if new_process else partial(_look, case, path, plan)
    ended = run_isolated(look, seconds=asked.seconds, memory=asked.memory, anew=new_process)
    if ended.failure is not None:
        raise BadInput(f"{path}:{case.name}: {ended.failure.error.removeprefix('BadInput: ')}")
    return [ended.value] if ended.value else []


def _look(case: Case, path: Path, plan: Plan) -> str:
    made = built(case, path, case.made)
    measured(case, plan)
    return "" if case.dims else assumed_batch(made, list(plan.sizes))


def _look_anew(path: Path, name: str, plan: Plan) -> str:
    """Build the model in a new process. A case from the user's file can't be sent there, so it is loaded by name."""
    return _look(named_case(str(path), name), path, plan)


def _run_bench(work: Work, folder: Path, notes: list[str]) -> Bench:
    try:
        return Bench(measure(work, folder, lambda line: print(line, file=sys.stderr, flush=True)), notes)
    except KeyboardInterrupt as error:
        records = validation.read(partial(read, folder / RECORDS), folder / RECORDS)
        if records:
            _close(Bench(records, [*notes, "this benchmark was interrupted: some rounds are missing"]), folder)
        raise Interrupted(f"interrupted; run the same command to resume from the {len(records)} records in {folder}") from error
    except SweepError as error:
        raise NotRight(str(error)) from error
    except RecordsError as error:
        raise BadInput(str(error)) from error


def _close(found: Bench, folder: Path) -> None:
    """Print the results, and write the page, figures and tables."""
    print(found)
    for line in found.findings():
        print(line)
    validation.write_file(lambda: write_all(found, folder), folder)
    print(f"wrote {folder / PAGE}, with figures, times.csv and pyperf.json in the same folder")


def compare_benches(folders: list[Path]) -> None:
    """Print the differences between two benchmarks that exceed the noise.

    Raises:
        BadInput: the arguments are not two folders of results. NotRight: an outcome is worse in the second one.
    """
    if len(folders) != 2:
        raise BadInput(f"bench compare needs two folders, not {len(folders)}: exportlab bench compare bench-before bench-after")
    files = [folder / RECORDS for folder in folders]
    for file in files:
        check_is_file(file)
    before, after = (validation.read(partial(read, file), file) for file in files)
    found = compared(before, after)
    print(found)
    if any(change.kind == "broke" for change in found.outcomes):
        raise NotRight(f"{folders[1]} is worse than {folders[0]}")
