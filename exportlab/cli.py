"""The command line: each verb reads its input, calls the package once, and prints. Not here: any exporting or verifying."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Annotated

import typer

from .comparison import Attempt, attempt, reason
from .eager import called_once
from .exporters import Artifact, from_file, get
from .failures import first_line
from .quiet import quiet
from .userfile import BadInput, guarded, load_case, user_line
from .verify import Report, verify
from .zoo import Built

NOT_RIGHT, BAD_INPUT = 1, 2
LOAD_REFUSED = "ONNX Runtime refuses the file"

app = typer.Typer(help="Export PyTorch models, and verify what came out.", no_args_is_help=True, add_completion=False)
Target = Annotated[str, typer.Argument(metavar="FILE.py:FACTORY", help="A function that returns (module, args[, kwargs]), or a @case.")]
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
    artifact, report = _succeeded(tried, target)
    print(report)
    if report.outcome != "ok" and not force:
        raise NotRight(f"the outcome is {report.outcome}, so {output} was not written (--force writes it all the same)")
    _written(lambda: artifact.save(output), output)
    print(f"wrote {output} ({output.stat().st_size:,} bytes)")


@app.command("verify")
def verify_file(file: File, target: Target) -> None:
    """Run an ONNX file beside the module it was exported from, at every size that the @case names."""
    if not file.is_file():
        raise BadInput(f"there is no file {file}")
    case = load_case(target)
    first, returned = case.samples[0], _check_eager(case, target)
    artifact = _read(lambda: from_file(file, first.args, first.kwargs, returned), file)
    _check_loads(artifact)
    report = guarded(lambda: verify(artifact, case.module, case.samples), f"running {target}", _file(target))
    print(report)
    if report.outcome != "ok":
        raise NotRight(f"{file} is not right: {report.outcome}")


class NotRight(Exception):
    """The export failed, or its result differs from eager."""


def main() -> None:
    """Runs the command line. Exit code 0: right; 1: the export failed or is not right; 2: what was given cannot be used."""
    quiet()
    try:
        app(prog_name="exportlab")
    except BadInput as error:
        _stop(error, BAD_INPUT)
    except NotRight as error:
        _stop(error, NOT_RIGHT)


def _stop(error: Exception, code: int) -> None:
    print(f"exportlab: {error}", file=sys.stderr)
    sys.exit(code)


def _succeeded(tried: Attempt, target: str) -> tuple[Artifact, Report]:
    """The artifact and its report.

    Raises:
        NotRight: the exporter refused the model, or the runtime the file.
    """
    if tried.artifact is None or tried.report is None:
        assert tried.error is not None
        if tried.outcome == "load":
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
    """What eager returns for the first sample: a model that does not run cannot be exported."""
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
    if path.is_dir():
        raise BadInput(f"cannot write {path}: it is a folder; name a file, as in {path / 'model.onnx'}")
    if not path.absolute().parent.is_dir():
        raise BadInput(f"cannot write {path}: there is no folder {path.parent}")
    if not os.access(path.absolute().parent, os.W_OK):
        raise BadInput(f"cannot write {path}: the folder {path.parent} is read-only")


def _written(write: Callable[[], object], path: Path) -> None:
    try:
        write()
    except OSError as error:
        raise BadInput(f"cannot write {path}: {error.strerror or error}") from error


def _read(read: Callable[[], Artifact], path: Path) -> Artifact:
    try:
        return read()
    except (OSError, ValueError) as error:
        raise BadInput(f"cannot read {path}: {error}") from error
