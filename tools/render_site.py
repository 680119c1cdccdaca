"""Renders the site, unless it stands there as it would be rendered: nothing that it could be made of changed, and no page of it.

usage: render_site.py [SPHINX_OPTION ...]
"""

from __future__ import annotations

import subprocess
import sys
import sysconfig
from collections.abc import Callable, Sequence
from pathlib import Path

from stale import ROOT
from stale.hashing import combined, hashed, of_text
from stale.tree import files
from stamps import Stamps, State

SITE, DOCTREES, STAMPS = ROOT / "build/site", ROOT / "build/doctrees", ROOT / "build/stamps/site"
GENERATED = ROOT / "generated"  # what recipes and errors printed, which Sphinx renders
FETCHED = ROOT / "build/web/node_modules/onnxruntime-web/dist"  # what runs models in pages
WRITTEN = ROOT / "sg_execution_times.rst"  # sphinx-gallery puts it beside the sources
ALWAYS = {"-E", "-a", "--fresh-env", "--write-all"}  # options that ask for all pages


def main(options: Sequence[str], render: Callable[[Sequence[str]], int] | None = None) -> int:
    """Render the site where it is stale, and note what it was made of; return what Sphinx does.

    Args:
        options: of sphinx-build.
        render: renders it with these options; Sphinx, unless a test says otherwise.
    """
    before = sources(options)  # what changes while it is rendered makes it stale again
    stamps = Stamps(STAMPS, {"site": (*before, *rendered())})
    if not stamps.stale() and not ALWAYS.intersection(options):
        print("site: nothing changed since it was rendered")
        return 0
    print(f"site: {stamps.reason()}", flush=True)
    failed = (render or by_sphinx)(options)
    if not failed:
        Stamps(STAMPS, {"site": (*before, *rendered())}).keep("site")
    return failed


def sources(options: Sequence[str]) -> State:
    """Return a line for each thing that a page can be made of: the files of the repository, packages, the runtime of browsers, options."""
    installed = (path.name for path in Path(sysconfig.get_path("purelib")).glob("*.dist-info"))
    lines = {"Python and its packages": [sys.version, *sorted(installed)], "what make web fetches": dated(FETCHED), "the options": options}
    return (*combined(files() - {WRITTEN}, of_text), *(f"{hashed(said)} {name}" for name, said in lines.items()))


def rendered() -> State:
    """Return a line for each folder that is written: what is gone from it, or was written by something else, is made again."""
    return tuple(f"{hashed(dated(folder))} {folder.name}/" for folder in (SITE, GENERATED))


def dated(folder: Path) -> list[str]:
    """Return the files below a folder with their size and time, sorted."""
    seen = ((path, path.stat()) for path in folder.rglob("*") if path.is_file())
    return sorted(f"{path} {stat.st_size} {stat.st_mtime_ns}" for path, stat in seen)


def by_sphinx(options: Sequence[str]) -> int:
    """Let Sphinx do it."""
    command = [str(Path(sys.executable).with_name("sphinx-build")), "-b", "html", "-j", "1", "-d", str(DOCTREES), *options]
    return subprocess.run([*command, str(ROOT), str(SITE)], check=False).returncode


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
