"""Atomic writing of files, which replaces only regular files."""

from __future__ import annotations

import os
import stat
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

LEGIBLE = 50  # characters of the file name in the name of its temporary folder, whose length is limited


@contextmanager
def atomic_write(path: str | os.PathLike[str]) -> Iterator[Path]:
    """Yield a path of the same name in a temporary folder next to `path`. At the end, its files replace the old ones, `path` last.

    Files that belong together, such as a model and its external data, can thus be written together. If the block raises an error,
    nothing is replaced or left behind. A symbolic link is followed: its target is replaced. A new file gets the permissions of the file
    that
    it replaces.

    Raises:
        OSError: the folder of `path` does not exist or cannot be written, or `path` must not be replaced.
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
    """Refuse a path that cannot be written, or that is a folder, a device or a pipe.

    `beside` also refuses a link: files written next to its target would not be found next to the link.

    Raises:
        OSError: the message is `cannot write PATH: ` and the reason. TypeError: `path` is not a path.
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
    """Return the file that a path leads to, and the folder that a new file would be created in."""
    if not isinstance(path, (str, os.PathLike)):
        raise TypeError(f"a path must be a str or a Path, not a {type(path).__name__}")
    try:
        target = Path(os.path.realpath(path))
        target.exists()
        return target, target.parent if Path(path).is_symlink() else Path(path).parent
    except OSError as error:
        raise OSError(f"cannot write {path}: {error.strerror}") from error
    except ValueError as error:  # a null character, or a surrogate that the file system cannot encode
        raise OSError(f"cannot write {str(path)!r}: a file name cannot contain these characters") from error


def _move_into_place(written: Path, target: Path) -> None:
    if target.is_file():
        written.chmod(stat.S_IMODE(target.stat().st_mode))
    os.replace(written, target)
