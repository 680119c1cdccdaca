"""Write a small page at each address that a page once had, which leads to the page that replaces it."""

from __future__ import annotations

import posixpath
from html import escape
from pathlib import Path

from sphinx.application import Sphinx

REDIRECTS = {  # pages without .html, old: new, which may end with a section's #anchor
    "docs/across_time": "docs/versions#new-releases-of-torch-transformers-and-onnxscript",
    "docs/analogies": "docs/outcomes#pytorch-and-onnx-side-by-side",
    "docs/coverage": "docs/reference",
    "docs/glossary": "docs/outcomes#terms-of-this-site",
    "docs/old_runtimes": "docs/versions",
    "docs/paths/index": "docs/choosing#three-learning-paths",
    "docs/paths/my_model_fails": "docs/choosing#path-my-model-fails",
    "docs/paths/transformer": "docs/choosing#path-transformer",
    "docs/paths/understand": "docs/choosing#path-understand",
    "generated/benchmarks/captures": "generated/benchmarks/export_time",
    "generated/benchmarks/coverage": "docs/support",
    "generated/benchmarks/llama_layers": "generated/benchmarks/export_time",
    "generated/benchmarks/own_exporter": "generated/benchmarks/export_time",
}
PAGE = """<!DOCTYPE html>
<html lang="en">
<head><meta charset="utf-8"><title>This page has moved</title><meta name="robots" content="noindex">
<meta http-equiv="refresh" content="0; url={target}"></head>
<body><p>This page has moved: <a href="{target}">{target}</a>.</p></body>
</html>
"""


def setup(app: Sphinx) -> dict[str, bool]:
    """Leave out what an earlier build has left of the old pages, and write the new ones after a build of HTML."""
    app.connect("config-inited", lambda _, config: config.exclude_patterns.extend(f"{old}.*" for old in REDIRECTS))
    app.connect("build-finished", write_redirects)
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def write_redirects(app: Sphinx, failure: Exception | None) -> None:
    """Write each page, unless the build failed.

    Raises:
        ValueError: there is no page at a new address.
    """
    if failure or app.builder.format != "html":
        return
    for old, new in REDIRECTS.items():
        if new.partition("#")[0] not in app.env.found_docs:
            raise ValueError(f"{old} cannot lead to {new}: there is no such page")
        path = Path(app.outdir, f"{old}.html")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(redirect(old, new), encoding="utf-8")


def redirect(old: str, new: str) -> str:
    """Return a page that leads from an old address to a new one."""
    page, mark, anchor = new.partition("#")
    return PAGE.format(target=escape(posixpath.relpath(f"{page}.html", posixpath.dirname(old)) + mark + anchor))
