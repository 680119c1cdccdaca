"""Build the demo of lesson 306: train and export its model with the lesson's cells, and embed its page in a frame."""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import jupytext
from docutils import nodes
from freshness import is_fresh, made_of, mark_fresh
from site_files import ROOT, STATIC
from sphinx.application import Sphinx
from sphinx.transforms import SphinxTransform

LESSON = "tutorials/306_in_the_browser"
PAGE = ROOT / "tutorials/browser"
FOLDER = STATIC / "ort"  # next to the runtime, which is shipped once
FRAME = """<div class="demo">
<button type="button" class="sd-btn sd-btn-success" data-frame="../_static/ort/index.html">Draw a digit here</button>
<p class="sd-mt-2">The model that this lesson exports runs in the page. Pressing the button loads ONNX Runtime, 14 MB.</p>
</div>"""
ABSENT = """<div class="demo"><p>This site was built without ONNX Runtime for browsers, so the demo isn't available.
<code>make site</code> fetches it with npm.</p></div>"""


def setup(app: Sphinx) -> dict[str, bool]:
    """Make the model after the runtime is published, and insert the frame into the page."""
    app.connect("builder-inited", lambda _: store_demo(), priority=900)
    app.connect("html-page-context", add_script)
    app.add_transform(DemoFirst)
    return {"parallel_read_safe": True}


def store_demo() -> None:
    """Write the lesson's page and its model next to the runtime, if there is one.

    Raises:
        subprocess.CalledProcessError: a cell of the lesson fails.
    """
    if not FOLDER.is_dir():
        return
    for name in ("index.html", "recognise.js"):
        shutil.copy(PAGE / name, FOLDER)
    lesson = hashlib.sha256("".join(cells()).encode()).hexdigest()
    model, sources = FOLDER / "digits.onnx", f"{made_of(Path(__file__))}{lesson}\n"
    if not is_fresh(model, sources):
        path = os.pathsep.join(str(ROOT / folder) for folder in (".", "docs/_ext", "tools"))
        one_thread = {**os.environ, "OMP_NUM_THREADS": "1", "MPLBACKEND": "Agg", "PYTHONPATH": path}
        subprocess.run([sys.executable, __file__, str(model)], check=True, env=one_thread, stdout=subprocess.DEVNULL)
        mark_fresh(model, sources)


def cells() -> list[str]:
    """Return the code of the lesson from its imports to its export, without the parts that need a browser."""
    found = [cell.source for cell in jupytext.read(ROOT / f"{LESSON}.md").cells if cell.cell_type == "code"]
    last = next(number for number, cell in enumerate(found) if cell.startswith("program = to_onnx("))
    kept = [cell for cell in found[: last + 1] if "copy_page(" not in cell]
    return [re.sub(r"^require\(.*$", "", cell, flags=re.MULTILINE) for cell in kept]


def make(model: Path) -> None:
    """Run these cells and save the model."""
    seen: dict[str, Any] = {"__name__": "lesson"}
    for cell in cells():
        exec(compile(cell, LESSON, "exec"), seen)
    seen["program"].save(model)


def add_script(app: Sphinx, page: str, *_: Any) -> None:
    """Add the script of the button to the lesson's page."""
    if page == LESSON:
        app.add_js_file("demo.js", loading_method="defer")


class DemoFirst(SphinxTransform):
    """Insert the demo below the introduction of the lesson."""

    default_priority = 100

    def apply(self, **options: Any) -> None:
        """Insert the demo if this is the lesson's page."""
        if self.env.docname == LESSON:
            self.env.note_dependency(str(FOLDER / "digits.onnx"))  # read the page again after `make web` has added the runtime
            opening = next(self.document.findall(nodes.block_quote))
            html = FRAME if FOLDER.is_dir() else ABSENT
            opening.parent.insert(opening.parent.index(opening) + 1, nodes.raw("", html, format="html"))


if __name__ == "__main__":
    make(Path(sys.argv[1]))
