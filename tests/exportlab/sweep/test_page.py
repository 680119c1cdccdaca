"""A sweep as one page: what it counts, what a cell opens, and that it loads nothing and lets nothing in."""

from __future__ import annotations

import functools
import json
import re
from pathlib import Path

import pytest
from swept import RECORDS, Rows, cases, sweep_of

from content import zoo
from exportlab.cases import Case
from exportlab.outcomes import Outcome
from exportlab.sweep import page
from exportlab.sweep.page import cells, counts
from exportlab.sweep.records import Record

ROOT = Path(__file__).parents[3]


def test_totals_count_each_kind_by_exporter_and_mode() -> None:
    rows = [[text for _, text in row] for row in Rows(page.totals(sweep_of(*RECORDS))).rows]
    assert rows == [
        [
            "exporter", "mode", "outcomes", "wrong, silently", "frozen, silently", "wrong or frozen, but warned",
            "right except where a mask hides everything", "failed", "narrow", "refused", "ok", "of",
        ],
        ["torch.export", "dynamic", "", "", "", "", "", "", "", "", "1", "1"],
        ["to_onnx", "dynamic", "", "", "", "", "", "", "", "1", "1", "2"],
        ["torch.onnx.export", "static", "", "", "", "", "", "", "", "", "1", "1"],
        ["torch.onnx.export", "dynamic", "", "1", "1", "", "", "", "", "1", "", "3"],
        ["torchscript", "dynamic", "", "", "", "1", "", "", "1", "", "", "2"],
    ]  # fmt: skip


def test_a_row_of_the_totals_counts_every_case_once() -> None:
    for (exporter, mode), counter in counts.counts(sweep_of(*RECORDS).runs).items():
        assert counter.total() == sum((r.exporter, r.mode) == (exporter, mode) for r in RECORDS)
        assert set(counter) <= set(counts.kinds())


def test_every_outcome_has_a_colour_in_the_style_sheet() -> None:
    variables = page.colors()
    assert set(re.findall(r"var\((--outcome-\w+)\)", page.style())) == {f"--outcome-{outcome}" for outcome in counts.OUTCOMES}
    assert all(f"--outcome-{outcome}: {outcome.color};" in variables for outcome in Outcome)


def test_the_sentence_is_computed() -> None:
    said = re.sub("<.*?>", "", page.totals(sweep_of(*RECORDS)).split("</p>")[0]).strip().splitlines()
    assert said == [
        "With dynamic shapes, not silently wrong or frozen in any case: torch.export (right in 1 of 1), to_onnx (right in 1 of 2), "
        "torchscript (right in 0 of 2, wrong but warned in 1). With dynamic shapes, silently wrong or frozen in some cases (no error or "
        "warning names the cause): torch.onnx.export (right in 0 of 3, silent in 2).",
        "to_onnx is Export Lab’s own exporter.",
    ]
    made = page.totals(sweep_of(*RECORDS), "mine", True)
    assert "<code>to_onnx</code> is mine’s own exporter and was developed with these cases." in made
    assert "own exporter" not in page.totals(sweep_of(RECORDS[0]))


def closed(*values: str) -> Record:
    failed = tuple({"check": "other values", "inputs": f"{name}: i64[2]", "outcome": "wrong"} for name in values)
    return Record("mlp", "dynamo", "dynamic", Outcome.WRONG, failed=failed)


@pytest.mark.parametrize(("values", "told"), [(("masks all false", "integers zero"), True), (("integers zero", "one NaN"), False)])
def test_what_is_wrong_only_where_a_mask_hides_everything_is_told(values: tuple[str, ...], told: bool) -> None:
    said = page.totals(sweep_of(closed(*values)))
    assert ("right except where a mask hides everything in 1)" in said) is told
    assert ("silent in 1)" in said) is not told
    made = page.table(sweep_of(closed(*values)).runs, cases("mlp"), "data.js")
    (cell,) = [(kind, text) for row in Rows(made).rows for kind, text in row if "wrong" in kind]
    assert cell == (("e0 dynamic wrong masked", "◐") if told else ("e0 dynamic wrong", "W"))


def test_the_filter_for_silent_cells_leaves_those_out_that_warned() -> None:
    choices = counts.choices()
    assert choices["silent"][1] == ".wrong:not(.warned):not(.masked),.frozen:not(.warned):not(.masked)"
    assert choices["warned"][1] == ".wrong.warned,.frozen.warned"
    assert choices["masked"][1] == ".wrong.masked,.frozen.masked"
    assert choices["narrow"][1] == ".narrow"
    assert choices["refused"] == ("refused: convert, capture", ".convert,.capture")
    assert choices.keys() == {"silent", *counts.kinds(), "not ok"}


def test_the_table_says_whose_exporter_to_onnx_is() -> None:
    made = page.table(sweep_of(*RECORDS).runs, cases("mlp"), "data.js")
    assert "<code>to_onnx</code> is Export Lab’s own exporter" in made


def test_a_row_has_a_cell_for_every_exporter_and_mode_that_ran() -> None:
    made = page.table(sweep_of(*RECORDS).runs, cases("mlp", "branch_on_batch", "two_dims"), "data.js")
    rows = {row[0][1].split()[0]: row[1:] for row in Rows(made).rows if row[0][0] != "family"}
    assert [text for _, text in rows["mlp"]] == ["✓", "✓", "", "W", "N"]
    assert rows["mlp"][3][0] == "e2 dynamic wrong"
    assert rows["mlp"][4][0] == "e3 dynamic narrow"
    assert [text for _, text in rows["branch_on_batch"]] == ["", "", "✓", "F", "F"]
    assert rows["branch_on_batch"][4][0] == "e3 dynamic frozen warned"
    assert [text for _, text in rows["two_dims"]] == [""] * 5
    assert re.findall(r'colspan="(\d)" class="e\d"', made) == ["1", "1", "2", "1"]
    assert re.findall(r'<col class="([^"]+)">', made) == [
        "e0 dynamic alone",
        "e1 dynamic alone",
        "e2 static",
        "e2 dynamic",
        "e3 dynamic alone",
    ]


def test_a_name_breaks_between_its_words_and_is_escaped() -> None:
    assert page.breakable("timm.unet_block") == "timm.<wbr>unet_<wbr>block"
    assert page.breakable("diffusers.AutoencoderKL") == "diffusers.<wbr>Autoencoder<wbr>KL"
    assert page.breakable("<b>_") == "&lt;b&gt;_"


def test_what_a_cell_opens() -> None:
    made = cells.data(sweep_of(*RECORDS).runs, cases("mlp", "branch_on_value"))
    found = json.loads(made.removeprefix("window.matrixTexts = ").removesuffix(";\n"))
    assert found["runs"]["mlp/torch.export/dynamic"] == {"outcome": "ok", "nodes": 7, "worst": 1e-7, "export": 1.0, "call": 2.0}
    assert found["runs"]["mlp/to_onnx/dynamic"]["export"] == 1.5
    assert found["runs"]["branch_on_value/dynamo/dynamic"]["error"] == "E: </script><!-- 1 < 2"
    assert "branch_on_batch/dynamo/static" not in found["runs"], "of a case that the zoo does not have"
    assert "said" not in found["runs"]["mlp/to_onnx/dynamic"]


def test_a_cell_opens_what_was_said_and_what_of_it_names_the_cause() -> None:
    runs = sweep_of(*RECORDS).runs
    frozen = cells.describe_run(("branch_on_batch", "torchscript", "dynamic"), runs)
    assert frozen["said"] == [["UserWarning: this is old", 0], ["TracerWarning: <a> branch", 1]]
    assert frozen["warned"] is True
    narrow = cells.describe_run(("mlp", "torchscript", "dynamic"), runs)
    assert narrow["said"] == [["TracerWarning: a size", 1]]
    assert "warned" not in narrow
    assert "was_training" not in narrow
    left = sweep_of(Record("mlp", "dynamo", "static", Outcome.OK, was_training=True)).runs
    assert cells.describe_run(("mlp", "dynamo", "static"), left)["was_training"] is True


def test_of_the_rounds_of_a_run_the_silent_one_counts() -> None:
    one, other = (Record("mlp", "dynamo", "static", Outcome.WRONG, i, said=said) for i, said in ((1, ("TracerWarning: x",)), (2, ())))
    assert counts.counts(sweep_of(one, other).runs)["dynamo", "static"] == {"wrong": 1}
    assert counts.counts(sweep_of(one).runs)["dynamo", "static"] == {"warned": 1}


def test_a_case_is_shown_with_its_source() -> None:
    case = zoo.get("branch_on_value")
    shown = cells.about(case)
    source = (ROOT / shown["file"]).read_text(encoding="utf-8").splitlines()
    assert source[shown["line"]] == "def branch_on_value() -> Declaration:", "the line is that of the decorator"
    assert re.sub("<.*?>", "", shown["source"]).startswith(source[shown["line"] - 1].split("(")[0])


def test_times_are_ratios_of_the_same_round() -> None:
    rounds = [Record("a", "dynamo", "static", Outcome.OK, i, seconds={"export": seconds}) for i, seconds in ((1, 2.0), (2, 30.0), (3, 4.0))]
    floors = [
        Record("a", "torch.export", "static", Outcome.OK, i, seconds={"export": seconds}) for i, seconds in ((2, 10.0), (3, 1.0), (1, 2.0))
    ]
    runs = sweep_of(*rounds, *floors).runs
    assert cells.describe_run(("a", "dynamo", "static"), runs)["export"] == 3.0


def test_script_and_page_agree_on_names() -> None:
    script = page.script()
    made = page.totals(sweep_of(*RECORDS)) + page.table(sweep_of(*RECORDS).runs, cases("mlp"))
    assert set(re.findall(r'getElementById\("(.*?)"\)', script)) <= set(re.findall(r'id="(.*?)"', made))
    fields = re.findall(r'"(\w+)"', re.search(r"FIELDS = \[(.*?)\]", script).group(1))
    assert set(fields) == set(re.findall(r'name="(\w+)"', made)) - {"exporter"}
    assert len(script.splitlines()) < 300


HOSTILE = "</script><evil>\"'<!-- \x1b[31m\u202e\ud800"
LOADS = r"""\b(src|action|data|poster)=|url\(|@import|href=["']?(?!#)[^"'$]"""


def hostile() -> tuple[counts.Sweep, Case]:
    check = {"check": HOSTILE, "inputs": HOSTILE, "outcome": "wrong", "detail": HOSTILE}
    case = Case("mine", lambda: None, topics=(HOSTILE,))
    case.factory.__doc__ = HOSTILE
    record = Record("mine", HOSTILE, "static", Outcome.WRONG, error=HOSTILE, where=HOSTILE, said=(HOSTILE,), failed=(check,))
    return counts.Sweep([record], [{"id": "e", "date": HOSTILE, "torch_version": HOSTILE}]), case


def test_nothing_on_the_page_is_what_somebody_else_wrote_as_markup_or_script() -> None:
    sweep, case = hostile()
    made = page.page(sweep, [case])
    assert "<evil" not in made
    assert made.count("</script>") == made.count("<script>") == 1
    assert not set("\x1b\u202e\ud800") & set(made)
    assert made.count("&lt;evil&gt;") >= 4  # exporter, topic, doc, version
    assert made.count("\\u003cevil>") == 7  # the key, error, where, said, and the check


def test_the_page_is_one_file_that_loads_nothing() -> None:
    made = page.page(sweep_of(*RECORDS), cases("mlp", "branch_on_batch", "branch_on_value"))
    assert re.findall(LOADS, made.replace("script.src = table.dataset.texts", "")) == []
    assert page.page(sweep_of(RECORDS[0]), cases("mlp")).count("<dt><span") == 1, "a word that is met is explained, and no other"


ON_A_VALUE = "GuardOnDataDependentSymNode: Could not guard on data-dependent expression Eq(u0, 1) (unhinted: Eq(u0, 1))."


def test_an_error_that_is_known_is_named_by_its_page_and_linked_where_the_site_has_an_address() -> None:
    record = Record("mine", "dynamo", "static", Outcome.CAPTURE, error=ON_A_VALUE)
    told, address = cells.find_known_error(record, lambda page: "")
    assert (told, address) == ("A known error, docs page errors/branch_on_value: cause and workarounds", "")
    assert cells.find_known_error(record, "https://lab.example/{}".format) == (
        "A known error: cause and workarounds",
        "https://lab.example/generated/errors/branch_on_value.html",
    )


def test_a_case_whose_factory_is_no_function_has_no_source() -> None:
    shown = cells.about(Case("mine", functools.partial(int, 3)))
    assert (shown["source"], shown["line"]) == ("", 1)


def test_a_sweep_of_nothing_is_a_page() -> None:
    assert "0 cases, 0 runs" in page.page(counts.Sweep([]), [])
