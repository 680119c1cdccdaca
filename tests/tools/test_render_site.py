"""The site is rendered where something that it is made of changed, or what was written; not otherwise."""

from __future__ import annotations

import sysconfig
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
import render_site

Site = Callable[..., list[list[str]]]


@pytest.fixture
def rendered_by(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Site:
    """A repository of two files; render it with some options, and return those that the renderer was called with."""
    for name, text in {"docs/page.md": "a page", "docs/data.csv": "1", "sg_execution_times.rst": "2 s"}.items():
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text(text, encoding="utf-8")
    places = {"ROOT": ".", "SITE": "build/site", "NOTE": "build/passed/site", "GENERATED": "generated", "FETCHED": "build/web"}
    for constant, name in places.items():
        monkeypatch.setattr(render_site, constant, tmp_path / name)
    return lambda *options, status=0: run(tmp_path, options, status)


def run(root: Path, options: Sequence[str], status: int) -> list[list[str]]:
    """Render what the fixture made, by something that writes a page and ends with this status."""
    calls: list[list[str]] = []

    def write(options: Sequence[str]) -> int:
        calls.append([*options])
        for name in ("build/site/page.html", "generated/page.txt"):
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            (root / name).write_text("rendered", encoding="utf-8")
        return status

    assert render_site.main(options, write) == (status if calls else 0)
    return calls


def test_an_unchanged_site_is_not_rendered_again(rendered_by: Site, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert rendered_by("-q") == [["-q"]]
    (tmp_path / "sg_execution_times.rst").write_text("3 s", encoding="utf-8")
    assert rendered_by("-q") == []
    assert capsys.readouterr().out == "site: nothing has changed since it was rendered\n"


@pytest.mark.parametrize(
    "name", ["docs/page.md", "docs/data.csv", "docs/new.md", "build/site/page.html", "generated/page.txt", "build/web/ort.mjs"]
)
def test_a_change_of_what_is_read_or_written_renders_it_again(rendered_by: Site, tmp_path: Path, name: str) -> None:
    rendered_by()
    (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
    (tmp_path / name).write_text("something else", encoding="utf-8")
    assert rendered_by() == [[]]
    assert rendered_by() == []


def test_what_is_gone_is_rendered_again(rendered_by: Site, tmp_path: Path) -> None:
    rendered_by()
    (tmp_path / "build/site/page.html").unlink()
    assert rendered_by() == [[]]
    (tmp_path / "docs/data.csv").unlink()
    assert rendered_by() == [[]]


def test_a_site_that_failed_is_rendered_again(rendered_by: Site) -> None:
    assert rendered_by(status=1) == [[]]
    assert rendered_by() == [[]]


def test_other_options_render_it_again_and_some_always_do(rendered_by: Site) -> None:
    rendered_by()
    assert rendered_by("-W") == [["-W"]]
    assert rendered_by("-W") == []
    assert [rendered_by("-E"), rendered_by("-E")] == [[["-E"]], [["-E"]]]


def test_another_package_renders_it_again(rendered_by: Site, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sysconfig, "get_path", lambda name: str(tmp_path / "packages"))
    rendered_by()
    (tmp_path / "packages/torch-9.9.dist-info").mkdir(parents=True)
    assert rendered_by() == [[]]
    assert rendered_by() == []


def test_a_change_while_it_is_rendered_renders_it_again(rendered_by: Site, tmp_path: Path) -> None:
    page = tmp_path / "docs/new.md"
    assert render_site.main([], lambda _: page.write_text("written meanwhile", encoding="utf-8") * 0) == 0
    assert rendered_by() == [[]]


@pytest.mark.parametrize(("npm", "present", "calls"), [(True, False, 1), (False, False, 0), (True, True, 0)])
def test_the_runtime_of_browsers_is_fetched_where_it_is_missing_and_npm_is_there(
    npm: bool, present: bool, calls: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, script in (("make", f'echo "$@" >> {tmp_path}/calls'), *([("npm", "")] if npm else [])):
        program = tmp_path / name
        program.write_text(f"#!/bin/sh\n{script}\n", encoding="utf-8")
        program.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setattr(render_site, "FETCHED", tmp_path if present else tmp_path / "missing")
    render_site.fetch_runtime()
    made = tmp_path / "calls"
    assert (made.read_text(encoding="utf-8").splitlines() if made.exists() else []) == ["--no-print-directory web"] * calls
