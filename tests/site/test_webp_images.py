"""Pictures become WebP where that is smaller, lose nothing, and are named so in the pages."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import webp_images
from PIL import Image


@pytest.fixture
def app(tmp_path: Path) -> Any:
    """A site with a page and two pictures, one of which is smaller as it is."""
    (tmp_path / "_images").mkdir()
    drawn = Image.new("RGBA", (300, 200), "white")
    drawn.paste((200, 30, 30, 120), (20, 20, 120, 90))
    drawn.save(tmp_path / "_images/drawn.png")
    Image.new("1", (1, 1)).save(tmp_path / "_images/dot.png")
    drawn_twice = '<img src="_images/drawn.png" srcset="_images/drawn.png, _images/drawn.png 2.00x">'
    (tmp_path / "page.html").write_text(f'{drawn_twice}<img src="_images/dot.png"><img src="_static/a.png">', encoding="utf-8")
    return SimpleNamespace(outdir=tmp_path, builder=SimpleNamespace(format="html"))


def test_a_smaller_picture_takes_the_place_and_loses_nothing(app: Any, tmp_path: Path) -> None:
    before = Image.open(tmp_path / "_images/drawn.png").convert("RGBA").tobytes()
    webp_images.convert_all(app, None)
    left = {path.name for path in (tmp_path / "_images").iterdir()}
    kept = "dot.png" in left
    assert left == {"drawn.webp", "dot.png" if kept else "dot.webp"}
    assert Image.open(tmp_path / "_images/drawn.webp").convert("RGBA").tobytes() == before
    page = (tmp_path / "page.html").read_text(encoding="utf-8")
    assert 'srcset="_images/drawn.webp, _images/drawn.webp 2.00x"' in page
    assert '"_static/a.png"' in page
    assert ("_images/dot.png" in page) == kept


def test_a_picture_that_webp_makes_larger_stays(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    Image.new("RGB", (9, 9)).save(picture := tmp_path / "a.png")
    monkeypatch.setattr(Image.Image, "save", lambda self, path, *_, **__: Path(path).write_bytes(bytes(10_000)))
    webp_images.convert(picture)
    assert [path.name for path in tmp_path.iterdir()] == ["a.png"]


def test_a_page_that_is_written_again_gets_its_new_picture(app: Any, tmp_path: Path) -> None:
    webp_images.convert_all(app, None)
    Image.new("RGB", (300, 200), "blue").save(tmp_path / "_images/drawn.png")
    webp_images.convert_all(app, None)
    assert Image.open(tmp_path / "_images/drawn.webp").convert("RGB").getpixel((5, 5)) == (0, 0, 255)
