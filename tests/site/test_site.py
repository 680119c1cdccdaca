"""What the site does to generated pages."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import warnings
import xml.etree.ElementTree as ET
from collections.abc import Callable
from pathlib import Path

import benchmark_cards
import benchmark_index
import findings
import gallery_pages
import one_page
import own_exporter
import pytest
from docutils import nodes
from matplotlib import pyplot
from sphinx import addnodes
from sphinx.application import Sphinx

from exportlab import show
from exportlab.measure import benchmark, figures
from exportlab.measure.timing import Timings

ROOT = Path(__file__).parents[2]
TEXTS = [*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "tutorials").glob("*.md")]
FINDING = {"first": "a_b isn't *slow*", "others": ["by 2x"], "origin": "Full run", "titles": ["A"]}
TABLE = {"title": "A run, <b>", "html": "<table></table>", "pivot": ""}
FINDING["tables"] = [TABLE]
PAGE = "Which is faster?\n================\n\nTwo are timed.\n\nMore\n----\n\nWords.\n"
LIMITS = "\nWhat this does not show\n-----------------------\n\nA third.\n"
CODE = "\n.. code-block:: Python\n\n    a = 1\n    b = 2\n\n.. code-block:: none\n\n    printed\n"
PATHS = (ROOT / "docs/choosing.md").read_text(encoding="utf-8").partition("## Three learning paths")[2]
REGION = 'tabindex="0" role="region" aria-label='
WORDS_A_MINUTE, LINES_A_MINUTE = 150, 10
PLACES = {"304_cpp_with_aotinductor", "305_the_edge_with_executorch", "306_in_the_browser", "310_text_in_text_out"}  # besides lesson 308


@pytest.fixture
def read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[], nodes.document]:
    """The page of a benchmark named `a`, read by Sphinx with no more than what puts its finding there."""
    monkeypatch.setattr(findings, "write_findings", lambda app: None)
    folder = tmp_path / "generated/benchmarks"
    (folder / "images").mkdir(parents=True)
    (folder / "a.rst").write_text(PAGE)
    (tmp_path / "index.rst").write_text(PAGE)

    def document() -> nodes.document:
        settings = {"extensions": ["findings"]}
        app = Sphinx(tmp_path, None, tmp_path / "out", tmp_path / "trees", "dummy", settings, status=None, warning=None)
        app.build()
        return app.env.get_doctree("generated/benchmarks/a")

    return document


def test_a_benchmark_begins_with_its_finding(read: Callable[[], nodes.document], tmp_path: Path) -> None:
    written = tmp_path / "generated/benchmarks/images/finding_a.json"
    written.with_suffix(".svg").write_text("<svg/>")
    written.write_text(json.dumps(FINDING))
    (tmp_path / "generated/benchmarks/a.rst").write_text(PAGE + LIMITS)
    title, finding, picture, origin, introduction, limits, further, tables, *rest = next(read().findall(nodes.section)).children
    assert [title.astext(), finding.astext(), origin.astext(), introduction.astext()] == [
        *("Which is faster?", "a_b isn’t *slow*.", "Full run. ", "Two are timed."),
    ]
    assert finding["classes"] == ["finding"]
    assert picture.astext() == f'<div class="finding-figure" {REGION}"A"><svg/></div>'
    assert limits.astext() == "What this does not show\n\nA third."
    assert further.astext() == "Further findings\n\nBy 2x."
    assert tables[1].astext() == f'<div class="finding-table" {REGION}"A run, &lt;b&gt;"><table></table></div>'
    assert [node.astext() for node in rest] == ["More\n\nWords."]
    written.write_text(json.dumps({**FINDING, "first": "Another"}))
    assert "Another." in read().astext(), "the page is read again when its finding is another"


def test_what_follows_the_introduction_of_a_benchmark_is_folded(read: Callable[[], nodes.document], tmp_path: Path) -> None:
    folder = tmp_path / "generated/benchmarks"
    (folder / "a.rst").write_text(PAGE + CODE)
    written = folder / "images/finding_a.json"
    written.with_suffix(".svg").write_text("<svg/>")
    written.write_text(json.dumps(FINDING))
    *_, head, measured, end = next(read().findall(nodes.section)).children
    assert head.astext() == '<details class="finding-code"><summary>How it is measured: text and 2 lines of code</summary>'
    assert (measured.astext(), end.astext()) == ("More\n\nWords.\n\na = 1\nb = 2\n\nprinted", "</details>")


def test_the_index_of_benchmarks_has_a_card_for_each_with_its_finding_and_a_chart(tmp_path: Path) -> None:
    folder = tmp_path / "generated/benchmarks"
    (folder / "images").mkdir(parents=True)
    for name in ("index", "memory", "latency", "sg_execution_times"):
        (folder / f"{name}.rst").write_text(f":orphan:\n\n{PAGE}")
    (tmp_path / "index.rst").write_text(PAGE)
    written = folder / "images/finding_memory.json"
    written.write_text(json.dumps({**FINDING, "first": "a < b by 2.5 times in 483 cases, v1.2"}))
    app = Sphinx(
        tmp_path, None, tmp_path / "out", tmp_path / "trees", "dummy", {"extensions": ["benchmark_index"]}, status=None, warning=None
    )
    app.build()
    section = next(app.env.get_doctree("generated/benchmarks/index").findall(nodes.section))
    title, opening, making, running, trusting = section.children
    assert [title.astext(), opening.astext()] == ["Which is faster?", "Two are timed."]
    assert [group[0].astext() for group in (making, running, trusting)] == list(benchmark_index.GROUPS)
    (first,), (second,) = (ET.fromstring(group[1].astext()) for group in (making, running))
    assert [card[0].attrib["href"] for card in (first, second)] == ["memory.html", "latency.html"]
    assert [number.text for number in first.iter("b")] == ["2.5", "483"]
    peaks = benchmark.stored("memory")["1.02 GB"]
    assert [text.text for text in first.iter("text")] == [
        "peak for 1.02 GB of weights, MB",
        *(
            text
            for name in ("dynamo", "to_onnx", "to_onnx, one file")
            for text in (figures.shown(name), f"{peaks.median(name) / 1e6:,.0f} MB")
        ),
    ]
    assert max(float(bar.attrib["width"]) for bar in first.iter("rect")) == float(list(first.iter("rect"))[-1].attrib["width"])
    assert "".join(second.itertext()) == "Which is faster?", "nothing was found yet"


def test_each_benchmark_is_in_a_group_or_a_part_of_another_page() -> None:
    scripts = {path.stem for path in (ROOT / "benchmarks").glob("*.py")}
    listed = {name for names in benchmark_index.GROUPS.values() for name in names}
    assert scripts - listed - findings.HIDDEN == set()
    assert not listed & findings.HIDDEN


@pytest.mark.parametrize("name", sorted(benchmark_cards.CHARTS))
def test_each_chart_has_up_to_five_bars_whose_names_and_numbers_fit(name: str) -> None:
    run = benchmark.stored(name)
    bars = benchmark_cards.CHARTS[name].values(run)
    assert 3 <= len(bars) <= 5
    assert max(map(len, map(figures.shown, bars))) <= 17
    drawn = ET.fromstring(benchmark_cards.chart_of(name))
    assert len(list(drawn.iter("rect"))) == len(bars)


def test_a_page_that_compares_says_whose_exporter_to_onnx_is(read: Callable[[], nodes.document], tmp_path: Path) -> None:
    written = tmp_path / "generated/benchmarks/images/finding_a.json"
    written.with_suffix(".svg").write_text("<svg/>")
    written.write_text(json.dumps({**FINDING, "others": ["to_onnx: 2x"]}))
    (line,) = lines_on_fairness(read())
    assert line.astext() == "We maintain to_onnx: how we keep the comparison fair"
    assert line.parent.index(line) == 4, "right behind the origin"
    written.write_text(json.dumps(FINDING))
    assert lines_on_fairness(read()) == []


def lines_on_fairness(document: nodes.document) -> list[nodes.paragraph]:
    return [line for line in document.findall(nodes.paragraph) if "own-exporter" in line["classes"]]


def test_the_page_on_measurement_says_how_the_comparison_is_kept_fair() -> None:
    script = (ROOT / "benchmarks/how_we_measure.py").read_text(encoding="utf-8")
    _, title, said = script.partition(f"# .. _{own_exporter.LABEL}:")[2].split("\n#\n", 2)
    assert title.splitlines()[0].removeprefix("# ") in findings.SHOWN, "it is not folded"
    assert "we fixed ``to_onnx`` where this site showed it to be wrong or slow" in said


def test_the_downloads_stay_at_the_end_of_the_page(read: Callable[[], nodes.document], tmp_path: Path) -> None:
    folder = tmp_path / "generated/benchmarks"
    (folder / "a.rst").write_text(PAGE + LIMITS + "\n.. only:: html\n\n   Download it.\n")
    (folder / "images/finding_a.svg").write_text("<svg/>")
    (folder / "images/finding_a.json").write_text(json.dumps(FINDING))
    assert next(read().findall(nodes.section)).children[-1].astext() == "Download it."


def test_the_findings_of_other_scripts_are_sections_of_a_page(
    read: Callable[[], nodes.document], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(findings, "PARTS", {"a": {"b": findings.Part("By model", figure=1, line=1), "gone": findings.Part("Nothing")}})
    images = tmp_path / "generated/benchmarks/images"
    for name, drawn in (("a", "<svg/>"), ("b", "<svg/>"), ("b-2", "<svg>2</svg>")):
        (images / f"finding_{name}.svg").write_text(drawn)
        (images / f"finding_{name}.json").write_text(
            json.dumps({**FINDING, "titles": ["A", "B"], "others": ["third is 3x", "torch.b is 2x"]})
        )
    part = next(section for section in read().findall(nodes.section) if section[0].astext() == "By model")
    assert [node.astext() for node in part.children] == [
        "By model",
        "Third is 3x.",
        f'<div class="finding-figure" {REGION}"B"><svg>2</svg></div>',
        "Full run. ",
        "torch.b is 2x.",
        "<details><summary>A run, &lt;b&gt;</summary><table></table></details>",
    ]


def test_the_origin_has_versions_commit_values_and_the_command(
    read: Callable[[], nodes.document], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    images, data = tmp_path / "generated/benchmarks/images", tmp_path / "benchmarks/data"
    data.mkdir(parents=True)
    benchmark.save(data / "a.json", {"m": Timings((), ({"x": 1.5},))}, {"torch_version": "2.13.0", "measured": '{"": {"commit": "abc"}}'})
    (tmp_path / "benchmarks/a.py").write_text("")
    (images / "finding_a.svg").write_text("<svg/>")
    (images / "finding_a.json").write_text(json.dumps(FINDING))
    monkeypatch.setattr(findings, "ROOT", tmp_path)
    findings.write_values("a", images)
    assert (images / "a.csv").read_text() == "what,name,unit,round,value\nm,x,second,1,1.5\n"
    origin = next(line for line in read().findall(nodes.paragraph) if "origin" in line["classes"])
    assert origin.astext() == "Full run; torch 2.13.0; commit abc. Values: JSON, CSV. Run a.py: make bench BENCH=a"
    assert [link["reftarget"] for link in origin.findall(addnodes.download_reference)] == [
        "/benchmarks/data/a.json",
        "/generated/benchmarks/images/a.csv",
        "/benchmarks/a.py",
    ]


def test_the_pages_that_compare_exporters_say_whose_to_onnx_is() -> None:
    assert [
        page for page in ("support", "choosing") if "{own-exporter}" not in (ROOT / f"docs/{page}.md").read_text(encoding="utf-8")
    ] == []


def test_a_page_without_a_finding_stays_as_it_is(read: Callable[[], nodes.document]) -> None:
    assert [node.astext() for node in next(read().findall(nodes.section))][:2] == ["Which is faster?", "Two are timed."]


def test_a_script_runs_as_far_as_its_finding(tmp_path: Path) -> None:
    script, picture = tmp_path / "a.py", tmp_path / "images/finding_a.svg"
    script.write_text(
        "import sys; from pathlib import Path; Path(sys.argv[2]).write_text('drawn'); sys.exit(); Path(sys.argv[2]).write_text('measured')"
    )
    findings.write_finding(script, picture)
    assert picture.read_text() == "drawn"


@pytest.mark.parametrize(("code", "why"), [("1 / 0", "division by zero"), ("", "never calls page.open")])
def test_a_script_that_writes_no_finding_fails_the_build(code: str, why: str, tmp_path: Path) -> None:
    (tmp_path / "a.py").write_text(code)
    with pytest.raises(RuntimeError, match=rf"a\.py writes no finding: .*{why}"):
        findings.write_finding(tmp_path / "a.py", tmp_path / "a.svg")


def test_the_gallery_executes_recipes_and_no_benchmarks() -> None:
    import conf

    pattern = re.compile(conf.sphinx_gallery_conf["filename_pattern"])
    assert pattern.search(str(ROOT / "gallery/torch_onnx/cond.py"))
    assert not pattern.search(str(ROOT / "benchmarks/memory.py"))
    for page, executed in (("gallery/torch_onnx/cond.py", True), ("benchmarks/memory.py", False)):
        alone = one_page.settings(Path(page))["sphinx_gallery_conf"]["filename_pattern"]
        assert bool(re.search(alone, str(one_page.DRAFTS / Path(page).name))) is executed


@pytest.mark.parametrize("page", ["content/errors/mask_of_bytes.py", "docs/api.md", "tutorials/101_module_to_file.md"])
def test_a_page_alone_loads_no_extension_that_needs_the_gallery(page: str) -> None:
    loaded = [ROOT / f"docs/_ext/{name}.py" for name in one_page.settings(Path(page))["extensions"]]
    assert not [path.name for path in loaded if path.exists() and "config.sphinx_gallery_conf" in path.read_text()]
    assert "redirects" not in [path.stem for path in loaded]


def test_a_finding_is_written_for_the_site_and_shown_to_everybody_else(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def draw() -> None:
        (axes,) = figures.panels("It is fast")
        axes.set_title("by 2x")

    picture, table = tmp_path / "a.svg", show.table([{"ms": "1"}], "A run")
    with pytest.raises(SystemExit) as ended:
        benchmark.Page("a", quick=False, finding=picture).begin("Full run", ("fast", "by 2x"), draw, [table])
    assert not ended.value.code
    assert capsys.readouterr().out == ""
    assert pyplot.get_fignums() == []
    words = json.loads(picture.with_suffix(".json").read_text())
    assert words.pop("tables") == [{"title": "A run", "html": table._repr_html_(), "pivot": ""}]
    assert words == {"first": "fast", "others": ["by 2x"], "origin": "Full run", "titles": ["It is fast, by 2x"], "badge": ""}
    assert 'aria-label="It is fast, by 2x"' in picture.read_text()
    assert {path.name for path in tmp_path.iterdir()} == {"a.json", "a.svg"}
    benchmark.Page("a", quick=True).begin("Full run", ("fast", "by 2x"), draw, [table])
    assert capsys.readouterr().out == "fast.\n\n- by 2x\n\nFull run.\n\nA run\nms\n1\n"
    assert len(pyplot.get_fignums()) == 1
    pyplot.close("all")


def test_importing_the_settings_does_nothing() -> None:
    program = "import sys; sys.argv = ['']; before = set(sys.modules); import conf; print(*set(sys.modules) - before)"
    found = subprocess.run([sys.executable, "-c", program], cwd=ROOT, capture_output=True, text=True, check=True).stdout.split()
    assert not {"torch", "exportlab", "sphinx", "matplotlib"}.intersection(found)
    assert not any(name in found for name in ("gallery_pages", "known_errors", "support_matrix"))


def test_a_page_is_stale_when_what_it_reads_changed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    read = ["first"]
    script, page = tmp_path / "a.py", tmp_path / "pages/a.py"
    checksum = page.with_name("a.py.md5")
    monkeypatch.setattr(gallery_pages, "made_of", lambda *_: read[0])

    def run() -> None:
        gallery_pages.forget_if_stale(page, script)
        checksum.write_text("as sphinx-gallery does when a page has run")

    run()
    gallery_pages.forget_if_stale(page, script)
    assert checksum.exists(), "nothing changed"
    read[0] = "second"
    gallery_pages.forget_if_stale(page, script)
    assert not checksum.exists()
    gallery_pages.forget_if_stale(page, script)
    run()
    gallery_pages.forget_if_stale(page, script)
    assert checksum.exists()


@pytest.mark.parametrize("text", TEXTS, ids=lambda path: path.name)
def test_no_page_says_that_all_of_it_was_run_when_the_site_was_built(text: Path) -> None:
    words = " ".join(text.read_text(encoding="utf-8").split())
    assert not re.search(
        r"(?i)\b(everything|whatever|all|each)\b[^.]{0,60}\b(run|executed)\b( when (this|the) site|, and everything)", words
    )


def test_the_landing_page_says_what_is_run_and_what_is_stored() -> None:
    sentences = re.split(r"(?<=\.)\s|<br/>", (ROOT / "index.md").read_text(encoding="utf-8"))
    run, lessons, stored = (
        next(s for s in sentences if said in s) for said in ("were run when this site was built", "Lessons are", "are stored, with")
    )
    assert 'nb_execution_mode = "off"' in (ROOT / "conf.py").read_text(encoding="utf-8"), "lessons are not run by the build"
    assert re.findall(r"(?i)recipes|error pages|benchmarks|lessons|matrix", run) == ["Recipes", "error pages"]
    assert "compare" in " ".join(lessons.split())
    assert re.findall(r"matrix|full benchmark runs", " ".join(stored.split())) == ["matrix", "full benchmark runs"]


def linked(text: Path) -> list[str]:
    """The pages that a text links to, by their paths in the repository."""
    targets = re.findall(r"\{doc\}`(?:[^`<]*<)?([^`>]+)>?`", text.read_text(encoding="utf-8"))
    pages = (ROOT / target[1:] if target.startswith("/") else text.parent / target for target in targets)
    return [os.path.relpath(page, ROOT) for page in pages]


def source_of(page: str) -> str:
    """What a page is made of: a known error, a recipe or a benchmark, or the page itself."""
    return re.sub("^errors/", "content/errors/", page.removeprefix("generated/"))


@pytest.mark.parametrize("text", TEXTS, ids=lambda path: path.name)
def test_every_page_that_a_text_links_to_has_a_source(text: Path) -> None:
    sources = {page: source_of(page) for page in linked(text) if not page.endswith("/index")}
    assert [page for page, source in sources.items() if not any((ROOT / f"{source}{end}").exists() for end in (".md", ".py"))] == []


def test_the_paths_say_the_minutes_that_the_lessons_say() -> None:
    said = re.findall(r"</tutorials/(\w+)>`,\s(\d+) minutes", PATHS)
    assert said
    for lesson, minutes in said:
        assert f"**Time** {minutes} minutes" in " ".join((ROOT / f"tutorials/{lesson}.md").read_text(encoding="utf-8").split()), lesson


def test_the_index_of_lessons_has_each_with_its_title_and_minutes() -> None:
    index = (ROOT / "tutorials/index.md").read_text(encoding="utf-8")
    said = re.findall(r"::::\{grid-item-card\} (.+)\n:link: (\w+)\n.*\n.*\n.*\n\*\*(\d+)\*\* · (\d+) minutes", index)
    assert sorted(said, key=lambda row: row[1]) == [card(path) for path in sorted((ROOT / "tutorials").glob("[0-9]*.md"))]


@pytest.mark.parametrize("page", ["tutorials/index.md", "CONTRIBUTING.md"])
def test_a_page_states_the_rule_of_the_minutes(page: str) -> None:
    text = " ".join((ROOT / page).read_text(encoding="utf-8").split())
    assert re.search(rf"\b{WORDS_A_MINUTE} words\b[^.]*\b{LINES_A_MINUTE} lines\b", text)


@pytest.mark.parametrize("lesson", sorted((ROOT / "tutorials").glob("[0-9]*.md")), ids=lambda path: path.stem)
def test_a_lesson_can_be_read_in_its_minutes(lesson: Path) -> None:
    minutes = int(card(lesson)[-1])
    assert minutes % 5 == 0
    assert abs(minutes - minutes_to_read(lesson.read_text(encoding="utf-8"))) <= 5


def minutes_to_read(text: str) -> float:
    """The rule of tutorials/index.md: prose and code up to the exercises."""
    parts = re.split(r"^```.*\n", text.split("---", 2)[2].partition("## Exercises")[0], flags=re.MULTILINE)  # prose, code, prose
    return len(" ".join(parts[::2]).split()) / WORDS_A_MINUTE + "".join(parts[1::2]).count("\n") / LINES_A_MINUTE


@pytest.mark.parametrize(("path", "alternatives"), [("transformer", 4), ("understand", 0)])
def test_the_front_page_says_how_long_a_path_is(path: str, alternatives: int) -> None:
    """Its lessons, of the places to run a model only the first."""
    front = (ROOT / "index.md").read_text(encoding="utf-8")
    said = re.search(rf":link: path-{path}\n(?:.*\n)*?About (\w+) hours of lessons", front)[1]
    lessons = re.findall(r"</tutorials/(\w+)>`,\s(\d+) minutes", PATHS.split(f"(path-{path})=")[1].split("\n### ", 2)[1])
    elsewhere = [int(minutes) for name, minutes in lessons if name in PLACES]
    hours = (sum(int(minutes) for _, minutes in lessons) - sum(elsewhere)) / 60
    assert len(elsewhere) == alternatives
    assert abs(["none", "one", "two", "three", "four", "five"].index(said) - hours) <= 0.5


def card(lesson: Path) -> tuple[str, ...]:
    text = lesson.read_text(encoding="utf-8")
    number, title = re.search(r"^# (\d+) · (.+)$", text, re.MULTILINE).groups()
    return title, lesson.stem, number, re.search(r"\*\*Time\*\*\s(\d+) minutes", text)[1]


def test_what_a_benchmark_hides_is_shown_by_the_next_page() -> None:
    with warnings.catch_warnings():
        gallery_pages.fresh_page({}, "benchmarks/a.py")
        before = list(warnings.filters)
        warnings.simplefilter("ignore")
        gallery_pages.fresh_page({}, "gallery/b.py")
        assert list(warnings.filters) == before
        gallery_pages._filters.close()
