"""Pictures of the site as WebP, which is smaller than PNG and loses nothing; a picture for which it is not stays as it is."""

from __future__ import annotations

import re
from pathlib import Path

from PIL import Image
from sphinx.application import Sphinx

PICTURE = re.compile(r"_images/([\w.-]+)\.png")


def setup(app: Sphinx) -> dict[str, bool]:
    """Convert behind the last page."""
    app.connect("build-finished", convert_all)
    return {"parallel_read_safe": True, "parallel_write_safe": True}


def convert_all(app: Sphinx, error: Exception | None) -> None:
    """Convert the pictures of the pages that were written, and name the new ones in these pages."""
    if error or app.builder.format != "html":
        return
    site = Path(app.outdir)
    for picture in site.glob("_images/*.png"):
        convert(picture)
    kept = {path.stem for path in site.glob("_images/*.png")}
    for page in site.rglob("*.html"):
        name_pictures(page, kept)


def convert(picture: Path) -> None:
    """Put a WebP in the place of a PNG, where that is smaller."""
    draft, made = picture.with_suffix(".new"), picture.with_suffix(".webp")
    with Image.open(picture) as image:
        image.save(draft, "WEBP", lossless=True, exact=True, quality=60, method=4)
    if draft.stat().st_size < picture.stat().st_size:
        draft.replace(made)
        picture.unlink()
    else:
        draft.unlink()
        made.unlink(missing_ok=True)


def name_pictures(page: Path, kept: set[str]) -> None:
    """Let a page show what its pictures have become."""
    before = page.read_text(encoding="utf-8")
    after = PICTURE.sub(lambda found: found[0] if found[1] in kept else f"_images/{found[1]}.webp", before)
    if after != before:
        page.write_text(after, encoding="utf-8")
