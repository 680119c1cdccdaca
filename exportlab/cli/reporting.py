"""Records of a sweep as something to read: a page with filters, a table as CSV or Markdown; of two files, what changed."""

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
    """Write the report, of the kind that its name ends in; of two files, a page of the second one and what changed since the first.

    Raises:
        BadInput: a file cannot be read or written, or there is no report of this kind.
    """
    if len(records) > 2:
        raise BadInput(f"report takes the records of one sweep, or of two, the earlier first, not {len(records)} files")
    if output.resolve() in [path.resolve() for path in records]:
        raise BadInput(f"{output} holds the records: name another file with --output")
    validation.check_writable(output)
    *before, now = records
    seen = [_read(path) for path in records]
    found = seen[-1]
    changed = str(changes(seen[0], found)) if before else ""
    write = _writers(now, _cases(found, cases), changed).get(output.suffix)
    if write is None:
        raise BadInput(f"no report ends in {output.suffix or output.name!r}: name a file that ends in .html, .csv or .md")
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
        raise BadInput(f"{path} holds no record: there is nothing to report")
    return found


def _cases(records: Sequence[Record], file: Path | None) -> list[Case]:
    """The cases of the records, with their sources where these are known: those of `file`, or the zoo's; else by name alone.

    A case of a user's file may be called like one of the zoo, and is not that one; his file is not run without being named.
    """
    known = {case.name: case for case in all_cases(str(file))} if file else dict(registered())
    zoos = {record.case: not record.file for record in records}
    return [(known.get(name) if file or of_zoo else None) or Case(name, _Unseen()) for name, of_zoo in zoos.items()]


class _Unseen:
    """Stands for the function of a case that is known by its records alone: it has no source, and asks nothing."""

    def __init__(self) -> None:
        self.__doc__, self.__module__ = "", "cases"

    def __call__(self) -> NoReturn:
        raise BadInput("the case is known by its records alone")
