"""Define the commands and their options. The code that runs a command is imported when the command is called, so help texts are fast."""

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
CASES = "Your functions (FILE.py or FILE.py:NAMES), cases or families of the test suite, or library models (atlas, atlas:timm)."

PROFILE_FILES = "Output file: a page (.html), a table of the nodes (.csv, .json) or a plot of a typical run (.png, .svg). Can be repeated."

app = typer.Typer(
    help="Export PyTorch models and verify the exported models.", no_args_is_help=True, add_completion=False, rich_markup_mode=None
)


def _finite(value: float | None) -> float | None:
    """Validate an option whose value must be a finite number."""
    if value is not None and not math.isfinite(value):
        raise typer.BadParameter(f"{value} is not a finite number.")
    return value


def _print_version(asked: bool) -> None:
    """Print the version of the package, and stop."""
    if asked:
        from .. import __version__

        print(f"exportlab {__version__}")
        raise typer.Exit


def _validate_providers(names: str) -> str:
    """Validate names of execution providers: each must exist in some build of ONNX Runtime."""
    if names:
        from ..exporters.session import ProviderError, check_known

        try:
            check_known(split_names(names))
        except ProviderError as error:
            raise BadInput(f"--providers {names}: {error}") from error
    return names


Target = Annotated[str, typer.Argument(metavar="FILE.py:NAME", help=GRAMMAR)]
Output = Annotated[Path, typer.Option("--output", "-o", metavar="PATH", help="Path of the exported model.")]
Name = Annotated[str, typer.Option("--exporter", help="Name of the exporter.")]
Opset = Annotated[int | None, typer.Option("--opset-version", help="ONNX opset version. Default: the exporter's default.")]
Static = Annotated[bool, typer.Option("--static", help="Make all dimensions static, even if a @case names dynamic dimensions.")]
Force = Annotated[bool, typer.Option("--force", help="Write the model even if verification fails.")]
MaskedRows = Annotated[
    bool,
    typer.Option(
        "--accept-masked-rows", help="Write the model if it differs from eager only in rows that are fully masked, such as padding."
    ),
]
Inputs = Annotated[str, typer.Option("--input-names", metavar="NAMES", help="Names of the inputs, in order, separated by commas.")]
Outputs = Annotated[str, typer.Option("--output-names", metavar="NAMES", help="Names of the outputs, in order, separated by commas.")]
Train = Annotated[bool, typer.Option("--train", help="Keep the model in training mode instead of switching it to eval().")]
Providers = Annotated[
    str,
    typer.Option(
        metavar="NAMES",
        callback=_validate_providers,
        help="ONNX Runtime execution providers, for example CUDAExecutionProvider. Default: the CPU provider. "
        "If a provider is not available, verify fails; the other commands print a note.",
    ),
]
Version = Annotated[bool, typer.Option("--version", is_eager=True, callback=_print_version, help="Print the version and exit.")]
File = Annotated[Path, typer.Argument(metavar="MODEL.onnx", help="The ONNX model to run.")]


@app.callback()
def handle_options(version: Version = False) -> None:
    """Handle the options that precede a command."""


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
    """Export a model, verify it against eager PyTorch and, if the results match, write it. Prints the names of inputs and outputs."""
    target_of(target)
    from .exporting import Accepted, write_export

    named = {"input_names": split_names(input_names), "output_names": split_names(output_names), "opset_version": opset_version}
    options = {name: value for name, value in named.items() if value}
    write_export(target, output, exporter, options, static, Accepted(force, accept_masked_rows), train)


@app.command("verify")
def verify_file(
    file: File,
    target: Target,
    rtol: Annotated[float | None, typer.Option(min=0, callback=_finite, help="Relative tolerance for all floating-point dtypes.")] = None,
    atol: Annotated[float | None, typer.Option(min=0, callback=_finite, help="Absolute tolerance for all floating-point dtypes.")] = None,
    train: Annotated[
        bool, typer.Option("--train", help="Keep the PyTorch model in training mode instead of switching it to eval().")
    ] = False,
    providers: Providers = "",
) -> None:
    """Compare an ONNX model with the PyTorch model it was exported from, on all samples or at all sizes of the @case."""
    check_is_file(file)
    target_of(target)
    from .exporting import verify_export

    verify_export(file, target, rtol, atol, train, split_names(providers))


@app.command("sweep")
def run_sweep(
    output: Annotated[
        Path,
        typer.Option("--output", "-o", metavar="FILE.jsonl", help="Records, one per run. The same command resumes an interrupted sweep."),
    ],
    cases: Annotated[str, typer.Option(metavar="FILE.py[:NAMES]|NAMES", help=CASES)] = "",
    exporters: Annotated[str, typer.Option(metavar="NAMES", help="Exporters, separated by commas.")] = ",".join(EXPORTERS),
    modes: Annotated[str, typer.Option(metavar="NAMES", help="static, dynamic or both, separated by a comma.")] = ",".join(MODES),
    rounds: Annotated[int, typer.Option(min=1, help="Number of repetitions. Timings need at least four.")] = 1,
    processes: Annotated[int, typer.Option(min=1, help="Number of tasks to run in parallel.")] = 2,
    timeout: Annotated[float, typer.Option(min=0.1, callback=_finite, help="Time limit per task, in seconds.")] = TASK_SECONDS,
    memory: Annotated[float, typer.Option(min=0.1, callback=_finite, help="Memory limit per task, in GiB.")] = TASK_BYTES / GiB,
    threads: Annotated[int, typer.Option(min=1, help="Threads per task.")] = TASK_THREADS,
    scheduler: Annotated[str, typer.Option(metavar="ADDRESS", help="Address of a dask.distributed scheduler that runs the tasks.")] = "",
    pyperf: Annotated[Path | None, typer.Option(metavar="FILE.json", help="Also write the timings as pyperf JSON.")] = None,
    csv: Annotated[Path | None, typer.Option(metavar="FILE.csv", help="Also write the records as a table.")] = None,
    html: Annotated[Path | None, typer.Option(metavar="FILE.html", help="Also write the records as one HTML page with filters.")] = None,
    providers: Providers = "",
    everything: Annotated[bool, typer.Option("--all", help="Run the whole test suite without asking. Only without --cases.")] = False,
) -> None:
    """Export many test cases with several exporters, verify each exported model and record the outcomes."""
    file = file_of(cases)
    if file is not None:
        check_is_file(Path(file))
    from .sweeping import Asked, Outputs, write_records

    limits = timeout, int(memory * GiB), threads
    asked = Asked(cases, split_names(exporters), split_names(modes), rounds, everything, split_names(providers))
    write_records(Outputs(output, pyperf, csv, html), asked, limits, processes, scheduler)


@app.command("report")
def report_records(
    records: Annotated[
        list[Path], typer.Argument(metavar="RECORDS.jsonl", help="Records of one sweep, or of two sweeps with the earlier one first.")
    ],
    output: Annotated[Path, typer.Option("--output", "-o", metavar="FILE", help="The report: a page (.html) or a table (.csv, .md).")],
    cases: Annotated[
        Path | None, typer.Option(metavar="FILE.py", help="Your file of @case functions. The page shows their source.")
    ] = None,
) -> None:
    """Write a report of a sweep, as an HTML page with filters or as a table. With two sweeps, the report lists the differences."""
    for path in [*records, *([cases] if cases else [])]:
        check_is_file(path)
    from .reporting import write_report

    write_report(records, output, cases)


@app.command("compare")
def compare_files(
    before: Annotated[Path, typer.Argument(metavar="A.jsonl", help="Records of the earlier sweep.")],
    after: Annotated[Path, typer.Argument(metavar="B.jsonl", help="Records of the later sweep.")],
) -> None:
    """Compare two sweeps: improvements, regressions, and timing differences beyond noise. The exit code is 1 if an outcome is worse."""
    for path in (before, after):
        check_is_file(path)
    from .sweeping import compare_records

    compare_records(before, after)


@app.command("doctor")
def run_doctor(
    target: Target,
    output: Annotated[
        Path | None, typer.Option("--output", "-o", metavar="REPORT.html", help="Write a report (.html or .md), without weights.")
    ] = None,
    save: Annotated[Path | None, typer.Option(metavar="MODEL.onnx", help="Write the best correct export, if there is one.")] = None,
    limit: Annotated[float, typer.Option(min=1, callback=_finite, help="Time limit for the whole run, in seconds.")] = DOCTOR_SECONDS,
    memory: Annotated[
        float, typer.Option(min=0.1, callback=_finite, help="Memory limit per step, in GiB, including the model.")
    ] = DOCTOR_GIB,
    exporters: Annotated[str, typer.Option(metavar="NAMES", help="Exporters, separated by commas.")] = ",".join(DOCTORS),
    train: Train = False,
) -> None:
    """Find out why a model fails to export or gives wrong results: the cause, the line of your code, and a fix.

    Exit codes: 0: a correct export was found. 1: no export is correct. 2: the input can't be used, because the file or the function
    raises an exception, hangs, exits, needs too much memory or returns something else, or because the model itself fails.
    130: interrupted.
    """
    target_of(target)
    from .examining import diagnose

    sys.exit(diagnose(target, output, save, limit, memory, split_names(exporters), train))


@app.command("bench")
def run_bench(
    target: Annotated[
        str, typer.Argument(metavar="FILE.py:NAME | compare", help=f"{GRAMMAR} Or the word compare, followed by two folders.")
    ],
    folders: Annotated[
        list[Path] | None, typer.Argument(metavar="[A B]", help="After compare: two folders of results, the earlier one first.")
    ] = None,
    output: Annotated[Path | None, typer.Option("--output", "-o", metavar="FOLDER", help="Results folder. Default: bench-NAME.")] = None,
    batches: Annotated[str, typer.Option(metavar="1,8,64", help="Sizes of the dimension batch. Default: those of the samples.")] = "",
    sizes: Annotated[list[str] | None, typer.Option(metavar="seq=16,128", help="Sizes of any named dimension. Can be repeated.")] = None,
    exporters: Annotated[str, typer.Option(metavar="NAMES", help="Exporters, separated by commas.")] = ",".join(BENCHED),
    runtimes: Annotated[
        str, typer.Option(metavar="NAMES", help="Other runtimes to measure: torch.compile, aoti, openvino, executorch.")
    ] = "",
    rounds: Annotated[int, typer.Option(min=1, help="Number of repetitions. Confidence intervals need at least four.")] = 5,
    threads: Annotated[int, typer.Option(min=1, help="Threads per call.")] = TASK_THREADS,
    timeout: Annotated[
        float, typer.Option(min=0.1, callback=_finite, help="Time limit per round of an exporter, in seconds.")
    ] = BENCH_SECONDS,
    memory: Annotated[float, typer.Option(min=0.1, callback=_finite, help="Memory limit per exporter, in GiB.")] = TASK_BYTES / GiB,
    providers: Providers = "",
    device: Annotated[str, typer.Option(metavar="NAME", help="Device for eager, torch.compile and aoti.")] = "cpu",
) -> None:
    """Measure export time, memory, file size and latency of a model with several exporters, and verify each exported model.

    The same command resumes an interrupted run. `bench compare A B` lists the differences between two runs that exceed the noise.
    """
    if target == "compare":
        from .benching import compare_benches

        compare_benches(folders or [])
        return
    if folders:
        raise BadInput(f"unexpected argument {folders[0]}: bench accepts one FILE.py:NAME, or compare A B")
    target_of(target)
    from .benching import Asked, bench_model, sizes_of

    named_sizes = sizes_of(batches, sizes or [])
    limits = timeout, int(memory * GiB)
    bench_model(
        target,
        output,
        Asked(split_names(exporters), split_names(runtimes), named_sizes, rounds, threads, *limits, split_names(providers), device),
    )


@app.command("profile")
def run_profile(
    file: File,
    sizes: Annotated[str, typer.Option(metavar="batch=8,seq=128", help="Sizes of the named dimensions, for generated inputs.")] = "",
    inputs: Annotated[
        Path | None, typer.Option(metavar="FILE.npz", help="Arrays named like the inputs. Default: generated inputs.")
    ] = None,
    runs: Annotated[int, typer.Option(min=1, help="Number of measured runs.")] = PROFILE_RUNS,
    warmup: Annotated[int, typer.Option(min=0, help="Number of warm-up runs, which are not measured.")] = PROFILE_WARMUP,
    threads: Annotated[int, typer.Option(min=1, help="Threads per run.")] = TASK_THREADS,
    providers: Providers = "",
    depth: Annotated[int, typer.Option(min=0, help="Group modules by this many parts of their path: 2 for layers.0, 0 for all parts.")] = 0,
    top: Annotated[int, typer.Option(min=1, help="Number of rows in each table.")] = 8,
    output: Annotated[list[Path] | None, typer.Option("--output", "-o", metavar="FILE", help=PROFILE_FILES)] = None,
) -> None:
    """Run an ONNX model and report where its time is spent: by operator, by line of your source code and by module."""
    check_is_file(file)
    from .profiling import Asked, write_profile

    write_profile(file, Asked(sizes, inputs, runs, warmup, threads, split_names(providers)), output or [], depth, top)


@app.command("fuzz")
def run_fuzz(
    minutes: Annotated[float, typer.Option(min=0.01, callback=_finite, help="Time to run, in minutes.")] = 10.0,
    seed: Annotated[int, typer.Option(min=0, help="Random seed. After the first finding, the programs also depend on the findings.")] = 0,
    exporters: Annotated[str, typer.Option(metavar="NAMES", help="Exporters, separated by commas.")] = ",".join(DOCTORS),
    output: Annotated[Path, typer.Option("--output", "-o", metavar="FOLDER", help="Folder for the scripts, one per finding.")] = Path(
        "fuzz-found"
    ),
) -> None:
    """Export random programs, compare them with eager PyTorch at unseen sizes, and write each wrong export as a small script."""
    from .fuzzing import hunt

    hunt(minutes, seed, split_names(exporters), output)


def main() -> None:
    """Run the command line.

    Exit codes: 0: success. 1: an export failed or is not correct. 2: the input can't be used. 130: interrupted.
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


def _stop(message: str, code: int) -> None:
    print(f"exportlab: {message}", file=sys.stderr)
    sys.exit(code)
