"""Every architecture is right at every size when `to_onnx` exports it. Not here: the architectures, nor any other exporter."""

from __future__ import annotations

import pytest
from architectures import ARCHITECTURES, tried

KNOWN: dict[str, tuple[str, str]] = {}  # by name: the outcome, and what its message holds


@pytest.mark.parametrize("name", ARCHITECTURES)
def test_an_architecture_is_right_at_every_size(name: str) -> None:
    found = tried(name)
    outcome, reason = KNOWN.get(name, ("ok", ""))
    assert found.outcome == outcome, found.seen
    assert reason in found.seen
