"""Run `exportlab report`: write the records of a sweep as an HTML page or as a table, and compare two sweeps."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import NoReturn

from ..cases import Case, registered
from ..sweep.changes import changes
from ..sweep.records import Record, RecordsError, read
from ..target import BadInput
from ..userfile import all_cases
from . import validation
from .matrix import save_csv, save_markdown, save_page

Write = Callable[[Sequence[Record], Path], None]


def write_report(records: Sequence[Path], output: Path, cases: Path | None) -> None:
    """Write a report in the format of the file's suffix. With two sweeps, report the second one and its differences from the first.

    Raises:
        BadInput: a file can't be read or written, or the suffix is not supported.
    """
    if len(records) > 2:
        raise BadInput(f"report accepts the records of one sweep, or of two with the earlier one first, not {len(records)} files")
    if output.resolve() in [path.resolve() for path in records]:
        raise BadInput(f"{output} contains the records: choose another file with --output")
    validation.check_writable(output)
    *before, now = records
    sweeps = [_read(path) for path in records]
    found = sweeps[-1]
    changed = str(changes(sweeps[0], found)) if before else ""
    write = _writers(now, _cases(found, cases), changed).get(output.suffix)
    if write is None:
        raise BadInput(f"unsupported report format {output.suffix or output.name!r}: use a file that ends in .html, .csv or .md")
    validation.write_file(partial(write, found, output), output)
    if changed:
        print(changed)
    print(f"wrote {output}: {len(found)} records of {now}")


def _writers(made_in: Path, cases: Sequence[Case], changed: str) -> Mapping[str, Write]:
    return {
        ".html": lambda records, path: save_page(records, made_in, cases, path, changed),
        ".md": lambda records, path: save_markdown(records, path, changed),
        ".csv": save_csv,
    }


def _read(path: Path) -> list[Record]:
    try:
        found = validation.read(partial(read, path), path)
    except RecordsError as error:
        raise BadInput(str(error)) from error
    if not found:
        raise BadInput(f"{path} contains no records: there is nothing to report")
    return found


def _cases(records: Sequence[Record], file: Path | None) -> list[Case]:
    """Return the cases of the records. Their source is included if they are in `file` or in the test suite.

    A case in a user's file may have the same name as one in the test suite. A user's file is executed only if it is passed as `file`.
    """
    known = {case.name: case for case in all_cases(str(file))} if file else dict(registered())
    in_test_suite = {record.case: not record.file for record in records}
    return [(known.get(name) if file or of_suite else None) or Case(name, _Unseen()) for name, of_suite in in_test_suite.items()]


class _Unseen:
    """The function of a case whose source is not available."""

    def __init__(self) -> None:
        self.__doc__, self.__module__ = "", "cases"

    def __call__(self) -> NoReturn:
        raise BadInput("the case can't be built: only its records are available")
