"""What the families of the atlas share: whether their library is there."""

from __future__ import annotations

import importlib.util

from exportlab.cases import NotInstalled


def check_installed(*packages: str) -> None:
    """Raise `NotInstalled` for the first of these packages that is not there, without importing any."""
    for package in packages:
        if importlib.util.find_spec(package) is None:
            raise NotInstalled(f"{package} is not installed: pip install 'exportlab[atlas]'")
