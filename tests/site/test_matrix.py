"""The page of the support matrix: what it is made of."""

from __future__ import annotations

import json
import re
from html.parser import HTMLParser
from pathlib import Path

import outcome_colors
import pytest
import support_matrix as page
from support_matrix import links, sweeps

from exportlab import zoo
from exportlab.cases import Case
from exportlab.outcomes import Outcome
from exportlab.sweep.records import Record

ROOT = Path(__file__).parents[2]


def cases(*names: str) -> list[Case]:
    return [zoo.get(name) for name in names]


def sweep_of(*records: Record, onnxscript: str = "2") -> page.Sweep:
    return page.Sweep(records, [{"id": "e", "date": "2026-01-02 03:04:05", "onnxscript_version": onnxscript, "torch_version": "1"}])


RECORDS = (
    Record("mlp", "torch.export", "dynamic", Outcome.OK, seconds={"export": 0.2, "call": 2.0, "eager": 1.0}, nodes=7, worst=1e-7),
    Record("mlp", "to_onnx", "dynamic", Outcome.OK, seconds={"export": 0.3}),
    Record(
        "mlp",
        "dynamo",
        "dynamic",
        Outcome.WRONG,
        failed=({"check": "unseen size", "inputs": "float32[7]", "outcome": "wrong", "detail": "<b>"},),
    ),
    Record("branch_on_batch", "dynamo", "static", Outcome.OK),
    Record("branch_on_batch", "dynamo", "dynamic", Outcome.FROZEN),
    Record("branch_on_value", "dynamo", "dynamic", Outcome.CAPTURE, error="E: </script><!-- 1 < 2", where="exportlab/zoo/branches.py:30"),
    Record("branch_on_value", "to_onnx", "dynamic", Outcome.CAPTURE),
    Record("branch_on_batch", "torchscript", "dynamic", Outcome.FROZEN, said=("UserWarning: this is old", "TracerWarning: <a> branch")),
    Record("mlp", "torchscript", "dynamic", Outcome.NARROW, said=("TracerWarning: a size",)),
)


class Rows(HTMLParser):
    """The rows of all tables of a text: of each cell its classes and its text."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.rows: list[list[tuple[str, str]]] = []
        self.open: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag == "tr":
            self.rows.append([])
        if tag in ("td", "th"):
            self.rows[-1].append((dict(attrs).get("class") or "", ""))
        if tag not in ("input", "wbr", "col"):
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag, f"</{tag}> closes another tag"

    def handle_data(self, data: str) -> None:
        if self.rows and {"td", "th"} & set(self.open):
            classes, text = self.rows[-1][-1]
            self.rows[-1][-1] = classes, text + data


def test_pages_that_cells_link_to_exist() -> None:
    for target in {*links.CASE_PAGES.values(), *links.TOPIC_PAGES.values()}:
        assert links.title(target)
    assert links.CASE_PAGES.keys() - {case.name for case in zoo.cases()} == set()
    assert links.TOPIC_PAGES.keys() - {topic for case in zoo.cases() for topic in case.topics} == set()


def test_a_link_to_a_page_that_is_gone_is_an_error() -> None:
    assert links.title("generated/gallery/torch_onnx/cond") == "My model has an if on a tensor's value: how do I export it?"
    with pytest.raises(FileNotFoundError, match="torch_onnx/gone"):
        links.title("generated/gallery/torch_onnx/gone")


def test_totals_count_each_kind_by_exporter_and_mode() -> None:
    rows = [[text for _, text in row] for row in Rows(page.totals(sweep_of(*RECORDS))).rows]
    assert rows == [
        [
            "exporter", "mode", "outcomes", "wrong, silently", "frozen, silently", "wrong or frozen, but warned", "failed", "narrow",
            "refused", "ok", "of",
        ],
        ["torch.export", "dynamic", "", "", "", "", "", "", "", "1", "1"],
        ["to_onnx", "dynamic", "", "", "", "", "", "", "1", "1", "2"],
        ["dynamo", "static", "", "", "", "", "", "", "", "1", "1"],
        ["dynamo", "dynamic", "", "1", "1", "", "", "", "1", "", "3"],
        ["torchscript", "dynamic", "", "", "", "1", "", "1", "", "", "2"],
    ]  # fmt: skip


def test_a_row_of_the_totals_counts_every_case_once() -> None:
    for (exporter, mode), counter in sweeps.counts(sweep_of(*RECORDS).runs).items():
        assert counter.total() == sum((r.exporter, r.mode) == (exporter, mode) for r in RECORDS)
        assert set(counter) <= set(sweeps.kinds())


def test_every_outcome_has_a_sign_and_is_counted_once() -> None:
    counted = [outcome for kind, outcomes in sweeps.kinds().items() for outcome in outcomes if kind != sweeps.WARNED]
    assert counted == list(sweeps.OUTCOMES)
    assert len({outcome.sign for outcome in counted}) == len(counted)
    words = re.findall(r"^\| (`.*?) \|", (ROOT / "docs/outcomes.md").read_text(encoding="utf-8"), re.MULTILINE)
    assert set(counted) == set(re.findall(r"`(\w+)`", " ".join(words)))


def test_every_outcome_has_a_colour_in_the_style_sheet() -> None:
    style = (ROOT / "docs/_static/matrix.css").read_text(encoding="utf-8")
    variables = outcome_colors.style_sheet()
    assert set(re.findall(r"var\((--outcome-\w+)\)", style)) == {f"--outcome-{outcome}" for outcome in sweeps.OUTCOMES}
    assert all(f"--outcome-{outcome}: {outcome.color};" in variables for outcome in Outcome)


def test_the_sentence_is_computed() -> None:
    said = re.sub("<.*?>", "", page.totals(sweep_of(*RECORDS)).split("</p>")[0]).strip().splitlines()
    assert said == [
        "With axes that move, never wrong and never frozen without a word: torch.export (right in 1 of 1), to_onnx (right in 1 of 2), "
        "torchscript (right in 0 of 2, wrong but warned in 1). Wrong or frozen in some case, and neither an error nor a warning names the "
        "cause: dynamo (right in 0 of 3, silent in 2).",
        "to_onnx is this site’s own exporter, and was built beside these cases.",
    ]


def closed(*values: str) -> Record:
    failed = tuple({"check": "other values", "inputs": f"{name}: i64[2]", "outcome": "wrong"} for name in values)
    return Record("mlp", "dynamo", "dynamic", Outcome.WRONG, failed=failed)


@pytest.mark.parametrize(("values", "told"), [(("masks all false", "integers zero"), True), (("integers zero", "one NaN"), False)])
def test_what_is_wrong_only_where_a_mask_hides_everything_is_told(values: tuple[str, ...], told: bool) -> None:
    said = page.totals(sweep_of(closed(*values)))
    assert ("silent in 1, 1 of them only where a mask hides everything" in said) is told


def test_the_filter_for_silent_cells_leaves_those_out_that_warned() -> None:
    choices = sweeps.choices()
    assert choices["silent"][1] == ".wrong:not(.warned),.frozen:not(.warned)"
    assert choices["warned"][1] == ".wrong.warned,.frozen.warned"
    assert choices["narrow"][1] == ".narrow"
    assert choices["refused"] == ("refused: convert, capture", ".convert,.capture")
    assert choices.keys() == {"silent", *sweeps.kinds(), "not ok"}


def test_the_table_says_whose_exporter_to_onnx_is() -> None:
    made = page.table(sweep_of(*RECORDS).runs, cases("mlp"), "data.js")
    assert "<code>to_onnx</code> is this site’s own exporter" in made


def test_a_row_has_a_cell_for_every_exporter_and_mode() -> None:
    made = page.table(sweep_of(*RECORDS).runs, cases("mlp", "branch_on_batch", "two_dims"), "data.js")
    rows = {row[0][1].split()[0]: row[1:] for row in Rows(made).rows}
    assert [text for _, text in rows["mlp"]] == ["", "✓", "", "✓", "", "W", "", "N"]
    assert rows["mlp"][5][0] == "e2 dynamic wrong"
    assert rows["mlp"][7][0] == "e3 dynamic narrow"
    assert [text for _, text in rows["branch_on_batch"]] == ["", "", "", "", "✓", "F", "", "F"]
    assert rows["branch_on_batch"][7][0] == "e3 dynamic frozen warned"
    assert [text for _, text in rows["two_dims"]] == [""] * 8


def test_what_a_cell_opens() -> None:
    made = page.data(sweep_of(*RECORDS).runs, cases("mlp", "branch_on_value"))
    found = json.loads(made.removeprefix("window.matrixTexts = ").removesuffix(";\n"))
    assert found["runs"]["mlp/torch.export/dynamic"] == {"outcome": "ok", "nodes": 7, "worst": 1e-7, "export": 1.0, "call": 2.0}
    assert found["runs"]["mlp/to_onnx/dynamic"]["export"] == 1.5
    assert found["runs"]["branch_on_value/dynamo/dynamic"]["error"] == "E: </script><!-- 1 < 2"
    assert "branch_on_batch/dynamo/static" not in found["runs"], "of a case that the zoo does not have"
    assert "said" not in found["runs"]["mlp/to_onnx/dynamic"]


def test_a_cell_opens_what_was_said_and_what_of_it_names_the_cause() -> None:
    runs = sweep_of(*RECORDS).runs
    frozen = sweeps.seen(("branch_on_batch", "torchscript", "dynamic"), runs)
    assert frozen["said"] == [["UserWarning: this is old", 0], ["TracerWarning: <a> branch", 1]]
    assert frozen["warned"] is True
    narrow = sweeps.seen(("mlp", "torchscript", "dynamic"), runs)
    assert narrow["said"] == [["TracerWarning: a size", 1]]
    assert "warned" not in narrow


def test_of_the_rounds_of_a_run_the_silent_one_counts() -> None:
    one, other = (Record("mlp", "dynamo", "static", Outcome.WRONG, i, said=said) for i, said in ((1, ("TracerWarning: x",)), (2, ())))
    assert sweeps.counts(sweep_of(one, other).runs)["dynamo", "static"] == {"wrong": 1}
    assert sweeps.counts(sweep_of(one).runs)["dynamo", "static"] == {"warned": 1}


def test_a_case_is_shown_with_its_source() -> None:
    case = zoo.get("branch_on_value")
    shown = page.about(case)
    source = (ROOT / shown["file"]).read_text(encoding="utf-8").splitlines()
    assert source[shown["line"]] == "def branch_on_value() -> Declaration:", "the line is that of the decorator"
    assert re.sub("<.*?>", "", shown["source"]).startswith(source[shown["line"] - 1].split("(")[0])
    assert ["My model has an if on a tensor's value: how do I export it?", "../generated/gallery/torch_onnx/cond.html"] in shown["pages"]


def test_times_are_ratios_of_the_same_round() -> None:
    rounds = [Record("a", "dynamo", "static", Outcome.OK, i, seconds={"export": seconds}) for i, seconds in ((1, 2.0), (2, 30.0), (3, 4.0))]
    floors = [
        Record("a", "torch.export", "static", Outcome.OK, i, seconds={"export": seconds}) for i, seconds in ((2, 10.0), (3, 1.0), (1, 2.0))
    ]
    runs = sweep_of(*rounds, *floors).runs
    assert sweeps.seen(("a", "dynamo", "static"), runs)["export"] == 3.0


def test_what_changed_between_two_sweeps() -> None:
    before = sweep_of(*(Record(r.case, r.exporter, r.mode, Outcome.OK) for r in RECORDS[:5]), onnxscript="1")
    made = page.changes(before, sweep_of(*RECORDS))
    assert "Between onnxscript 1 and onnxscript 2, 2 of 5 outcomes differ." in made
    assert [[text for _, text in row] for row in Rows(made).rows[1:]] == [
        ["mlp", "dynamo", "dynamic", "ok", "wrong", "broke"],
        ["branch_on_batch", "dynamo", "dynamic", "ok", "frozen", "broke"],
    ]
    assert "no outcome differs" in page.changes(before, before)
    assert "No earlier sweep" in page.changes(page.Sweep([]), before)


def test_the_page_includes_every_part() -> None:
    text = (ROOT / "docs/support.md").read_text(encoding="utf-8")
    parts = page.parts(sweep_of(*RECORDS), page.Sweep([]), cases("mlp"))
    included = [name for name in parts if name.startswith("parts/")]
    assert re.findall(r":file: \.\./generated/(\S+)", text) == included
    for name in included:
        assert Rows(parts[name]).open == [], "every element is closed"
    loaded = re.search(r'data-texts="\.\./_static/(.*?)\?', parts["parts/matrix-table.html"]).group(1)
    assert f"static/{loaded}" in parts


def test_script_and_page_agree_on_names() -> None:
    script = (ROOT / "docs/_static/matrix.js").read_text(encoding="utf-8")
    made = "".join(page.parts(sweep_of(*RECORDS), page.Sweep([]), cases("mlp")).values())
    assert set(re.findall(r'getElementById\("(.*?)"\)', script)) <= set(re.findall(r'id="(.*?)"', made))
    fields = re.findall(r'"(\w+)"', re.search(r"FIELDS = \[(.*?)\]", script).group(1))
    assert set(fields) == set(re.findall(r'name="(\w+)"', made)) - {"exporter"}
    assert len(script.splitlines()) < 300
