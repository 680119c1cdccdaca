"""Build the page of export options: test all options if a source has changed, and store the tables."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from freshness import is_fresh, made_of, mark_fresh
from gallery_pages import BEFORE_THE_GALLERY
from site_files import PARTS, ROOT, write
from sphinx.application import Sphinx

from .rendered import opsets_table, options_table, totals
from .verdicts import Verdict

HERE = Path(__file__).parent
FOUND = PARTS / "options.json"
STYLE = "options.css"


def setup(app: Sphinx) -> dict[str, bool]:
    """Store the parts before the page is read, and add its style."""
    app.connect("builder-inited", lambda _: store_parts(), priority=BEFORE_THE_GALLERY)
    app.connect("html-page-context", add_style)
    return {"parallel_read_safe": True}


def add_style(app: Sphinx, page: str, *_: Any) -> None:
    """Add the style of the page."""
    if page == "docs/options":
        app.add_css_file(STYLE)


def store_parts() -> None:
    """Write the tables that docs/options.md includes. Repeat the runs if the stored ones are outdated."""
    sources = made_of(HERE / "run.py", *sorted(HERE.glob("*.py")))
    if not is_fresh(FOUND, sources):
        write(FOUND, tried_apart())
        mark_fresh(FOUND, sources)
    for name, text in parts(json.loads(FOUND.read_text(encoding="utf-8"))).items():
        write(PARTS / name, text)


def tried_apart() -> str:
    """Return the output of `run` in a new process, so that registrations with torch end with it.

    Raises:
        subprocess.CalledProcessError: a probe doesn't work any more. Its output contains the reason.
    """
    path = os.pathsep.join(map(str, (HERE.parent, ROOT / "tools", ROOT)))
    command = [sys.executable, "-m", f"{__name__}.run"]
    return subprocess.run(command, env={**os.environ, "PYTHONPATH": path}, stdout=subprocess.PIPE, text=True, check=True).stdout


def parts(found: Mapping[str, Sequence[Mapping[str, Any]]]) -> dict[str, str]:
    """Return the parts by name: counts of each verdict, the options of torch.onnx.export and of to_onnx, and the opsets."""
    ours = [row for row in found["options"] if row["found"]["torch.onnx.export"][0] == Verdict.NO_PARAMETER]
    shared = [row for row in found["options"] if row not in ours]
    return {
        "options-totals.html": totals(shared),
        "options-shared.html": options_table(shared),
        "options-own.html": options_table([{**row, "found": {"to_onnx": row["found"]["to_onnx"]}} for row in ours]),
        "options-opsets.html": opsets_table(found["opsets"]),
    }
