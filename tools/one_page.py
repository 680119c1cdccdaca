"""Renders one page of the site into build/page/, and with --watch again whenever its source or a style changes, in a preview that reloads.

usage: one_page.py PAGE [--watch]        PAGE: a recipe or benchmark, a lesson, a text, or a known error's module
"""

from __future__ import annotations

import functools
import shutil
import subprocess
import sys
import threading
import time
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
OUT, DRAFTS = ROOT / "build/page", ROOT / "build/page-scripts"
SCRIPTS, CATALOGUE = ("gallery", "benchmarks"), "content/errors"
NEEDED_BY = {  # what takes seconds or needs the whole gallery, and the pages that cannot do without
    "known_errors": ("-",),
    "sphinx_gallery.gen_gallery": SCRIPTS,
    "gallery_pages": SCRIPTS,
    "findings": SCRIPTS,
    "support_matrix": ("docs/support",),
    "atlas": ("docs/atlas",),
    "across_time": ("docs/versions",),
    "old_runtimes": ("docs/versions",),
    "operators_table": ("docs/to_onnx_operators",),
    "wrong_exports": ("docs/wrong",),
    "export_options": ("docs/options",),
    "front_page": ("index",),
    "browser_demo": ("tutorials/306",),
    "page_demos": ("gallery/torch_onnx/cond", "tutorials/302"),
    "redirects": (),  # they lead to pages that are not rendered
}
RELOAD = """setInterval(async () => {
  const now = await (await fetch("/made.txt", { cache: "no-store" })).text();
  if (window.made && window.made !== now) location.reload();
  window.made = now;
}, 500);
"""


def settings(page: Path) -> dict[str, Any]:
    """What differs from conf.py: one page is read, and links to others may lead nowhere."""
    import conf

    script = page.parts[0] in SCRIPTS
    name = document(page)
    left_out = {name for name, needed in NEEDED_BY.items() if not str(page).startswith(needed)}
    folders = {"examples_dirs": [str(DRAFTS)], "gallery_dirs": [str(Path(name).parent)], "subsection_order": None}
    executed = {"filename_pattern": r"\.py$" if page.parts[0] == "gallery" else "$^"}
    return {
        "extensions": [name for name in conf.extensions if name not in left_out],
        "include_patterns": [f"{name}.*"],
        "exclude_patterns": [pattern for pattern in conf.exclude_patterns if "page-" not in pattern],
        "root_doc": name,
        "html_search_scorer": "",
        "suppress_warnings": ["ref", "toc", "myst", "image", "app", "config"],
        "html_js_files": [*conf.html_js_files, "reload.js"],
        **({"sphinx_gallery_conf": {**conf.sphinx_gallery_conf, **folders, **executed}} if script else {}),
    }


def document(page: Path) -> str:
    """The name that Sphinx has for what is made of a source.

    Raises:
        SystemExit: nothing is made of it.
    """
    if not (ROOT / page).is_file():
        sys.exit(f"there is no {page}")
    if page.parts[0] in SCRIPTS and page.suffix == ".py":
        return f"generated/page-{page.parts[0]}/{page.stem}"
    if page.parent == Path(CATALOGUE):
        return f"generated/errors/{page.stem}"
    if page.suffix in (".md", ".ipynb"):
        return str(page.with_suffix(""))
    sys.exit(f"{page} is the source of no page: a script of {' or '.join(SCRIPTS)}, a module of {CATALOGUE}, or a .md file is")


def prepare(page: Path) -> None:
    """Puts a script alone into a gallery of its own; runs a known error."""
    if page.parts[0] in SCRIPTS:
        shutil.rmtree(DRAFTS, ignore_errors=True)
        DRAFTS.mkdir(parents=True)
        shutil.copy(ROOT / page, DRAFTS)
        (DRAFTS / "GALLERY_HEADER.rst").write_text("One page\n========\n")
    if page.parent == Path(CATALOGUE):
        import known_errors

        error = known_errors.get(page.stem)
        known_errors.write(known_errors.page_of(error), known_errors.page(error, known_errors.reproduce_message(error)))


def render(page: Path) -> int:
    """Renders it; what Sphinx returns."""
    sys.path[:0] = [str(ROOT), str(ROOT / "docs/_ext"), str(ROOT / "tools")]
    from sphinx.application import Sphinx

    changed = settings(page)
    prepare(page)
    app = Sphinx(ROOT, ROOT, OUT, ROOT / "build/page-doctrees", "html", confoverrides=changed, status=None, freshenv=True)
    app.build(force_all=True)
    (OUT / "_static/reload.js").write_text(RELOAD if "--watch" in sys.argv else "")
    (OUT / "made.txt").write_text(str(time.time()))
    print(f"{OUT.relative_to(ROOT) / document(page)}.html")
    return int(app.statuscode)


def watch(page: Path) -> None:
    """Serves the page, and renders it in a new process whenever something that it is made of changes."""
    server = ThreadingHTTPServer(("127.0.0.1", 8000), functools.partial(SimpleHTTPRequestHandler, directory=str(OUT)))
    threading.Thread(target=server.serve_forever, daemon=True).start()
    print(f"http://127.0.0.1:8000/{document(page)}.html, until Ctrl-C")
    seen: dict[Path, float] = {}
    while True:
        now = {path: path.stat().st_mtime for path in (ROOT / page, *(ROOT / "docs/_static").iterdir())}
        if now != seen:
            subprocess.run([sys.executable, __file__, str(page), "--once", "--watch"], cwd=ROOT, check=False)
        seen = now
        time.sleep(0.3)


def main(arguments: list[str]) -> int:
    """Renders or watches."""
    if not arguments or arguments[0].startswith("-"):
        print(__doc__)
        return 2
    page = Path(arguments[0])
    document(page)
    if "--watch" in arguments and "--once" not in arguments:
        watch(page)
    return render(page)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
