"""The check of access names what axe-core finds, in both themes and at both widths, and says what it needs."""

from __future__ import annotations

import shutil
import sys
from collections import Counter
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
GOOD = '<!doctype html><html lang="en"><title>A page</title><main id="main-content"><h1>A page</h1><img src="a.png" alt="a curve"></main>'


@pytest.fixture
def check_access(monkeypatch: pytest.MonkeyPatch) -> object:
    monkeypatch.syspath_prepend(ROOT / "tutorials")
    monkeypatch.delitem(sys.modules, "check_access", raising=False)
    import check_access

    monkeypatch.setattr(check_access, "PAGES", ("index.html",))
    monkeypatch.setattr(check_access, "PREPARED", {})
    return check_access


@pytest.fixture
def needs_axe(check_access: object) -> None:
    if shutil.which("chromium") is None or not check_access.AXE.is_file():
        pytest.skip("needs Chromium and axe-core (make web)")


def test_it_says_what_it_needs(
    check_access: object, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "index.html").write_text(GOOD)
    monkeypatch.setattr(check_access, "AXE", tmp_path / "axe.min.js")
    assert check_access.main(tmp_path) == 0
    assert "left out: access is checked by axe-core (make web" in capsys.readouterr().out
    assert check_access.main(tmp_path / "nowhere") == 2


def test_a_page_that_is_gone_is_named(
    check_access: object, needs_axe: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "index.html").write_text(GOOD)
    monkeypatch.setattr(check_access, "PAGES", ("index.html", "gone.html?q=a"))
    assert check_access.main(tmp_path) == 1
    assert "not in the site: gone.html?q=a" in capsys.readouterr().out


def test_violations_are_named_in_each_view(
    check_access: object, needs_axe: None, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "index.html").write_text(GOOD)
    assert check_access.main(tmp_path) == 0
    bad = GOOD.replace(' alt="a curve"', "") + '<p style="color: #aaa; background: #fff">pale</p>'
    (tmp_path / "index.html").write_text(bad)
    assert check_access.main(tmp_path) == 1
    lines = capsys.readouterr().out.splitlines()[1:-1]
    rules = Counter(line.split(": ")[1] for line in lines)
    assert rules == {"image-alt": 4, "color-contrast": 4}, lines


def test_text_in_the_colour_of_its_ground_is_named(
    check_access: object, needs_axe: None, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    invisible = '<div style="background: #d5d5d5; color: #d5d5d5">to_onnx, ok</div>'
    (tmp_path / "index.html").write_text(GOOD + invisible)
    assert check_access.main(tmp_path) == 1
    lines = capsys.readouterr().out.splitlines()[:-1]
    assert Counter(line.split(": ")[1] for line in lines) == {"color-contrast": 4}, lines
