"""One file, timed node by node: `exportlab profile` at the command line."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any
from zipfile import BadZipFile

import numpy

from ..measure.profile import NoInputs, Profile, Refused, profile
from ..measure.profile.output import WRITERS
from ..target import BadInput, check_is_file
from . import validation
from .exit_codes import NotRight


@dataclass(frozen=True)
class Asked:
    """What a file is run on, how often and where, as it was named on the command line."""

    sizes: str
    inputs: Path | None
    runs: int
    warmup: int
    threads: int
    providers: tuple[str, ...]

    def of(self, file: Path) -> Profile:
        """Return the profile of a file.

        Raises:
            BadInput: the file or its inputs cannot be used. NotRight: ONNX Runtime refuses the file.
        """
        sizes, inputs = sizes_of(self.sizes), arrays_of(self.inputs)
        if sizes and inputs is not None:
            raise BadInput("--inputs have their own sizes: leave out --sizes")
        run: dict[str, Any] = {"runs": self.runs, "warmup": self.warmup, "threads": self.threads}
        if self.providers:
            run["providers"] = self.providers
        try:
            return validation.read(lambda: profile(file, inputs, sizes=sizes, **run), file)
        except NoInputs as error:
            raise BadInput(f"{file}: {error}") from error
        except Refused as error:
            raise NotRight(f"{file}: {error}") from error


def sizes_of(sizes: str) -> dict[str, int]:
    """Return sizes by name of `batch=8,seq=128`.

    Raises:
        BadInput: it is no such list.
    """
    found = {}
    for one in filter(None, (part.strip() for part in sizes.split(","))):
        name, _, size = one.rpartition("=")
        if not name or not (size.isascii() and size.isdecimal()):
            raise BadInput(f"--sizes {one} is not NAME=SIZE, as in batch=8,seq=128")
        found[name.strip()] = int(size)
    return found


def arrays_of(path: Path | None) -> Mapping[str, Any] | None:
    """Return the arrays of a file.

    Raises:
        BadInput: it is no archive of arrays.
    """
    if path is None:
        return None
    check_is_file(path)
    try:
        with numpy.load(path, allow_pickle=False) as found:
            return dict(found)
    except OSError as error:
        raise BadInput(f"cannot read {path}: {error.strerror or error}") from error
    except (ValueError, TypeError, BadZipFile) as error:
        raise BadInput(f"{path} is not an archive of arrays: numpy.savez writes one") from error


def write_profile(file: Path, asked: Asked, outputs: Sequence[Path], depth: int, top: int) -> None:
    """Run a file, print where its time goes, and write what was asked for.

    Raises:
        BadInput: what was given cannot be used. NotRight: ONNX Runtime refuses the file.
    """
    for path in outputs:
        _check_output(path, file)
    found = asked.of(file)
    print(found.text(top, depth))
    for path in outputs:
        validation.write_file(partial(WRITERS[path.suffix], found, path), path)
        print(f"wrote {path}")


def _check_output(path: Path, file: Path) -> None:
    if path.suffix not in WRITERS:
        raise BadInput(f"no profile ends in {path.suffix or path.name!r}: name a file that ends in {', '.join(WRITERS)}")
    if path.resolve() == file.resolve():
        raise BadInput(f"{path} is the file itself: name another with --output")
    validation.check_writable(path)
