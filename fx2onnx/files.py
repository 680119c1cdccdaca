"""Writing files whole or not at all; `exportlab.files` is its twin, since neither package imports the other for a helper."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def written_whole(path: str | Path) -> Iterator[Path]:
    """Yield a path of the same name in a temporary folder beside `path`; all files found there are moved into place at the end.

    Files that belong together (a model and its external data) can so be written side by side. When the block raises,
    nothing is moved and nothing is left behind.

    Raises:
        OSError: the folder of `path` does not exist or cannot be written.
    """
    target = Path(path)
    with tempfile.TemporaryDirectory(dir=target.parent, prefix=f".{target.name}.") as folder:
        draft = Path(folder) / target.name
        yield draft
        companions = sorted(p for p in Path(folder).iterdir() if p != draft)
        for written in (*companions, draft):
            os.replace(written, target.parent / written.name)
