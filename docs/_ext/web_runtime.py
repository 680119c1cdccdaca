"""Publish ONNX Runtime for browsers in _static/ort/, if it has been downloaded."""

from __future__ import annotations

import shutil
from pathlib import Path

from site_files import ROOT, STATIC, publish_static, write
from sphinx.application import Sphinx
from sphinx.util.logging import getLogger

DIST = ROOT / "build/web/node_modules/onnxruntime-web/dist"
FILES = ("ort.wasm.min.mjs", "ort-wasm-simd-threaded.mjs", "ort-wasm-simd-threaded.wasm")  # the smallest build with all operators

ABSENT = "onnxruntime-web is missing (make site fetches it, if there is npm): the pages show stored results instead of running models"


def setup(app: Sphinx) -> dict[str, bool]:
    """Publish the runtime before the pages are written."""
    app.connect("builder-inited", publish)
    return {"parallel_read_safe": True}


def publish(app: Sphinx) -> None:
    """Copy the runtime's files, or print a line about the missing files. runtime.js tells the pages whether it is available."""
    publish_static(app)
    folder = STATIC / "ort"
    there = all((DIST / name).exists() for name in FILES)
    write(STATIC / "runtime.js", f"window.runtimePublished = {str(there).lower()};\n")
    if not there:
        shutil.rmtree(folder, ignore_errors=True)
        getLogger(__name__).info(ABSENT)
        return
    for name in FILES:
        copy(DIST / name, folder / name)


def add_runtime(app: Sphinx) -> None:
    """Add the script that starts the runtime to a page, after the one that defines whether the site has it."""
    for script in ("runtime.js", "runs_here.js"):
        app.add_js_file(script, loading_method="defer")


def copy(source: Path, target: Path) -> None:
    """Copy a file atomically if it changed."""
    if target.exists() and target.stat().st_size == source.stat().st_size:
        return
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copy(source, draft := target.with_name(f"{target.name}.new"))
    draft.replace(target)
