"""What the site does besides rendering: a fresh start for each page, forgetting stale ones, pictures for cards. Not here: settings."""

from __future__ import annotations

import base64
import hashlib
import json
import shutil
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

ROOT = Path(__file__).parent.parent
GENERATED = ROOT / "generated"
ORDER = (
    *("first_graph", "dynamic_shapes", "strict_or_not", "scan", "inplace_index", "kwargs_and_caches"),
    *("simple_case", "linear_regression", "cond", "loop_over_the_batch", "custom_op_function", "custom_op_inplace"),
    *("submodules", "rewriting"),
)
SOURCES = ("requirements.txt", "constraints.txt", "docs/pages.py")


def fresh_page(gallery_conf: dict[str, Any], script: str) -> None:
    """Every recipe starts as a new process would: a seed, and no warnings that the reader cannot act on."""
    import torch

    import exportlab

    exportlab.quiet()
    torch.manual_seed(0)
    torch._dynamo.reset()
    forget_main()


def forget_main() -> None:
    """Makes TorchDynamo look `__main__` up again: each page has its own, and it remembers that of the page before."""
    from torch._dynamo import symbolic_convert

    symbolic_convert._import_module.cache_clear()
    for module in list(sys.modules.values()):
        if isinstance(module, ModuleType):
            vars(module).pop("__import___main__", None)


def page_arguments(gallery_conf: dict[str, Any], script_vars: dict[str, Any]) -> list[str]:
    """Benchmarks run quick on the site."""
    return ["--quick"] if "benchmarks" in script_vars["src_file"] else []


class ReadingOrder:
    """The order of recipes within a chapter: those of `ORDER` first, new ones after them."""

    def __init__(self, folder: str) -> None:
        self.folder = folder

    def __call__(self, file: str) -> tuple[int, str]:
        """A key to sort by."""
        name = Path(file).stem
        return (ORDER.index(name) if name in ORDER else len(ORDER)), name


def forget_stale_pages() -> None:
    """Recipes are run again when the package or a pin changed, not only when the script itself did."""
    sources = [*sorted((ROOT / "exportlab").rglob("*.py")), *(ROOT / name for name in SOURCES)]
    digest = hashlib.sha256(b"".join(path.read_bytes() for path in sources)).hexdigest()
    stamp = GENERATED / "sources.sha256"
    if stamp.exists() and stamp.read_text() == digest:
        return
    shutil.rmtree(GENERATED, ignore_errors=True)
    GENERATED.mkdir()
    stamp.write_text(digest)


def store_lesson_thumbnails() -> None:
    """Writes the last picture of each lesson's stored pair to generated/thumbnails/, for the cards that link to it.

    Raises:
        ValueError: a lesson has no picture.
    """
    folder = GENERATED / "thumbnails"
    folder.mkdir(exist_ok=True)
    for path in sorted((ROOT / "tutorials").glob("*.ipynb")):
        picture = last_picture(json.loads(path.read_text(encoding="utf-8")))
        if picture is None:
            raise ValueError(f"{path.name} has no picture: every lesson needs one for its card")
        target = folder / f"{path.stem}.png"
        if not target.exists() or target.read_bytes() != picture:
            target.write_bytes(picture)


def last_picture(notebook: dict[str, Any]) -> bytes | None:
    """The last PNG among the outputs; exercises come after the lesson and do not count."""
    cells = notebook["cells"]
    titles = ["".join(cell["source"]) if cell["cell_type"] == "markdown" else "" for cell in cells]
    end = next((i for i, title in enumerate(titles) if title.startswith("## Exercises")), len(cells))
    data = [output.get("data", {}) for cell in cells[:end] for output in cell.get("outputs", [])]
    pictures = [d["image/png"] for d in data if "image/png" in d]
    return base64.b64decode(pictures[-1]) if pictures else None
