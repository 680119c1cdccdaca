"""The supported versions of torch."""

from __future__ import annotations

import re
import warnings

import torch

from .errors import UnsupportedTorch

OLDEST, NEWEST = (2, 10), (2, 15)


def check_torch(installed: str = torch.__version__, stacklevel: int = 4) -> bool:
    """Refuse a version of torch that is too old, and warn once if it is newer than the tested ones. Return whether it warned.

    Raises:
        UnsupportedTorch: it is too old.
    """
    version = _version(installed)
    if version < OLDEST:
        newer = f"pip install 'torch>={_format_version(OLDEST)}'"
        raise UnsupportedTorch(f"torch {installed} is too old for to_onnx, which supports {SUPPORTED}: run {newer}")
    if version > NEWEST and installed not in _WARNED:
        _WARNED.add(installed)
        text = f"to_onnx is tested with {SUPPORTED}, but torch {installed} is installed: compare the exported model with eager"
        warnings.warn(text, stacklevel=stacklevel)
        return True
    return False


def _version(installed: str) -> tuple[int, ...]:
    found = re.match(r"(\d+)\.(\d+)", installed)
    return tuple(map(int, found.groups())) if found else NEWEST


def _format_version(version: tuple[int, ...]) -> str:
    return ".".join(map(str, version))


SUPPORTED = f"torch {_format_version(OLDEST)} to {_format_version(NEWEST)}"
_WARNED: set[str] = set()
