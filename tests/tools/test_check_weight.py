"""The site is weighed: what a page loads counts, its figures and the runtime for browsers do not."""

from __future__ import annotations

import random
from pathlib import Path

import check_weight
import pytest


@pytest.fixture
def site(tmp_path: Path) -> Path:
    """Two pages: one loads a script that nothing compresses, the other searches."""
    check_weight.measure_compressed_size.cache_clear()
    (tmp_path / "_static/ort").mkdir(parents=True)
    (tmp_path / "_static/a.js").write_bytes(random.Random(0).randbytes(1000))
    (tmp_path / "_static/ort/runtime.wasm").write_bytes(bytes(5000))
    (tmp_path / "searchindex.js").write_text("index")
    (tmp_path / "index.html").write_text('<script defer src="_static/a.js?v=1"></script><img src="b.png">')
    (tmp_path / "search.html").write_text('<script src="searchindex.js"></script>')
    return tmp_path


def test_a_page_weighs_what_it_loads(site: Path) -> None:
    assert check_weight.weight_of(site / "index.html") > 1000 > check_weight.weight_of(site / "search.html")


def test_a_site_within_its_limits_passes(site: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert check_weight.main(site) == 0
    assert "index.html" in capsys.readouterr().out


def test_heavy_pages_and_sites_are_named(site: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    monkeypatch.setattr(check_weight, "PAGE", 500)
    monkeypatch.setattr(check_weight, "SITE", 1000)
    assert check_weight.main(site) == 1
    said = capsys.readouterr().out
    assert "index.html: 1" in said
    assert "search.html: " not in said
    assert "the site has 1" in said, "the runtime does not count"


def test_only_the_page_that_searches_loads_the_index(site: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (site / "index.html").write_text('<script src="searchindex.js"></script>')
    assert check_weight.main(site) == 1
    assert "index.html loads searchindex.js" in capsys.readouterr().out
