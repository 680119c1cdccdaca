"""What every test of this folder starts with."""

from __future__ import annotations

import pytest
import torch


@pytest.fixture(autouse=True)
def nothing_left() -> None:
    """Each test starts without what earlier captures left behind."""
    torch._dynamo.reset()
