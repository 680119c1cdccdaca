"""Run `exportlab profile`: measure the nodes of an ONNX model."""

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
    """The options of a profile, as given on the command line."""

    sizes: str
    inputs: Path | None
    runs: int
    warmup: int
    threads: int
    providers: tuple[str, ...]

    def of(self, file: Path) -> Profile:
        """Return the profile of a file.

        Raises:
            BadInput: the file or its inputs can't be used. NotRight: ONNX Runtime can't load or run the file.
        """
        sizes, inputs = sizes_of(self.sizes), arrays_of(self.inputs)
        if sizes and inputs is not None:
            raise BadInput("--inputs and --sizes can't be combined: the sizes are those of the arrays")
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
    """Return the sizes in `batch=8,seq=128` by name.

    Raises:
        BadInput: an entry is not NAME=SIZE.
    """
    found = {}
    for one in filter(None, (part.strip() for part in sizes.split(","))):
        name, _, size = one.rpartition("=")
        if not name or not (size.isascii() and size.isdecimal()):
            raise BadInput(f"--sizes {one} is not NAME=SIZE, as in batch=8,seq=128")
        found[name.strip()] = int(size)
    return found


def arrays_of(path: Path | None) -> Mapping[str, Any] | None:
    """Return the arrays in a `.npz` file.

    Raises:
        BadInput: the file can't be read, or is not a `.npz` archive.
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
        raise BadInput(f"{path} is not a .npz archive of arrays: write one with numpy.savez") from error


def write_profile(file: Path, asked: Asked, outputs: Sequence[Path], depth: int, top: int) -> None:
    """Profile a model, print the tables and write the output files.

    Raises:
        BadInput: the input can't be used. NotRight: ONNX Runtime can't load or run the file.
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
        raise BadInput(f"unsupported profile format {path.suffix or path.name!r}: use a file that ends in {', '.join(WRITERS)}")
    if path.resolve() == file.resolve():
        raise BadInput(f"{path} is the model itself: choose another file with --output")
    validation.check_writable(path)
