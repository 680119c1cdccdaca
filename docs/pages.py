"""What the site does besides rendering: fresh pages, none that is stale, findings first, pictures for cards. Not here: settings."""

from __future__ import annotations

import base64
import hashlib
import json
import re
import shutil
import sys
import textwrap
from pathlib import Path
from types import ModuleType
from typing import Any

import pictures
from sphinx.application import Sphinx

ROOT = Path(__file__).parent.parent
GENERATED = ROOT / "generated"
ORDER = (
    *("first_graph", "dynamic_shapes", "data_dependent_sizes", "strict_or_not", "draft_export", "scan", "inplace_index"),
    *("kwargs_and_caches", "mutable_cache", "save_and_load"),
    *("simple_case", "linear_regression", "cond", "loop_over_the_batch", "custom_op_function", "untranslated_op", "custom_op_inplace"),
    *("custom_op_inplace_to_onnx", "submodules", "submodules_to_onnx", "pairwise_distances", "rewriting", "two_exporters"),
    *("names", "read_the_report", "external_data", "half_precision", "shape_inference", "onnxscript_code"),
    *("model_mlp", "model_convnet", "model_bert", "model_vit", "model_llama", "model_whisper"),
    *("how_we_measure", "coverage", "export_time", "memory", "graph_size", "latency", "start_up", "llama_layers", "optimisers"),
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


def keep_paths() -> None:
    """ONNX Runtime's tools add their folder to the path at their first import, and a page's path ends with the page: so add it here."""
    import onnxruntime.transformers

    assert str(Path(onnxruntime.transformers.__file__).parent) in sys.path


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
    """The order of recipes and benchmarks within a chapter: those of `ORDER` first, new ones after them."""

    def __init__(self, folder: str) -> None:
        self.folder = folder

    def __call__(self, file: str) -> tuple[int, str]:
        """A key to sort by."""
        name = Path(file).stem
        return (ORDER.index(name) if name in ORDER else len(ORDER)), name


def forget_stale_pages() -> None:
    """Recipes are run again when the package or a pin changed, not only when the script itself did."""
    stored = sorted((*ROOT.glob("benchmarks/data/*.json"), *ROOT.glob("docs/data/*.jsonl")))
    sources = [*sorted((ROOT / "exportlab").rglob("*.py")), *stored, *(ROOT / name for name in SOURCES)]
    digest = hashlib.sha256(b"".join(path.read_bytes() for path in sources)).hexdigest()
    stamp = GENERATED / "sources.sha256"
    if stamp.exists() and stamp.read_text() == digest:
        return
    for folder in ("gallery", "benchmarks", "parts", "static", "thumbnails"):
        shutil.rmtree(GENERATED / folder, ignore_errors=True)
    GENERATED.mkdir(exist_ok=True)
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


def store_parts() -> None:
    """Writes what docs/converter.md and docs/analogies.md include: the table of operators, from the table itself, and two pictures."""
    folder = GENERATED / "parts"
    folder.mkdir(exist_ok=True)
    table = operators_table()
    if not (folder / "operators.md").exists() or (folder / "operators.md").read_text(encoding="utf-8") != table:
        (folder / "operators.md").write_text(table, encoding="utf-8")
    for name, draw in (("converter.png", pictures.draw_converter), ("worlds.png", pictures.draw_worlds)):
        if not (folder / name).exists():
            draw(folder / name)


def operators_table() -> str:
    """Every operator of the converter's own table, by family: what is translated, and what the translation says of itself."""
    from fx2onnx.ops import own_translations

    families: dict[str, dict[Any, list[str]]] = {}
    for target, translation in own_translations().items():
        family = translation.__module__.rpartition(".")[2]
        families.setdefault(family, {}).setdefault(translation, []).append(getattr(target, "__name__", str(target)))
    parts = [f"{len(own_translations())} operators have a translation of our own.\n"]
    for family, translations in sorted(families.items()):
        count = sum(map(len, translations.values()))
        rows = [f"| {', '.join(f'`{op}`' for op in ops)} | {one_line(made.__doc__)} |" for made, ops in translations.items()]
        table = ["| operators | becomes |", "| --- | --- |", *rows]
        parts.append("\n".join([f":::{{dropdown}} `ops/{family}.py`: {count}", "", *table, ":::", ""]))
    return "\n".join(parts)


def one_line(text: str | None) -> str:
    """A docstring as the cell of a table."""
    return " ".join((text or "").split()).replace("|", "\\|").replace("*", "\\*").replace("_", "\\_").replace("<", "\\<")


FIRST_CELL = re.compile(r"(?P<code>\.\. code-block:: Python\n.*?)(?P<picture>\.\. image-sg::.*?\n\n)?"
                        r"\.\. rst-class:: sphx-glr-script-out\n\n \.\. code-block:: none\n\n(?P<said>.*?)\n\n\n", re.DOTALL)  # fmt: skip
TITLE = re.compile(r"^=+\n", re.MULTILINE)


def finding_first(app: Sphinx, page: str, source: list[str]) -> None:
    """A benchmark's page begins with what its first cell prints and draws; the code that does it comes after."""
    if page.startswith("generated/benchmarks/") and (cell := FIRST_CELL.search(source[0])):
        text = source[0].replace(cell[0], cell["code"], 1)
        place = TITLE.search(text).end()
        found = f"\n.. rst-class:: finding\n\n{_as_text(cell['said'])}\n\n{cell['picture'] or ''}\n"
        source[0] = text[:place] + found + text[place:]


def _as_text(said: str) -> str:
    """Printed paragraphs and points as reStructuredText."""
    return re.sub(r"([*_|`\\])", r"\\\1", textwrap.dedent(said)).strip()


def last_picture(notebook: dict[str, Any]) -> bytes | None:
    """The last PNG among the outputs; exercises come after the lesson and do not count."""
    cells = notebook["cells"]
    titles = ["".join(cell["source"]) if cell["cell_type"] == "markdown" else "" for cell in cells]
    end = next((i for i, title in enumerate(titles) if title.startswith("## Exercises")), len(cells))
    data = [output.get("data", {}) for cell in cells[:end] for output in cell.get("outputs", [])]
    pictures = [d["image/png"] for d in data if "image/png" in d]
    return base64.b64decode(pictures[-1]) if pictures else None
