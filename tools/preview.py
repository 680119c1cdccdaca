"""Render a preview of the site into build/preview/site from stored results: nothing is executed, and every page has a notice of that.

usage: preview.py [SPHINX_OPTION ...]
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path

from changes import ROOT, repository_files

PREVIEW = ROOT / "build/preview"
SOURCE, SITE, DOCTREES = PREVIEW / "source", PREVIEW / "site", PREVIEW / "doctrees"
VARIABLE = "EXPORTLAB_PREVIEW"  # conf.py reads it


def main(options: Sequence[str]) -> int:
    """Copy the sources and what make site has generated so far, render them, and return what Sphinx does."""
    copy_changed([*repository_files(ROOT), *(path for path in (ROOT / "generated").rglob("*") if path.is_file())])
    (SITE / "_static").mkdir(parents=True, exist_ok=True)  # Sphinx copies the icon first, and would make a file of this name
    command = [str(Path(sys.executable).with_name("sphinx-build")), "-b", "html", "-j", "1", "-d", str(DOCTREES), *options]
    return subprocess.run([*command, str(SOURCE), str(SITE)], cwd=SOURCE, env=os.environ | {VARIABLE: "1"}, check=False).returncode


def copy_changed(files: Iterable[Path]) -> None:
    """Copy files that differ from their copies, and remove copies of what is gone; the preview's own results are kept."""
    wanted = {SOURCE / path.relative_to(ROOT): path for path in files}
    for copy, path in wanted.items():
        if not copy.exists() or copy.stat().st_mtime < path.stat().st_mtime:
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy2(path, copy)
    for copy in [path for path in SOURCE.rglob("*") if path.is_file() and "generated" not in path.relative_to(SOURCE).parts]:
        if copy not in wanted:
            copy.unlink()


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
