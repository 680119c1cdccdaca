"""Build recipes and benchmarks as pages: set their order, isolate their runs, and repeat a run if a file it reads changed."""

from __future__ import annotations

import re
import sys
import warnings
from contextlib import ExitStack
from pathlib import Path
from types import ModuleType
from typing import Any

import graph_pictures
from freshness import is_fresh, made_of, mark_fresh
from recipe_index import list_names
from site_files import ROOT
from sphinx.application import Sphinx

BEFORE_THE_GALLERY = 100  # priority; sphinx-gallery runs the pages at Sphinx's default of 500
ORDER = (
    *list_names(),
    *("export_time", "real_sizes", "memory", "graph_size"),
    *("latency", "pays_off", "start_up", "transformer_files", "optimisers", "cpp_programs"),
    "how_we_measure",
)


def setup(app: Sphinx) -> dict[str, bool]:
    """Prepare the files before sphinx-gallery starts."""
    app.connect("builder-inited", forget_stale_pages, priority=BEFORE_THE_GALLERY)
    app.connect("builder-inited", lambda _: keep_paths(), priority=BEFORE_THE_GALLERY)
    return {"parallel_read_safe": True}


class ReadingOrder:
    """Sort recipes and benchmarks within a chapter: those in `ORDER` first, then new ones."""

    def __init__(self, folder: str) -> None:
        self.folder = folder

    def __call__(self, file: str | Path) -> tuple[int, str]:
        """Return the sort key of a page."""
        name = Path(file).stem
        return (ORDER.index(name) if name in ORDER else len(ORDER)), name


def forget_stale_pages(app: Sphinx) -> None:
    """Mark pages to run again if a file that they read changed, and remove pages whose script was deleted.

    sphinx-gallery checks only the script itself, and runs each script that has no checksum.
    """
    galleries = app.config.sphinx_gallery_conf
    for scripts, pages in zip(galleries["examples_dirs"], galleries["gallery_dirs"], strict=True):
        kept = [script for script in (ROOT / scripts).rglob("*.py") if not re.search(galleries["ignore_pattern"], str(script))]
        found = {ROOT / pages / script.relative_to(ROOT / scripts): script for script in kept}
        for page, script in found.items():
            forget_if_stale(page, script)
        for gone in set((ROOT / pages).rglob("*.py")).difference(found):
            remove_page(gone)


def forget_if_stale(page: Path, script: Path) -> None:
    """Mark one page to run again if needed. `page` is sphinx-gallery's copy of the script."""
    checksum = page.with_name(f"{page.name}.md5")
    sources = made_of(script, Path(__file__), Path(graph_pictures.__file__))
    if not is_fresh(checksum, sources):
        checksum.unlink(missing_ok=True)
        mark_fresh(checksum, sources)  # the digest is only valid with a checksum, which the page's run creates


def remove_page(page: Path) -> None:
    """Remove the files made from a script, except its pictures, which are no longer shown."""
    for made in page.parent.glob(f"{page.stem}.*"):
        made.unlink()


_filters = ExitStack()  # the warning filters from before the current page


def fresh_page(gallery_conf: dict[str, Any], script: str) -> None:
    """Start a page like a new process: with a seed, and without warnings that readers can't act on.

    A benchmark hides all warnings, and a recipe may enable one. These settings end with the page.
    """
    import torch

    import exportlab

    _filters.close()
    _filters.enter_context(warnings.catch_warnings())
    exportlab.quiet()
    torch.manual_seed(0)
    torch._dynamo.reset()
    forget_main()


def keep_paths() -> None:
    """Add the import paths of ONNX Runtime's tools now, because changes during a page are undone after it."""
    import onnxruntime.transformers

    assert str(Path(onnxruntime.transformers.__file__).parent) in sys.path


def forget_main() -> None:
    """Make TorchDynamo look up `__main__` again. Each page has a new one, but TorchDynamo caches the previous one."""
    from torch._dynamo import symbolic_convert

    symbolic_convert._import_module.cache_clear()
    for module in list(sys.modules.values()):
        if isinstance(module, ModuleType):
            vars(module).pop("__import___main__", None)
