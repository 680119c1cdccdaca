"""The check of the built site names links that lead nowhere, and what a page shows of the machine that built it."""

from __future__ import annotations

from pathlib import Path

import check_links
import pytest

HERE = check_links.ROOT


@pytest.mark.parametrize(
    ("page", "text", "found"),
    [
        ("index.html", '<p id="a">made</p><a href="#a">up</a>', ""),
        ("index.html", '<a href="#b">up</a>', "index.html: #b: no such anchor"),
        ("index.html", '<a href="gone.html">up</a>', "index.html: gone.html: no such file"),
        ("index.html", "<p>.venv/bin/exportlab doctor model.py</p>", ""),
        ("index.html", "<pre>/opt/a/.venv/lib/python3.13/site-packages/torch/x.py:3: lost</pre>", "a path of the machine"),
        ("index.html", f"<pre>{HERE}/exportlab/cases.py</pre>", f"index.html: {HERE}/exportlab/cases.py: a path of the machine"),
        ("index.html", "<pre>TracerWarning: shown on purpose</pre>", ""),
        ("generated/benchmarks/a.html", "<pre>model.py:3: TracerWarning: Converting a tensor</pre>", "a.html: model.py:3: TracerWarning"),
        ("generated/benchmarks/a.html", "<td>TracerWarning: Converting a tensor</td>", ""),
    ],
)
def test_what_is_named(page: str, text: str, found: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "index.html").write_text("<p>a page</p>")
    (tmp_path / page).parent.mkdir(parents=True, exist_ok=True)
    (tmp_path / page).write_text(text)
    assert check_links.main(tmp_path) == int(bool(found))
    assert (found or "no broken link") in capsys.readouterr().out
