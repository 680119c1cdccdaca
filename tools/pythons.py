"""What a cell prints on one Python alone is compared there alone: a plugin of pytest for nbval, loaded by `make test`.

A cell tagged `python-3.11` shows what another Python does otherwise, as bytecode. Elsewhere it is run, its output is not compared, and that
is said.
"""

from __future__ import annotations

import sys

import pytest
from nbval.plugin import IPyNbCell

TAG = "python-"
HERE = f"{TAG}{sys.version_info.major}.{sys.version_info.minor}"
NOT_COMPARED = "not compared"


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Compare no output that was stored by another Python than its cell is tagged with."""
    for item in items:
        elsewhere = [tag for tag in tags(item) if tag.startswith(TAG) and tag != HERE]
        if elsewhere:
            item.options["check"] = False
            item.user_properties.append((NOT_COMPARED, f"{item.nodeid}, whose output is that of {elsewhere[0]}, not of {HERE}"))


def tags(item: pytest.Item) -> list[str]:
    """Return the tags of a cell, and none of what is no cell."""
    return list(item.cell.metadata.get("tags", [])) if isinstance(item, IPyNbCell) else []


def pytest_terminal_summary(terminalreporter: pytest.TerminalReporter) -> None:
    """Say which outputs were not compared; it is the reports that come from the workers."""
    for report in terminalreporter.stats.get("passed", []):
        for name, what in report.user_properties:
            if name == NOT_COMPARED:
                terminalreporter.write_line(f"{NOT_COMPARED}: {what}")
