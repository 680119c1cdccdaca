"""The demos in pages: what is stored for them is what eager and the files answered. tools/check_demos.py uses them in a browser."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import numpy
import page_demos
import pytest
import torch
from page_demos import branches, sentence

from exportlab import to_onnx

ROOT = Path(__file__).parents[2]
STORED = {"letters": "ab", "answers": {"ab": "ba"}, "layers": 2, "heads": 1, "head": 1, "length": 1}


class Gate(torch.nn.Module):
    """A model with a branch for each sign of the sum."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return x, float32 of (1, 4), by the one or by the other."""
        return x.relu() if x.sum() > 0 else x.tanh()


@pytest.fixture(scope="module")
def gate() -> Any:
    return to_onnx(Gate().eval(), (branches.row(1.0),)).model


@pytest.fixture(scope="module")
def writer() -> sentence.Writer:
    torch.manual_seed(0)
    return sentence.Writer(5).eval()


def test_each_demo_has_a_page_and_a_template() -> None:
    for page, name in page_demos.DEMOS.items():
        assert [path for folder in ("gallery", "tutorials") for path in (ROOT / folder).rglob(f"{page}.*")]
        assert (page_demos.HERE / f"templates/{name}.html").is_file()
        assert (ROOT / f"docs/_static/demo_{name}.js").is_file()


def test_a_file_says_which_branch_it_took(gate: Any) -> None:
    file, operators = branches.expose_condition(gate)
    assert [names[-1] for names in operators] == ["Relu", "Tanh"]
    answers = branches.run_at_values(file)
    for value, answer in zip(branches.VALUES, answers, strict=True):
        assert answer["branch"] == (0 if value > 0 else 1)
        assert numpy.allclose(answer["numbers"], Gate()(branches.row(value)), atol=1e-4)


def test_files_that_are_not_what_the_page_says_are_refused(gate: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(branches, "models", lambda: (Gate(), {"to_onnx": gate, "torchscript": gate}))
    with pytest.raises(ValueError, match=r"is wrong about torch.onnx.export\(dynamo=False\)"):
        branches.build_demo()


def test_the_cache_saves_reading_and_changes_nothing(writer: sentence.Writer) -> None:
    ids = torch.tensor([[0, 3, 1, 4, 2]])
    whole, _ = writer(ids, sentence.empty(1))
    first, cache = writer(ids[:, :3], sentence.empty(1))
    second, _ = writer(ids[:, 3:], cache)
    assert torch.allclose(torch.cat([first, second], 1), whole, atol=1e-5)


def test_a_model_that_wavers_is_refused(writer: sentence.Writer) -> None:
    with torch.no_grad():
        writer.scores.weight.zero_()
        writer.scores.bias.zero_()
    with pytest.raises(ValueError, match="no clear next character after 'ab'"):
        sentence.complete_text(writer, "abcde", "ab")


def test_a_page_holds_the_stored_answers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(page_demos, "STORED", tmp_path)
    stored = {"letters": "ab", "answers": {"a <": "b</script>"}, "layers": 2, "heads": 1, "head": 1, "length": 1}
    (tmp_path / "sentence.json").write_text(json.dumps(stored))
    page = page_demos.render_demo("sentence")
    assert "b&lt;/script&gt;" in page
    assert page.count("</script>") == 1, "an answer does not end the element that holds it"


@pytest.mark.parametrize(
    ("published", "shown"), [("false", "was built without ONNX Runtime"), ("true", "could not be started in this browser")]
)
def test_a_page_without_the_runtime_shows_what_is_stored_in_plain_words(
    published: str, shown: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if shutil.which("chromium") is None:
        pytest.skip("needs Chromium")
    monkeypatch.syspath_prepend(ROOT / "tutorials")
    from browser.chromium import opened
    from browser.hosting import served

    monkeypatch.setattr(page_demos, "STORED", tmp_path)
    (tmp_path / "sentence.json").write_text(json.dumps(STORED))
    (tmp_path / "runtime.js").write_text(f"window.runtimePublished = {published};")
    scripts = ("runtime.js", "runs_here.js", "demo_sentence.js")
    for name in scripts[1:]:
        shutil.copy(ROOT / "docs/_static" / name, tmp_path)
    tags = "".join(f'<script defer src="{name}"></script>' for name in scripts)
    (tmp_path / "index.html").write_text(f"<!doctype html>{tags}{page_demos.render_demo('sentence')}")
    with served(tmp_path) as root, opened(f"{root}index.html") as page:
        page.wait_for("document.readyState == 'complete' && document.querySelector('[data-start]') != null")
        assert ("14 MB" in page.evaluate("document.querySelector('.demo-source').textContent")) is (published == "true")
        page.evaluate("document.querySelector('[data-start]').click()")
        page.wait_for("document.getElementById('demo-sentence').dataset.stored")
        text = page.evaluate("document.querySelector('.demo-source').textContent")
        asked = page.evaluate("performance.getEntriesByType('resource').filter((entry) => entry.name.includes('/ort/')).length")
    assert shown in text
    assert "import" not in text
    assert bool(asked) is (published == "true")


def test_no_script_shows_the_message_of_an_error() -> None:
    scripts = [*(ROOT / "docs/_static").glob("*.js"), *(ROOT / "tutorials/browser").glob("*.js")]
    assert len(scripts) > 5
    assert not [script.name for script in scripts if "error.message" in script.read_text(encoding="utf-8")]
