"""Writing files whole or not at all, and in the place of nothing but a file."""

from __future__ import annotations

import os
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

LEGIBLE = 50  # characters of a name that its temporary folder shows; the whole may be longer than a name may be


@contextmanager
def atomic_write(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Yield a path of the same name in a temporary folder beside `path`; all files found there are moved into place at the end, it last.

    Files that belong together (a model and its external data) can so be written side by side. When the block raises,
    nothing is moved and nothing is left behind. A link is followed: what it points to is replaced. A file that is replaced
    hands its permissions on.

    Raises:
        OSError: the folder of `path` does not exist or cannot be written, or there is something at `path` that must not be replaced.
    """
    check_replaceable(path)
    target = Path(os.path.realpath(path))
    with tempfile.TemporaryDirectory(dir=target.parent, prefix=f".{target.name[:LEGIBLE]}.") as folder:
        draft = Path(folder) / target.name
        yield draft
        companions = sorted(p for p in Path(folder).iterdir() if p != draft)
        for written in (*companions, draft):
            _move_into_place(written, target.parent / written.name)


def check_replaceable(path: str | os.PathLike[str], beside: bool = False) -> None:
    """Refuse a path at which no file can be written, or something stands that is no file: a folder, a device, a pipe.

    `beside` refuses a link too: what is written beside the file that it points to would not be found beside the link.

    Raises:
        OSError: `cannot write PATH: ` and what stands there, or what is missing. TypeError: it is no path.
    """
    target, folder = _where(path)
    if beside and Path(path).is_symlink():
        raise FileExistsError(
            f"cannot write {path}: the weights would be missing next to this symbolic link: pass the path of the file it points to"
        )
    if target.is_symlink():
        raise OSError(f"cannot write {path}: it is a symbolic link that leads back to itself")
    if not folder.is_dir():
        raise FileNotFoundError(f"cannot write {path}: there is no folder {folder}")
    if target.is_dir():
        raise IsADirectoryError(f"cannot write {path}: it is a folder; pass the path of a file, such as {Path(path) / 'model.onnx'}")
    if target.exists() and not target.is_file():
        raise FileExistsError(f"cannot write {path}: it is a device, a pipe or a socket, and only files are replaced")
    if target.exists() and not os.access(target, os.W_OK):
        raise PermissionError(f"cannot write {path}: it is read-only")
    if not os.access(folder, os.W_OK):
        raise PermissionError(f"cannot write {path}: the folder {folder} is read-only")


def _where(path: str | os.PathLike[str]) -> tuple[Path, Path]:
    """The file that a path leads to, and the folder that it would be made in."""
    if not isinstance(path, (str, os.PathLike)):
        raise TypeError(f"a path must be a str or a Path, not a {type(path).__name__}")
    try:
        target = Path(os.path.realpath(path))
        target.exists()
        return target, target.parent if Path(path).is_symlink() else Path(path).parent
    except OSError as error:
        raise OSError(f"cannot write {path}: {error.strerror}") from error
    except ValueError as error:  # a null character, or a surrogate that is not of the file system's encoding
        raise OSError(f"cannot write {str(path)!r}: a file name cannot contain these characters") from error


def _move_into_place(written: Path, target: Path) -> None:
    if target.is_file():
        written.chmod(stat.S_IMODE(target.stat().st_mode))
    os.replace(written, target)
