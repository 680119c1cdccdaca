"""The footer and the links to the repository, which pages have only if its address is known."""

from __future__ import annotations

import json
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import page_footer
import pytest

ROOT = Path(__file__).parents[2]
LESSON = "tutorials/101_module_to_file"


def test_without_an_address_a_page_has_no_links() -> None:
    assert page_footer.find_links("", LESSON) == {}
    assert page_footer.find_links("https://example.org/lab", LESSON) == {}


def test_a_lesson_without_an_install_cell_is_not_opened_in_colab(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(page_footer, "has_install_cell", lambda _: False)
    assert [*page_footer.find_links("https://github.com/one/lab", LESSON)] == ["Edit this page", "Open in Binder"]


def test_a_lesson_can_be_edited_and_opened_elsewhere(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(page_footer, "has_install_cell", lambda _: True)
    assert page_footer.find_links("https://github.com/one/lab", LESSON) == {
        "Edit this page": f"https://github.com/one/lab/edit/main/{LESSON}.md",
        "Open in Colab": f"https://colab.research.google.com/github/one/lab/blob/main/{LESSON}.ipynb",
        "Open in Binder": "https://mybinder.org/v2/gh/one/lab/main?labpath=tutorials%2F101_module_to_file.ipynb",
    }
    assert [*page_footer.find_links("https://github.com/one/lab", "docs/support")] == ["Edit this page"]


@pytest.mark.parametrize(
    ("page", "source"),
    [
        ("index", "index.md"),
        (LESSON, f"{LESSON}.md"),
        ("generated/errors/branch_on_value", "content/errors/branch_on_value.py"),
        ("generated/gallery/torch_onnx/cond", "gallery/torch_onnx/cond.py"),
        ("generated/benchmarks/memory", "benchmarks/memory.py"),
        ("genindex", None),
    ],
)
def test_a_page_is_made_from_a_source(page: str, source: str | None) -> None:
    assert page_footer.source_of(page) == source
    assert source is None or (ROOT / source).is_file()


@pytest.mark.parametrize(("address", "icons"), [("", 0), ("https://github.com/one/lab", 1), ("https://example.org/lab", 1)])
def test_the_header_links_to_the_repository_if_its_address_is_known(address: str, icons: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(page_footer, "repository", lambda: address)
    config: Any = SimpleNamespace(html_theme_options={})
    page_footer.add_repository(SimpleNamespace(), config)
    assert [icon["url"] for icon in config.html_theme_options.get("icon_links", [])] == [address] * icons


def test_the_footer_has_the_versions_of_the_stored_matrix_and_the_licence() -> None:
    lines = (ROOT / "docs/data/matrix.jsonl").read_text(encoding="utf-8").splitlines()
    environments = [found["environment"] for found in map(json.loads, lines) if isinstance(found.get("environment"), dict)]
    assert {f"torch {e['torch_version']}" for e in environments} <= {*page_footer.stamp()}
    assert f"support matrix of {max(e['date'] for e in environments)[:10]}" in page_footer.stamp()
    assert page_footer.stamp()[-1] == "MIT licence"
    assert (ROOT / "LICENSE").read_text(encoding="utf-8").startswith("MIT License")
