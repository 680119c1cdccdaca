"""How the site is rendered: Sphinx at the root of the repository, executing gallery/ and benchmarks/. Not here: any text."""

import base64
import hashlib
import json
import shutil
import sys
import warnings
from pathlib import Path

from sphinx_gallery.sorting import ExplicitOrder, FileNameSortKey

ROOT = Path(__file__).parent
project = "Export Lab"
author = "the Export Lab authors"
copyright = "2026, " + author
extensions = [
    "sphinx.ext.autodoc",
    "sphinx.ext.napoleon",
    "sphinx_gallery.gen_gallery",
    "myst_nb",
    "sphinx_design",
    "sphinx_copybutton",
]
include_patterns = ["index.md", "CONTRIBUTING.md", "CHANGELOG.md", "docs/**", "tutorials/**", "generated/**"]
exclude_patterns = ["tutorials/[0-9]*.md", "**/.ipynb_checkpoints", "generated/**/*.py", "generated/**/*.ipynb"]

html_theme = "pydata_sphinx_theme"
html_title = project
html_static_path = ["docs/_static"]
html_css_files = ["exportlab.css"]
html_theme_options = {
    "navbar_align": "left",
    "show_prev_next": True,
    "header_links_before_dropdown": 6,
    "secondary_sidebar_items": ["page-toc", "sg_download_links"],
    "footer_start": ["copyright"],
    "footer_end": [],
}
html_sidebars = {"index": []}

nb_execution_mode = "off"  # the page is what is stored, and what is stored is what nbval compared
nb_merge_streams = True
myst_enable_extensions = ["colon_fence", "deflist", "dollarmath"]
myst_heading_anchors = 3
copybutton_exclude = ".linenos, .gp, .go"
autodoc_typehints = "description"
autodoc_member_order = "bysource"
nitpicky = False


def fresh_page(gallery_conf: dict, script: str) -> None:
    """Every recipe starts as a new process would: a seed, no warnings that the reader cannot act on."""
    import torch

    import exportlab

    warnings.resetwarnings()
    exportlab.quiet()
    torch.manual_seed(0)
    torch._dynamo.reset()


def page_arguments(gallery_conf: dict, script_vars: dict) -> list[str]:
    """Benchmarks run quick on the site."""
    return ["--quick"] if "benchmarks" in script_vars["src_file"] else []


sphinx_gallery_conf = {
    "examples_dirs": ["gallery", "benchmarks"],
    "gallery_dirs": ["generated/gallery", "generated/benchmarks"],
    "filename_pattern": r"\.py$",
    "subsection_order": ExplicitOrder(["gallery/torch_export", "gallery/torch_onnx"]),
    "within_subsection_order": FileNameSortKey,
    "reset_modules": ("matplotlib", fresh_page),
    "reset_argv": page_arguments,
    "first_notebook_cell": "from exportlab import quiet\n\nquiet()",
    "download_all_examples": False,
    "remove_config_comments": True,
    "show_signature": False,
    "min_reported_time": 5,
    "image_srcset": ["2x"],
}


def forget_stale_pages() -> None:
    """Recipes are run again when the package or a pin changed, not only when the script itself did."""
    sources = sorted([*(ROOT / "exportlab").rglob("*.py"), ROOT / "requirements.txt", ROOT / "constraints.txt", ROOT / "conf.py"])
    digest = hashlib.sha256(b"".join(path.read_bytes() for path in sources)).hexdigest()
    stamp = ROOT / "generated" / "sources.sha256"
    if stamp.exists() and stamp.read_text() == digest:
        return
    shutil.rmtree(ROOT / "generated", ignore_errors=True)
    stamp.parent.mkdir()
    stamp.write_text(digest)


def store_lesson_thumbnails() -> None:
    """Writes the last picture of each lesson's stored pair to generated/thumbnails/, for the cards that link to it."""
    folder = ROOT / "generated" / "thumbnails"
    folder.mkdir(exist_ok=True)
    for path in sorted((ROOT / "tutorials").glob("*.ipynb")):
        cells = json.loads(path.read_text(encoding="utf-8"))["cells"]
        pictures = [o["data"]["image/png"] for c in cells for o in c.get("outputs", []) if "image/png" in o.get("data", {})]
        if not pictures:
            raise ValueError(f"{path.name} has no picture: every lesson needs one for its card")
        (folder / f"{path.stem}.png").write_bytes(base64.b64decode(pictures[-1]))


if "sphinx" in Path(sys.argv[0]).name:
    forget_stale_pages()
    store_lesson_thumbnails()
