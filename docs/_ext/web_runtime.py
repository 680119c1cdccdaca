"""ONNX Runtime for browsers, handed out once with the site, in _static/ort/, where `make web` has fetched it."""

from __future__ import annotations

import shutil
from pathlib import Path

from site_files import ROOT, STATIC, publish_static, write
from sphinx.application import Sphinx
from sphinx.util.logging import getLogger

DIST = ROOT / "build/web/node_modules/onnxruntime-web/dist"
FILES = ("ort.wasm.min.mjs", "ort-wasm-simd-threaded.mjs", "ort-wasm-simd-threaded.wasm")  # the smallest that runs every operator

ABSENT = "onnxruntime-web is not here (make web, which needs npm): models do not run in the pages, stored answers are shown"


def setup(app: Sphinx) -> dict[str, bool]:
    """Publish it before the pages are written."""
    app.connect("builder-inited", publish)
    return {"parallel_read_safe": True}


def publish(app: Sphinx) -> None:
    """Copy its files, or print a line about what is missing; runtime.js tells the pages which of both it was."""
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
    """Give a page the script that starts the runtime, after the one that tells whether the site has it."""
    for script in ("runtime.js", "runs_here.js"):
        app.add_js_file(script, loading_method="defer")


def copy(source: Path, target: Path) -> None:
    """Copy a file whole, where it differs."""
    if target.exists() and target.stat().st_size == source.stat().st_size:
        return
    target.parent.mkdir(parents=True, exist_ok=True)
    shutil.copy(source, draft := target.with_name(f"{target.name}.new"))
    draft.replace(target)
