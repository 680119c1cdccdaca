"""Which source files belong to torch, to NumPy, to an installed library, or to this package. Separators of Windows count as "/"."""

from __future__ import annotations

import json
import sysconfig
from collections.abc import Iterator
from functools import cache, lru_cache
from importlib.metadata import Distribution, distributions
from pathlib import Path
from urllib.parse import urlsplit
from urllib.request import url2pathname

import numpy
import torch

PACKAGE_FOLDERS = frozenset(("site-packages", "dist-packages"))  # pip's; Debian, Colab and Kaggle use the second
OWN_DISTRIBUTION = "exportlab"  # the cases it brings are models of a user


def normalise_separators(path: str) -> str:
    """Return a path with "/" as its separator."""
    return path.replace("\\", "/")


def _folder(path: Path) -> str:
    return f"{normalise_separators(str(path))}/"


INSTALLED = Path(torch.__file__).parents[1]
PACKAGE = _folder(Path(__file__).parent)
CAPTURE = tuple(f"{PACKAGE}{name}/" for name in ("guards", "trace", "shapes", "validate", "structure", "paths", "strategies", "patches"))
TORCH = _folder(INSTALLED / "torch")  # not any folder of that name: a caller may have one
NUMPY = _folder(Path(numpy.__file__).parent)


def is_in(path: str, *folders: str) -> bool:
    """Return whether a file is in one of these folders: `TORCH`, `NUMPY`, `PACKAGE`, or a part of them."""
    return normalise_separators(path).startswith(folders)


@lru_cache(maxsize=4096)
def is_library_file(path: str) -> bool:
    """Return whether a file belongs to an installed library, torch included; an editable install counts too.

    The files of an editable install are those of its project. A project that contains the current folder is the user's.
    """
    if PACKAGE_FOLDERS.intersection(normalise_separators(path).split("/")) or is_in(path, TORCH):
        return True
    here = Path.cwd()
    return any(Path(path).is_relative_to(folder) and not here.is_relative_to(folder) for folder in _library_folders())


@cache
def _library_folders() -> tuple[Path, ...]:
    paths = sysconfig.get_paths()
    editable = (_editable_project(distribution) for distribution in distributions())
    return (Path(paths["purelib"]), Path(paths["platlib"]), *(folder for folder in editable if folder is not None))


def _editable_project(distribution: Distribution) -> Path | None:
    """The folder of a distribution that is installed with `pip install --editable` (PEP 610), except our own."""
    text = distribution.read_text("direct_url.json")
    origin = json.loads(text) if text else {}
    if not origin.get("dir_info", {}).get("editable") or distribution.name == OWN_DISTRIBUTION:
        return None
    return Path(url2pathname(urlsplit(origin["url"]).path))


def package_parents(path: str) -> Iterator[Path]:
    """Yield the folders of installed packages that contain a file, innermost first."""
    return (parent for parent in Path(normalise_separators(path)).parents if parent.name in PACKAGE_FOLDERS)
