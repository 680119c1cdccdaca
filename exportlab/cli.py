"""The command line: each verb reads its input, calls the package once, and prints. Not here: any exporting or verifying."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Annotated

import typer

from .exporters import Artifact, from_file, get
from .failures import first_line, muffled, root
from .quiet import quiet
from .userfile import BadInput, guarded, load_case, user_line
from .verify import Report, called_once, verify
from .zoo import Case, Sample

NOT_RIGHT, BAD_INPUT = 1, 2

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
    artifact = _exported(case, target, exporter, opset_version, static)
    report = _verified(artifact, case, target, case.samples()[: 1 if static else None])
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
    first, returned = case.samples()[0], _check_eager(case, target)
    artifact = _read(lambda: from_file(file, first.args, first.kwargs, returned), file)
    report = _verified(artifact, case, target, case.samples())
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


def _exported(case: Case, target: str, name: str, opset_version: int | None, static: bool) -> Artifact:
    exporter, first = get(name), case.samples()[0]
    options = {} if opset_version is None else {"opset_version": opset_version}
    shapes = None if static else case.dynamic_shapes()
    try:
        with muffled():
            return exporter.export(case.module(), first.args, first.kwargs, dynamic_shapes=shapes, **options)
    except Exception as error:
        where = user_line(error, _file(target))
        raise NotRight(f"{name} refuses {target}: {exporter.stage(error)}: {first_line(root(error))}{where}") from error


def _verified(artifact: Artifact, case: Case, target: str, samples: Sequence[Sample]) -> Report:
    try:
        artifact.load()
    except Exception as error:
        raise NotRight(f"ONNX Runtime refuses the file: {first_line(error)}") from error
    return guarded(lambda: verify(artifact, case.module(), samples), f"running {target}", _file(target))


def _check_eager(case: Case, target: str) -> object:
    """What eager returns for the first sample: a model that does not run cannot be exported."""
    return guarded(lambda: called_once(case.module(), case.samples()[0]), f"running {target}", _file(target))


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
