"""Notebook kernels for nbval that talk through files, not ports: a plugin of pytest, loaded by `make test`.

Free ports are chosen before the kernel opens them: of two kernels that start at once, one can find its port taken, and dies.
"""

from __future__ import annotations

import tempfile
import uuid
from functools import partial
from pathlib import Path
from typing import Any

import nbval.kernel
import pytest
from jupyter_client.manager import KernelManager


def pytest_configure(config: pytest.Config) -> None:
    """Give nbval kernels whose sockets are files in a folder that ends with the run."""
    folder = tempfile.TemporaryDirectory(prefix="kernels-")  # a socket's path holds 107 characters at most: not below the user's home
    config.add_cleanup(folder.cleanup)
    patch = pytest.MonkeyPatch()
    config.add_cleanup(patch.undo)
    patch.setattr(nbval.kernel, "KernelManager", partial(through_files, Path(folder.name)))


def through_files(folder: Path, **options: Any) -> KernelManager:
    """Return a kernel manager whose sockets are files in `folder`, and whose kernels start processes that write plain text.

    A kernel sets FORCE_COLOR for the processes it starts. Since Python 3.13, Python then colours tracebacks even when they go to a pipe.
    """
    manager = KernelManager(transport="ipc", connection_file=str(folder / f"{uuid.uuid4().hex}.json"), **options)
    manager.kernel_spec.env["PYTHON_COLORS"] = "0"
    return manager
