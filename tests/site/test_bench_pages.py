"""`make bench`: every benchmark leaves figures and words, one that fails does not stop the others, and Ctrl-C keeps what is done."""

from __future__ import annotations

import subprocess
from pathlib import Path

import bench_pages
import pytest

DRAWS = """
from matplotlib import pyplot
pyplot.plot([1, 2]); pyplot.figure(); pyplot.plot([2, 1])
print("found <this>")
"""


@pytest.fixture
def scripts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Two benchmarks, one of which fails; each run in a process that is told of them."""
    folder = tmp_path / "benchmarks"
    folder.mkdir()
    (folder / "draws.py").write_text(DRAWS)
    (folder / "fails.py").write_text("raise ValueError('no such model')")
    monkeypatch.setattr(bench_pages, "SCRIPTS", folder)
    real = subprocess.run

    def told(command: list[str], **options: object) -> object:
        code = f"import bench_pages, pathlib, sys; bench_pages.SCRIPTS = pathlib.Path({str(folder)!r}); sys.exit(bench_pages.main())"
        environment = {**options.pop("env"), "PYTHONPATH": f"{bench_pages.ROOT}:{bench_pages.ROOT / 'tools'}"}  # type: ignore[dict-item]
        return real([command[0], "-c", code, *command[2:]], env=environment, **options)  # type: ignore[call-overload]

    monkeypatch.setattr("subprocess.run", told)
    return tmp_path / "bench"


def run(monkeypatch: pytest.MonkeyPatch, folder: Path, *names: str) -> int:
    monkeypatch.setattr("sys.argv", ["bench_pages.py", *names, "-o", str(folder)])
    return bench_pages.main()


def test_figures_words_and_a_failure_are_on_the_page(
    scripts: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(monkeypatch, scripts) == 1
    said = capsys.readouterr()
    assert "1 of 2: draws, which may take some minutes" in said.out
    assert "fails failed" in said.err
    assert {path.name for path in scripts.glob("draws-*")} == {"draws-1.png", "draws-1.svg", "draws-2.png", "draws-2.svg"}
    page = (scripts / "index.html").read_text()
    assert page.count("<img") == 2
    assert "found &lt;this&gt;" in page
    assert "ValueError: no such model" in page
    assert run(monkeypatch, scripts, "draws") == 0
    assert "draws, which took" in capsys.readouterr().out
    assert "no such model" in (scripts / "index.html").read_text(), "what ran before stays on the page"


def test_interrupted_it_keeps_what_is_done(scripts: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    real = bench_pages.run_one

    def interrupted(name: str, kind: str, folder: Path) -> bench_pages.Ran:
        if name == "fails":
            raise KeyboardInterrupt
        return real(name, kind, folder)

    monkeypatch.setattr(bench_pages, "run_one", interrupted)
    assert run(monkeypatch, scripts) == 130
    assert "interrupted in fails; what is done is on" in capsys.readouterr().out
    assert list(bench_pages.before(scripts)) == ["draws"]


def test_an_unknown_name_lists_those_that_there_are(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        run(monkeypatch, Path("nowhere"), "nothing")
    assert "no benchmark nothing: there are " in capsys.readouterr().err
