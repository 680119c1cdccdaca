"""Renders the site, unless it stands there as it would be rendered: nothing that it could be made of changed, and no page of it.

usage: render_site.py [SPHINX_OPTION ...]
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path

from changes import ROOT, digest, environment, is_noted, repository_files, write_note

SITE, DOCTREES, NOTE = ROOT / "build/site", ROOT / "build/doctrees", ROOT / "build/passed/site"
GENERATED = ROOT / "generated"  # what recipes and errors printed, which Sphinx renders
FETCHED = ROOT / "build/web/node_modules/onnxruntime-web/dist"  # what runs models in pages
ALWAYS = {"-E", "-a", "--fresh-env", "--write-all"}  # options that ask for all pages


def main(options: Sequence[str], render: Callable[[Sequence[str]], int] | None = None) -> int:
    """Render the site where something has changed, and note what it was made of; return what Sphinx does.

    Args:
        options: of sphinx-build.
        render: renders it with these options; Sphinx, unless a test says otherwise.
    """
    before = sources(options)  # what changes while it is rendered makes it stale again
    if is_noted(NOTE, f"{before} {digest_rendered_files()}") and not ALWAYS.intersection(options):
        print("site: nothing has changed since it was rendered")
        return 0
    failed = (render or run_sphinx)(options)
    if not failed:
        write_note(NOTE, f"{before} {digest_rendered_files()}")
    return failed


def sources(options: Sequence[str]) -> str:
    """Return a digest of all that a page can be made of: the files of the repository, packages, the runtime of browsers, options."""
    return digest(repository_files(ROOT), environment(), *list_file_stamps(FETCHED), *options)


def digest_rendered_files() -> str:
    """Return a digest of what is written: what is gone from it, or was written by something else, is made again."""
    return digest([], *list_file_stamps(SITE), *list_file_stamps(GENERATED))


def list_file_stamps(folder: Path) -> list[str]:
    """Return the files below a folder with their size and time, sorted."""
    seen = ((path, path.stat()) for path in folder.rglob("*") if path.is_file())
    return sorted(f"{path} {stat.st_size} {stat.st_mtime_ns}" for path, stat in seen)


def run_sphinx(options: Sequence[str]) -> int:
    """Let Sphinx do it."""
    command = [str(Path(sys.executable).with_name("sphinx-build")), "-b", "html", "-j", "1", "-d", str(DOCTREES), *options]
    return subprocess.run([*command, str(ROOT), str(SITE)], check=False).returncode


def fetch_runtime() -> None:
    """Fetch what runs models in pages, if it is missing and npm is there. Without it, pages show stored results."""
    if FETCHED.is_dir() or shutil.which("npm") is None:
        return
    command = ["make", "--no-print-directory", "web"]
    if subprocess.run(command, cwd=ROOT, env={**os.environ, "npm_config_fetch_retries": "0"}, check=False).returncode:
        print("site: npm could not fetch onnxruntime-web, so pages show stored results")


if __name__ == "__main__":
    fetch_runtime()
    sys.exit(main(sys.argv[1:]))
