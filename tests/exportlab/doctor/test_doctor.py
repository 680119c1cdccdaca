"""The doctor names defect, line and a way past it; what misbehaves gets a verdict, what is healthy no alarm."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import doctor_models
import pytest
import torch
import torch.nn.functional as F
from torch import nn

import exportlab
from exportlab import cli, doctor
from exportlab.cases import Sample
from exportlab.doctor import Diagnosis, Options, examined, trial
from exportlab.doctor.events import Trial
from exportlab.doctor.finding import Finding
from exportlab.doctor.run import Examination
from exportlab.doctor.subject import patient_of
from exportlab.eager import called_once
from exportlab.exporters import from_file, onnx_artifact
from exportlab.exporters.session import session
from exportlab.infer_dynamic_shapes import dynamic_shapes_of, make_intermediate_samples, sizes_of
from exportlab.patches import as_containers
from exportlab.verification.verify import verify

MODELS = Path(doctor_models.__file__)
DEFECTS = {  # stage, what the defect says, what the fix says, the export that is right
    "branch": ("silent", "only batch > 4 is exported", "torch.cond", "to_onnx"),
    "twice": ("silent", "x and y are the same tensor", "y.clone()", "to_onnx"),
    "state": ("silent", "changes its state in every call", 'mutations="outputs"', 'to_onnx, mutations="outputs"'),
    "value": ("capture", "data-dependent expression", "torch.cond", "to_onnx"),
    "check": ("capture", "data-dependent expression", "skip this check during an export", "to_onnx"),
    "diagonal": ("decomposition", "entirely functional graph", "instead of writing to a view", "to_onnx"),
    "select": ("translation", "masked_select", "", "to_onnx"),
    "chunk": ("optimiser", "NoneType", "", "to_onnx"),
    "save": ("saving", "namedtuple", "tuple", "dynamo"),
    "kernel": ("load", "Could not find an implementation for Erf", "float()", "to_onnx"),
    "lstm": ("run", "LSTM", "use to_onnx", "to_onnx"),
}


LINES = {
    line.rpartition("# defect: ")[2]: f"{MODELS.name}:{number}"
    for number, line in enumerate(MODELS.read_text().splitlines(), 1)
    if "# defect: " in line
}


@pytest.fixture(autouse=True)
def one_thread() -> Iterator[None]:
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


@cache
def diagnosis(name: str, exporters: tuple[str, ...] = ("torch.export", "to_onnx", "dynamo")) -> Diagnosis:
    module, samples = getattr(doctor_models, name)()
    return doctor(module, *samples, exporters=exporters, seconds=600)


@pytest.mark.parametrize("name", DEFECTS)
def test_it_names_the_defect_the_line_and_a_way_past_it(name: str) -> None:
    stage, defect, fix, best = DEFECTS[name]
    found = diagnosis(name)
    finding = next(f for f in found.findings if f.stage == stage)
    assert defect in finding.defect
    assert finding.place is not None
    assert finding.place.where.endswith(LINES[name])
    assert fix in finding.fix
    assert finding.fix
    assert (found.verdict.best.label if found.verdict.best else None) == best
    assert found.verdict.code == (0 if best else 1)
    assert any(LINES[name] in line for line in repr(found).splitlines()[:10])


@pytest.mark.parametrize("name", DEFECTS)
def test_the_model_put_right_as_it_says_is_right_in_dynamo(name: str) -> None:
    exporter = "torch.export" if name == "save" else "dynamo"
    found = diagnosis(f"{name}_fixed", (exporter,))
    assert found.verdict.code == 0, found
    assert [f for f in found.findings if f.silent] == []


def test_a_healthy_model_is_no_alarm() -> None:
    found = diagnosis("healthy")
    assert found.verdict.line == "correct: dynamo exports the model for batch 4 to 7"
    assert found.findings == []
    assert 'dynamic_shapes=({0: "batch"},)' in found.verdict.recipe[-1].replace("'", '"')
    assert "batch is 4, 7: input axis 0" in repr(found)


def test_the_recipe_makes_the_export(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    module, samples = doctor_models.state()
    pasted(diagnosis("state"), module, samples[0])
    verify(from_file(tmp_path / "model.onnx", samples[0], {}, called_once(module, Sample(*samples[:1]))), module, samples).check()


@pytest.mark.parametrize("exporter", ["dynamo", "to_onnx"])
def test_a_model_in_training_mode_is_told_first_and_the_printed_line_makes_the_file_that_was_judged(
    exporter: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    module, samples = doctor_models.regularised()
    found = doctor(module, *samples, exporters=(exporter,), seconds=600)
    assert repr(found).startswith("the model was in training mode; exported as eval()\n\ncorrect: ")
    assert module.training
    pasted(found, module, samples[0])
    verify(from_file(tmp_path / "model.onnx", samples[0], {}, module(*samples[0])), module.eval(), samples).check()


def test_a_model_that_is_to_be_exported_in_training_mode_is_exported_so(tmp_path: Path) -> None:
    module, samples = doctor_models.regularised()
    found = doctor(module, *samples, exporters=("dynamo",), seconds=600, train=True)
    assert found.verdict.code == 1
    assert "in training mode; exported" not in repr(found)
    assert examined(f"{MODELS}:regularised", Options(exporters=("torch.export",), train=True)).facts.summary.was_training is False


def pasted(found: Diagnosis, module: nn.Module, args: tuple[object, ...]) -> None:
    """Run the printed lines."""
    import exportlab

    exec("\n".join(found.verdict.recipe), {"exportlab": exportlab, "torch": torch, "module": module, "args": args, "kwargs": {}})


@pytest.mark.parametrize(
    ("factory", "said", "limits"),
    [
        ("raises", "raised RuntimeError: no weights here (at ", {}),
        ("garbage", "garbage must return (module, args), ", {}),
        ("exits", "raised SystemExit: 0", {}),
        ("loops", "the function: TimeLimit: it took more than half", {"seconds": 2.0}),
        ("allocates", "the function: MemoryLimit: the process took more than 1.5 GiB", {"memory": 1.5}),
        ("stuck", "the model itself, before any export: TimeLimit", {"seconds": 4.0}),
        ("hangs", f"{LINES['hangs']})", {"seconds": 4.0}),
        ("nothing", "has no 'nothing'", {}),
    ],
)
def test_a_factory_that_cannot_be_used_gets_a_verdict(factory: str, said: str, limits: dict[str, float]) -> None:
    found = examined(f"{MODELS}:{factory}", Options(**limits))
    assert said in found.verdict.line
    assert found.verdict.line.startswith("unusable input: ")
    assert found.verdict.code == 2
    assert "<h1>unusable input: " in found._repr_html_()


def test_an_export_that_hangs_has_the_line_where_it_hangs() -> None:
    module, samples = doctor_models.hangs_in_an_export()
    [finding] = doctor(module, *samples, exporters=("torch.export",), seconds=9).findings
    assert finding.stage == "timeout"
    assert "the time limit was reached at this line" in finding.defect
    assert finding.place is not None
    assert int(LINES["hangs in an export"].rpartition(":")[2]) - finding.place.line in (0, 1, 2)


def test_a_report_in_markdown_is_one_that_a_tracker_renders(tmp_path: Path) -> None:
    text = diagnosis("branch").save(tmp_path / "report.md").read_text()
    assert text.startswith("## Report of `exportlab doctor`\n")
    assert f"At `tests/exportlab/doctor/{LINES['branch']}`:" in text
    assert "Known error: FrozenDimension: " in text
    assert " (docs page errors/branch_on_a_size)\n" in text
    assert "| item | value |\n| --- | --- |\n" in text
    assert "torch.cond(torch.full((), x.shape[0]) > 4, lambda: x * 2, lambda: x * 3)" in text
    for block in re.findall(r"^```python\n# in place of [^\n]*\n(.*?)^```$", text, re.DOTALL | re.MULTILINE):
        compile(f"def forward(self, x):\n{block}", "pasted", "exec")
    assert {len(row.replace("\\|", "").split("|")) for row in text.splitlines() if row.startswith("| `torch.export`")} == {8}


def test_a_report_links_to_the_site_where_that_has_an_address(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    found, page = diagnosis("branch"), "generated/errors/branch_on_a_size.html"
    assert "(docs page errors/branch_on_a_size)" in found.save(tmp_path / "named.html").read_text()
    assert page not in (tmp_path / "named.html").read_text()
    monkeypatch.setattr("exportlab.site.base", lambda: "https://lab.example/")
    assert f'<a href="https://lab.example/{page}">FrozenDimension: ' in found.save(tmp_path / "linked.html").read_text()
    assert f"](https://lab.example/{page})" in found.save(tmp_path / "linked.md").read_text()


def test_a_report_in_markdown_lets_nothing_of_the_model_through() -> None:
    module, samples = doctor_models.hostile()
    text = doctor(module, *samples, exporters=("torch.export",)).markdown()
    outside = re.sub(r"^(```+)\w*\n.*?^\1$|(`+) ?.*? ?\2", "", text, flags=re.DOTALL | re.MULTILINE)
    assert "<" not in outside
    assert "@" not in outside
    assert not any(character in text for character in "\x1b\x07\u202e")


@pytest.mark.parametrize("name", ["branch", "healthy"])
def test_the_shapes_that_were_worked_out_are_printed_whatever_comes_of_it(name: str) -> None:
    assert "shapes    dynamic_shapes=({0: 'batch'},)" in repr(diagnosis(name)).splitlines()


def test_no_row_says_right_beside_another_outcome() -> None:
    rows = [row for name in ("branch", "value", "square") for row in diagnosis(name).attempts().rows]
    assert any(": correct" in str(row["what was seen"]) for row in rows)
    assert [row for row in rows if str(row["what was seen"]).endswith("correct") and row["outcome"] != "ok"] == []


def test_what_an_exporter_said_is_kept() -> None:
    module, samples = doctor_models.regularised()
    [tried] = doctor(module, *samples, exporters=("dynamo",), train=True, seconds=600).facts.tried[:1]
    assert any("in training mode" in line for line in tried.said)


@pytest.mark.parametrize(("name", "outcome"), [("dies", "crash"), ("sleeps", "timeout"), ("model_exits", "crash")])
def test_a_step_that_dies_or_hangs_or_exits_costs_itself_alone(name: str, outcome: str) -> None:
    module, samples = getattr(doctor_models, name)()
    found = doctor(module, *samples, exporters=("torch.export",), seconds=9)
    assert [tried.outcome for tried in found.facts.tried] == [outcome]
    assert found.verdict.code == 1
    assert found.facts.eager is not None


def test_what_there_is_no_time_for_is_said() -> None:
    module, samples = doctor_models.sleeps()
    found = doctor(module, *samples, exporters=("torch.export", "to_onnx"), seconds=3)
    assert "to_onnx (no time was left)" in found.facts.left_out
    assert "to_onnx (no time was left)" in repr(found)


def test_the_report_escapes_whatever_the_model_says() -> None:
    module, samples = doctor_models.hostile()
    found = doctor(module, *samples, exporters=("torch.export",))
    html, text = found._repr_html_(), repr(found)
    assert "<script>" not in html
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in html
    assert "\\u0007\\u202e" in text
    assert not any(character in html + text for character in "\x1b\x07\u202e")
    assert "://" not in html


def run(monkeypatch: pytest.MonkeyPatch, *arguments: str) -> int:
    monkeypatch.setattr("sys.argv", ["exportlab", "doctor", *arguments])
    with pytest.raises(SystemExit) as ended:
        cli.main()
    return int(ended.value.code or 0)


def test_the_command_line_writes_report_and_model(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    report, model = tmp_path / "report.html", tmp_path / "model.onnx"
    asked = ("--exporters", "to_onnx", "-o", str(report), "--save", str(model))
    assert run(monkeypatch, f"{MODELS}:healthy", *asked) == 0
    said = capsys.readouterr()
    assert said.out.startswith("correct: to_onnx exports the model for batch 4 to 7\n")
    assert said.err == "to_onnx: ok\n"
    assert "Environment" in report.read_text()
    assert model.exists()
    assert run(monkeypatch, f"{MODELS}:raises", "--exporters", "to_onnx") == 2
    assert run(monkeypatch, f"{MODELS}:value", "--exporters", "torch.export") == 1
    assert run(monkeypatch, f"{MODELS}:healthy", "-o", str(tmp_path)) == 2


def test_sizes_are_found_and_named() -> None:
    def sample(batch: int, new: int, past: int) -> Sample:
        tokens = torch.zeros(batch, new, dtype=torch.int64)
        return Sample((tokens,), {"mask": torch.ones(batch, new + past, dtype=torch.int64), "past": torch.randn(batch, 2, past)})

    class Model(nn.Module):
        """Takes these."""

        def forward(self, tokens: torch.Tensor, mask: torch.Tensor, past: torch.Tensor) -> torch.Tensor:
            return tokens

    samples = [sample(2, 3, 5), sample(4, 7, 6)]
    sizes = sizes_of(Model(), samples)
    assert [(size.name, size.sum_of) for size in sizes.moving] == [
        ("batch", ()),
        ("seq", ()),
        ("mask_1", ("seq", "past_2")),
        ("past_2", ()),
    ]
    shapes = dynamic_shapes_of(Model(), samples[0], sizes.moving)
    assert shapes == {"tokens": {0: "batch", 1: "seq"}, "mask": {0: "batch", 1: "mask_1"}, "past": {0: "batch", 2: "past_2"}}
    made = make_intermediate_samples(Model(), samples, sizes.moving)
    assert made[0][0] == "batch 3, seq 5, mask_1 10, past_2 5"
    assert [tuple(leaf.shape) for leaf in made[0][1].leaves()] == [(3, 5), (3, 10), (3, 2, 5)]


def test_a_mask_over_a_cache_and_one_token_stays_as_long_as_both() -> None:
    def sample(batch: int, past: int) -> Sample:
        token, mask = torch.zeros(batch, 1, dtype=torch.int64), torch.ones(batch, past + 1, dtype=torch.int64)
        return Sample((token,), {"mask": mask, "past": torch.randn(batch, 2, past)})

    samples = [sample(2, 5), sample(3, 9)]
    sizes = sizes_of(nn.Identity(), samples)
    assert [(size.name, size.sum_of, size.plus) for size in sizes.moving] == [
        ("batch", (), 0),
        ("seq", ("past_2",), 1),
        ("past_2", (), 0),
    ]
    assert sizes.moving[1].how().endswith("always past_2 + 1")
    made = [sample.kwargs for _, sample in make_intermediate_samples(nn.Identity(), samples, sizes.moving)]
    assert made
    assert all(given["mask"].shape[1] == given["past"].shape[2] + 1 for given in made)


@pytest.mark.usefixtures("as_if_nobody_had_registered_caches")
def test_a_cache_of_transformers_gets_its_patch_as_advice() -> None:
    (found,) = diagnosis("cached").findings
    assert found.fix.startswith("patch: Export within patches.for_model")
    assert found.known is not None
    assert found.known.name == "cache_of_transformers"


def test_a_file_that_is_nearer_than_eager_is_not_called_right_without_a_word() -> None:
    line = diagnosis("overflowing").verdict.line
    rounding = "the results differ from eager by rounding: the file is nearer than eager, "
    assert line.startswith(f"correct: to_onnx exports the model for batch 3 to 5; {rounding}")
    assert line.endswith(("(export inputs)", "(unseen size)"))


def test_what_changes_and_is_no_size_is_said() -> None:
    samples = [Sample((torch.ones(2), 3)), Sample((torch.ones(2), 4))]
    assert sizes_of(nn.Identity(), samples).changing == ("1 (3, 4)",)
    assert sizes_of(nn.Identity(), [Sample((torch.ones(2),)), Sample((torch.ones(2, 2),))]).unlike.startswith(
        "input has several numbers of"
    )


def test_the_page_shows_what_is_printed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    page = (Path(__file__).parents[3] / "docs" / "doctor.md").read_text()
    blocks = {kind: page.split(f"```{kind}\n")[1].split("```")[0] for kind in ("python", "text")}
    (tmp_path / "mymodel.py").write_text(blocks["python"])
    monkeypatch.chdir(tmp_path)
    assert run(monkeypatch, "mymodel.py:build") == 0
    printed, shown = (text.strip().splitlines() for text in (capsys.readouterr().out, blocks["text"]))
    assert [as_shown(line) for line in printed] == [as_shown(line) for line in shown]


def as_shown(line: str) -> str:
    """A line without sizes of files and ratios, which are not the same everywhere."""
    return " ".join(line.split()[:3]) if line.startswith(("torch.export ", "to_onnx ")) else line


def test_what_needed_a_patch_is_saved_with_it(tmp_path: Path) -> None:
    module, samples = doctor_models.check()
    found = doctor(module, *samples, exporters=("dynamo",), seconds=600, save=tmp_path / "model.onnx")
    assert found.verdict.best is not None
    assert found.verdict.best.label == "dynamo, patched"
    assert found.facts.saved == str(tmp_path / "model.onnx")
    assert (tmp_path / "model.onnx").stat().st_size > 0


@pytest.mark.parametrize(
    ("factor", "exporting"),
    [(2.0, ["dynamo"]), (3.0, ["dynamo", "capture, non-strict", "capture, strict", "dynamo, optimize=False", "watch"])],
)
def test_a_step_that_needs_an_export_again_does_not_make_it_again(tmp_path: Path, factor: float, exporting: list[str]) -> None:
    seen, steps = tmp_path / "seen", []
    module = doctor_models.OtherwiseWhenExported(lambda: seen.open("a").write(f"{os.getpid()}\n"), factor)
    doctor(module, *doctor_models.rows(4, 7), exporters=("dynamo",), seconds=600, save=tmp_path / "model.onnx", tell=steps.append)
    assert ("differences of dynamo" in steps) == (factor != 2.0)
    assert ("save" in steps) == (factor == 2.0)
    assert [step for step in steps if step in exporting] == exporting
    assert len(set(seen.read_text().split())) == len(exporting)


@pytest.mark.parametrize(("save", "left"), [(True, ["model.onnx"]), (False, [])])
def test_no_more_than_the_best_file_lies_between_the_steps(tmp_path: Path, save: bool, left: list[str]) -> None:
    module, samples = doctor_models.healthy()
    (tmp_path / "between").mkdir()
    options = Options(600, exporters=("torch.export", "to_onnx", "dynamo"), save=tmp_path / "saved.onnx" if save else None)
    examination = Examination(patient_of(module, samples), options, tmp_path / "between")
    assert [event.label for event in examination.events() if isinstance(event, Trial)] == list(options.exporters)
    assert [path.name for path in (tmp_path / "between").rglob("*") if path.is_file()] == left
    assert (tmp_path / "saved.onnx").exists() == save


def test_a_file_with_weights_beside_it_is_saved_with_them(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trial, "EXTERNAL_DATA_ABOVE", 100)
    monkeypatch.setattr(onnx_artifact, "EXTERNAL_DATA_ABOVE", 100)
    module, samples = doctor_models.healthy()
    found = doctor(module, *samples, exporters=("to_onnx",), seconds=600, save=tmp_path / "own.onnx")
    assert found.facts.saved == str(tmp_path / "own.onnx")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["own.onnx", "own.onnx.data"]
    [sample] = samples[1]
    [result] = session(tmp_path / "own.onnx").run(None, {"input": sample.numpy()})
    torch.testing.assert_close(torch.from_numpy(result), module(sample))


def at(finding: Finding) -> str:
    return finding.place.where.rpartition("/")[2] if finding.place else ""


def test_a_file_that_leaves_what_the_model_writes_into_is_not_right(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    module, samples = doctor_models.argument()
    found = doctor(module, *samples, exporters=("to_onnx", "dynamo"), seconds=600)
    finding = found.findings[0]
    assert (finding.silent, finding.exporters, finding.warned, finding.refused) == (True, ("dynamo",), ("to_onnx",), ())
    assert at(finding) == LINES["argument"]
    assert found.verdict.best is not None
    assert found.verdict.best.label == 'to_onnx, mutations="outputs"'
    before, _, after = finding.code.partition("results = ")
    (x, kept), later = (tensor.clone() for tensor in samples[0]), samples[0][0] * 3
    names = {"exportlab": exportlab, "module": module, "args": samples[0], "kwargs": {}, "x": x, "kept": kept.clone()}
    exec(before, names)
    names["session"] = session(tmp_path / "model.onnx")
    exec(f"results = {after}", names)
    torch.testing.assert_close(torch.from_numpy(names["results"][0]), module(x, kept))
    names["feeds"]["x"] = later.numpy()
    exec(f"results = {after}", names)
    torch.testing.assert_close(torch.from_numpy(names["results"][0]), module(later, kept))


def test_a_result_of_a_class_of_ones_own_is_registered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    module, samples = doctor_models.record()
    found = doctor(module, *samples, exporters=("to_onnx",), seconds=600)
    assert found.facts.unusable is None
    assert at(found.findings[0]) == LINES["record"]
    assert found.verdict.best is not None
    assert found.verdict.best.label == "to_onnx, result registered"
    registering, call = found.verdict.recipe
    assert registering.startswith("torch.export.register_dataclass(Scored)")
    with as_containers(doctor_models.Scored):  # what that line does, undone behind it
        exec(call, {"exportlab": exportlab, "module": module, "args": samples[0], "kwargs": {}})
        artifact = from_file("model.onnx", samples[0], {}, called_once(module, Sample(samples[0])))
        verify(artifact, module, samples).check()


def test_the_line_of_an_operator_is_the_innermost() -> None:
    module, samples = doctor_models.singular_values()
    found = doctor(module, *samples, exporters=("to_onnx",), seconds=600)
    assert at(found.findings[0]) == LINES["spread"]


def test_what_differs_only_where_a_mask_hides_everything_is_not_called_silently_wrong() -> None:
    class Attention(nn.Module):
        def forward(self, words: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
            heads = words[:, None]
            return F.scaled_dot_product_attention(heads, heads, heads, mask[:, None, None])

    sample = Sample((torch.randn(2, 5, 16), torch.ones(2, 5, dtype=torch.bool)))
    found = doctor(Attention(), sample, exporters=("dynamo", "to_onnx"), seconds=600)
    (finding,) = found.findings
    assert (finding.stage, finding.silent, finding.exporters) == ("closed", False, ("dynamo",))
    assert "silently" not in str(found.verdict.line)
    assert found.verdict.why.endswith("; dynamo is correct except where a mask hides everything")
