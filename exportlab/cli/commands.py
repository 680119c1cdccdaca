"""What each command is given. What it does is in the modules beside this one, and imported when it is called: a help text is quick."""

from __future__ import annotations

import math
import sys
from pathlib import Path
from typing import Annotated

import typer

from ..defaults import (
    BENCH_SECONDS,
    BENCHED,
    DOCTOR_GIB,
    DOCTOR_SECONDS,
    DOCTORS,
    EXPORTERS,
    MODES,
    PROFILE_RUNS,
    PROFILE_WARMUP,
    TASK_BYTES,
    TASK_SECONDS,
    TASK_THREADS,
    GiB,
)
from ..entry_points import BrokenEntryPoint
from ..messages import quiet
from ..printable import one_line, plain
from ..target import A_SAMPLE, FORMS, BadInput, check_is_file, target_of
from .exit_codes import BAD_INPUT, INTERRUPTED, NOT_RIGHT, Interrupted, NotRight
from .names import file_of, split_names

GRAMMAR = f"A function that returns {FORMS}; or a @case. A sample is {A_SAMPLE}."
CASES = "A file of your own @cases; such functions in it, by name; names or families of the zoo; or atlas, atlas:timm."

PROFILE_FILES = "A page (.html), the nodes as a table (.csv, .json), a typical run as a picture (.png, .svg); may be given again."

app = typer.Typer(
    help="Export PyTorch models, and verify what came out.", no_args_is_help=True, add_completion=False, rich_markup_mode=None
)


def _finite(value: float | None) -> float | None:
    """The value of an option: a number that something can be held against."""
    if value is not None and not math.isfinite(value):
        raise typer.BadParameter(f"{value} is no finite number.")
    return value


def _validate_providers(names: str) -> str:
    """The value of an option: providers that some build of ONNX Runtime knows."""
    if names:
        from ..exporters.session import ProviderError, check_known

        try:
            check_known(split_names(names))
        except ProviderError as error:
            raise BadInput(f"--providers {names}: {error}") from error
    return names


Target = Annotated[str, typer.Argument(metavar="FILE.py:NAME", help=GRAMMAR)]
Output = Annotated[Path, typer.Option("--output", "-o", metavar="PATH", help="Where to write the file.")]
Name = Annotated[str, typer.Option("--exporter", help="Which exporter.")]
Opset = Annotated[int | None, typer.Option("--opset-version", help="The ONNX opset to ask for; the exporter's own by default.")]
Static = Annotated[bool, typer.Option("--static", help="Keep every size as it is, even where a @case names dimensions.")]
Force = Annotated[bool, typer.Option("--force", help="Write the file even when it is not right.")]
MaskedRows = Annotated[
    bool,
    typer.Option("--accept-masked-rows", help="Write a file that differs from eager only where a mask hides everything, as padding alone."),
]
Inputs = Annotated[str, typer.Option("--input-names", metavar="NAMES", help="Of the inputs, in order, separated by commas.")]
Outputs = Annotated[str, typer.Option("--output-names", metavar="NAMES", help="Of the outputs, in order, separated by commas.")]
Train = Annotated[bool, typer.Option("--train", help="Export a model in training mode as it is, and not as eval().")]
Providers = Annotated[
    str,
    typer.Option(
        metavar="NAMES",
        callback=_validate_providers,
        help="Of ONNX Runtime, as CUDAExecutionProvider; else the CPU's. Its absence is an error of verify, else a note.",
    ),
]
File = Annotated[Path, typer.Argument(metavar="MODEL.onnx", help="The file to run.")]


@app.command()
def export(
    target: Target,
    output: Output,
    exporter: Name = "dynamo",
    opset_version: Opset = None,
    static: Static = False,
    force: Force = False,
    accept_masked_rows: MaskedRows = False,
    input_names: Inputs = "",
    output_names: Outputs = "",
    train: Train = False,
) -> None:
    """Export a model, verify it against eager, and write it when it is right. The names of its inputs and outputs are printed."""
    target_of(target)
    from .exporting import Accepted, write_export

    named = {"input_names": split_names(input_names), "output_names": split_names(output_names), "opset_version": opset_version}
    options = {name: value for name, value in named.items() if value}
    write_export(target, output, exporter, options, static, Accepted(force, accept_masked_rows), train)


@app.command("verify")
def verify_file(
    file: File,
    target: Target,
    rtol: Annotated[float | None, typer.Option(min=0, callback=_finite, help="Relative tolerance of every floating dtype.")] = None,
    atol: Annotated[float | None, typer.Option(min=0, callback=_finite, help="Absolute tolerance of every floating dtype.")] = None,
    train: Annotated[bool, typer.Option("--train", help="Verify against a model in training mode as it is, and not as eval().")] = False,
    providers: Providers = "",
) -> None:
    """Run an ONNX file beside the module it was exported from, at every size that the @case names."""
    check_is_file(file)
    target_of(target)
    from .exporting import verify_export

    verify_export(file, target, rtol, atol, train, split_names(providers))


@app.command("sweep")
def run_sweep(
    output: Annotated[Path, typer.Option("--output", "-o", metavar="FILE.jsonl", help="The records; the same call goes on there.")],
    cases: Annotated[str, typer.Option(metavar="FILE.py[:NAMES]|NAMES", help=CASES)] = "",
    exporters: Annotated[str, typer.Option(metavar="NAMES", help="Separated by commas.")] = ",".join(EXPORTERS),
    modes: Annotated[str, typer.Option(metavar="NAMES", help="static, dynamic, or both.")] = ",".join(MODES),
    rounds: Annotated[int, typer.Option(min=1, help="How often everything is done; times need four or more.")] = 1,
    processes: Annotated[int, typer.Option(min=1, help="How many tasks at a time.")] = 2,
    timeout: Annotated[float, typer.Option(min=0.1, callback=_finite, help="Seconds that a task may take.")] = TASK_SECONDS,
    memory: Annotated[float, typer.Option(min=0.1, callback=_finite, help="GiB that a task may take.")] = TASK_BYTES / GiB,
    threads: Annotated[int, typer.Option(min=1, help="Threads of each task.")] = TASK_THREADS,
    scheduler: Annotated[str, typer.Option(metavar="ADDRESS", help="A dask.distributed scheduler to hand the tasks to.")] = "",
    pyperf: Annotated[Path | None, typer.Option(metavar="FILE.json", help="Write the times as pyperf JSON too.")] = None,
    csv: Annotated[Path | None, typer.Option(metavar="FILE.csv", help="Write the records as a table too.")] = None,
    html: Annotated[Path | None, typer.Option(metavar="FILE.html", help="Write them as a page with filters, in one file.")] = None,
    providers: Providers = "",
    everything: Annotated[bool, typer.Option("--all", help="Without --cases: yes, all cases that there are, without asking.")] = False,
) -> None:
    """Export many cases by several exporters, verify each, and keep a record of each."""
    file = file_of(cases)
    if file is not None:
        check_is_file(Path(file))
    from .sweeping import Asked, Outputs, write_records

    limits = timeout, int(memory * GiB), threads
    asked = Asked(cases, split_names(exporters), split_names(modes), rounds, everything, split_names(providers))
    write_records(Outputs(output, pyperf, csv, html), asked, limits, processes, scheduler)


@app.command("report")
def report_records(
    records: Annotated[list[Path], typer.Argument(metavar="RECORDS.jsonl", help="Of one sweep; or of two, the earlier first.")],
    output: Annotated[Path, typer.Option("--output", "-o", metavar="FILE", help="A page (.html), or a table (.csv, .md).")],
    cases: Annotated[Path | None, typer.Option(metavar="FILE.py", help="Your @cases, whose sources the page shows.")] = None,
) -> None:
    """Write the records of a sweep as a page with filters, in one file, or as a table; of two sweeps, also what changed."""
    for path in [*records, *([cases] if cases else [])]:
        check_is_file(path)
    from .reporting import write_report

    write_report(records, output, cases)


@app.command("compare")
def compare_files(
    before: Annotated[Path, typer.Argument(metavar="A.jsonl", help="The records of one sweep.")],
    after: Annotated[Path, typer.Argument(metavar="B.jsonl", help="Those of another.")],
) -> None:
    """Hold two sweeps against each other: what got better, what broke, what is only noise."""
    for path in (before, after):
        check_is_file(path)
    from .sweeping import compare_records

    compare_records(before, after)


@app.command("doctor")
def run_doctor(
    target: Target,
    output: Annotated[Path | None, typer.Option("--output", "-o", metavar="REPORT.html", help="Write the report, without weights.")] = None,
    save: Annotated[Path | None, typer.Option(metavar="MODEL.onnx", help="Write the best export, where one is right.")] = None,
    limit: Annotated[float, typer.Option(min=1, callback=_finite, help="Seconds that all of it may take.")] = DOCTOR_SECONDS,
    memory: Annotated[float, typer.Option(min=0.1, callback=_finite, help="GiB that a step may take, the model included.")] = DOCTOR_GIB,
    exporters: Annotated[str, typer.Option(metavar="NAMES", help="Separated by commas.")] = ",".join(DOCTORS),
    train: Train = False,
) -> None:
    """Find out what is wrong with an export: the defect, your line, and what gets past it.

    Exit code 0: an export that is right was found; 1: none is right; 2: the input cannot be used (the file or the factory raises,
    hangs, exits, takes too much memory, or returns something else; or the model itself fails); 130: interrupted.
    """
    target_of(target)
    from .examining import diagnose

    sys.exit(diagnose(target, output, save, limit, memory, split_names(exporters), train))


@app.command("bench")
def run_bench(
    target: Annotated[str, typer.Argument(metavar="FILE.py:NAME | compare", help=f"{GRAMMAR} Or: compare A B, two folders of benches.")],
    folders: Annotated[list[Path] | None, typer.Argument(metavar="[A B]", help="Behind `compare`: what changed beyond noise.")] = None,
    output: Annotated[Path | None, typer.Option("--output", "-o", metavar="FOLDER", help="Where all goes; bench-NAME by default.")] = None,
    batches: Annotated[str, typer.Option(metavar="1,8,64", help="Sizes of the dimension `batch`; else the samples as they are.")] = "",
    sizes: Annotated[list[str] | None, typer.Option(metavar="seq=16,128", help="Sizes of any named dimension.")] = None,
    exporters: Annotated[str, typer.Option(metavar="NAMES", help="Separated by commas.")] = ",".join(BENCHED),
    runtimes: Annotated[str, typer.Option(metavar="NAMES", help="And torch.compile, aoti, openvino, executorch.")] = "",
    rounds: Annotated[int, typer.Option(min=1, help="How often everything is done; intervals need four or more.")] = 5,
    threads: Annotated[int, typer.Option(min=1, help="Threads that a call may take.")] = TASK_THREADS,
    timeout: Annotated[float, typer.Option(min=0.1, callback=_finite, help="Seconds for a round of an exporter.")] = BENCH_SECONDS,
    memory: Annotated[float, typer.Option(min=0.1, callback=_finite, help="GiB that an exporter may take.")] = TASK_BYTES / GiB,
    providers: Providers = "",
    device: Annotated[str, typer.Option(metavar="NAME", help="Of eager, torch.compile and aoti.")] = "cpu",
) -> None:
    """Measure a model: export time, memory, file, latency by batch, by every exporter, each verified. The same call goes on."""
    if target == "compare":
        from .benching import compare_benches

        compare_benches(folders or [])
        return
    if folders:
        raise BadInput(f"{folders[0]} was not expected: bench takes one FILE.py:NAME, or compare A B")
    target_of(target)
    from .benching import Asked, bench_model, sizes_of

    wanted = sizes_of(batches, sizes or [])
    limits = timeout, int(memory * GiB)
    bench_model(
        target,
        output,
        Asked(split_names(exporters), split_names(runtimes), wanted, rounds, threads, *limits, split_names(providers), device),
    )


@app.command("profile")
def run_profile(
    file: File,
    sizes: Annotated[str, typer.Option(metavar="batch=8,seq=128", help="Of the axes that have names, where inputs are made up.")] = "",
    inputs: Annotated[Path | None, typer.Option(metavar="FILE.npz", help="Arrays by the names of the inputs; else made up.")] = None,
    runs: Annotated[int, typer.Option(min=1, help="How many count.")] = PROFILE_RUNS,
    warmup: Annotated[int, typer.Option(min=0, help="How many are made before, and do not count.")] = PROFILE_WARMUP,
    threads: Annotated[int, typer.Option(min=1, help="Threads that a run may take.")] = TASK_THREADS,
    providers: Providers = "",
    depth: Annotated[int, typer.Option(min=0, help="Names of a module's path that count: 2 for layers.0; 0 for all.")] = 0,
    top: Annotated[int, typer.Option(min=1, help="Rows of each table.")] = 8,
    output: Annotated[list[Path] | None, typer.Option("--output", "-o", metavar="FILE", help=PROFILE_FILES)] = None,
) -> None:
    """Run an ONNX file, and say where its time goes: by operator, by line of your source, by module."""
    check_is_file(file)
    from .profiling import Asked, write_profile

    write_profile(file, Asked(sizes, inputs, runs, warmup, threads, split_names(providers)), output or [], depth, top)


@app.command("fuzz")
def run_fuzz(
    minutes: Annotated[float, typer.Option(min=0.01, callback=_finite, help="How long.")] = 10.0,
    seed: Annotated[int, typer.Option(min=0, help="Which programs; those after a finding depend on it.")] = 0,
    exporters: Annotated[str, typer.Option(metavar="NAMES", help="Separated by commas.")] = ",".join(DOCTORS),
    output: Annotated[Path, typer.Option("--output", "-o", metavar="FOLDER", help="A script for each finding.")] = Path("fuzz-found"),
) -> None:
    """Make random programs, export each, and hold it against eager at sizes never seen: what is silently wrong, as a small script."""
    from .fuzzing import hunt

    hunt(minutes, seed, split_names(exporters), output)


def main() -> None:
    """Run the command line.

    Exit code 0: right; 1: an export failed or is not right; 2: what was given cannot be used; 130: interrupted.
    """
    quiet()
    try:
        app(prog_name="exportlab")
    except (BadInput, BrokenEntryPoint) as error:
        _stop(one_line(error), BAD_INPUT)
    except NotRight as error:
        _stop(plain(error), NOT_RIGHT)
    except Interrupted as error:
        _stop(plain(error), INTERRUPTED)


def _stop(said: str, code: int) -> None:
    print(f"exportlab: {said}", file=sys.stderr)
    sys.exit(code)
