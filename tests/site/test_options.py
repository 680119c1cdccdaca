"""The page of export options: every parameter has a row, a verdict follows from what differs, and what the page says of options is so."""

from __future__ import annotations

import inspect
from collections.abc import Iterator

import pytest
import torch
from export_options.opsets import describe_node_changes, describe_opset, written_for
from export_options.rendered import options_table, totals
from export_options.tried import TRIED, Try, register_symbolics
from export_options.verdicts import WAYS, Found, Verdict, difference, found, judge_option, run_export

from exportlab import to_onnx

TORCH, OLD, OURS = WAYS
CAPTURED = "a captured program"
DEPRECATED = (
    *("training", "operator_export_type", "do_constant_folding"),
    *("custom_opsets", "export_modules_as_functions", "autograd_inlining"),
)


def tries(name: str, of: str = "") -> Try:
    """The row of this name, tried on this."""
    (row,) = [row for row in TRIED if row.name == name and of in (row.of, "")]
    return row


@pytest.fixture
def symbolics() -> Iterator[None]:
    """What dynamo=False is describe_opset, as long as a test runs."""
    register_symbolics()
    yield
    for name in ("aten::hardswish", "aten::tanh"):
        torch.onnx.unregister_custom_op_symbolic(name, 20)


def test_every_parameter_has_a_row() -> None:
    parameters = {name for export, _ in WAYS.values() for name in inspect.signature(export).parameters}
    assert {row.name for row in TRIED} == parameters


def test_a_verdict_follows_from_what_differs() -> None:
    before = {"nodes": ["Relu"], "says": [], "error": []}
    after = {"nodes": ["Neg"], "says": ["a warning"], "error": []}
    assert judge_option("nodes", before, after) == Found(Verdict.HONOURED, "nodes: Relu → Neg")
    assert judge_option("files", before, after) == Found(Verdict.IGNORED, "nodes: Relu → Neg; says: + a warning")
    assert judge_option("nodes", before, before) == Found(Verdict.IGNORED, "")


def test_an_error_is_a_refusal_where_the_option_is_not_about_it() -> None:
    before, wrong = {"says": [], "error": []}, "WrongNumbers: far"
    after = {"says": [wrong], "error": [wrong]}
    assert judge_option("nodes", before, after) == Found(Verdict.REFUSED, wrong)
    assert judge_option("says", before, after) == Found(Verdict.HONOURED, f"says: + {wrong}")
    refused = {"says": ["UnsupportedArgument: no"], "error": ["UnsupportedArgument: no"]}
    assert judge_option("says", before, refused).verdict == Verdict.REFUSED


def test_a_probe_that_fails_with_the_option_and_without_is_an_error() -> None:
    with pytest.raises(AssertionError, match="verbose=True by dynamo=False"):
        found(OLD, Try("verbose", True, "prints", given={"f": None}))


def test_a_difference_is_told_in_a_few_words() -> None:
    assert difference(["a", "b"], ["a", "c"]) == "b → c"
    assert difference(["a"], ["a", *"bcdef"]) == "+ b, c, d and 2 more"
    assert difference(["a", "b"], ["b", "a"]) == "in a different order"


def test_an_opset_is_told_by_its_new_nodes() -> None:
    assert describe_node_changes(["Erf", "Mul", "Mul", "Relu"], ["Gelu", "Relu"]) == "Gelu instead of 3 nodes"
    left = {"nodes": ["Gelu"], "opsets": ["ai.onnx 18"], "says": ["x", "no version 26"], "error": [], "runs": ["refuses"]}
    assert describe_opset(26, ["Gelu"], left) == ("opset 18 is written", "the same nodes", "no version 26", "refuses")


def test_the_older_exporter_ignores_verify_of_a_file_that_is_wrong(symbolics: None) -> None:
    row = tries("verify")
    assert run_export(OLD, {**WAYS[OLD][1], **row.given, "verify": True})["nodes"] == ["Neg"]
    assert found(OLD, row) == Found(Verdict.IGNORED, "")
    assert found(TORCH, row).differs.startswith("says: + _core: Output 'tanh' has a large absolute difference")
    assert "WrongNumbers" in found(OURS, row).differs


def test_the_new_exporter_keeps_a_dropout_in_training_mode() -> None:
    row = next(row for row in TRIED if row.written == "TrainingMode.EVAL")
    assert found(TORCH, row) == Found(Verdict.IGNORED, "")
    plain = run_export(TORCH, {"model": row.given["model"]})
    assert "Dropout" in plain["nodes"]
    assert "training mode" in "".join(plain["says"])
    assert [found(way, row).verdict for way in (OLD, OURS)] == [Verdict.HONOURED] * 2


@pytest.mark.parametrize("name", DEPRECATED)
def test_the_new_exporter_takes_what_belongs_to_the_old_one_and_does_nothing(name: str) -> None:
    rows = [row for row in TRIED if row.name == name]
    assert {found(TORCH, row) for row in rows} == {Found(Verdict.IGNORED, "")}


def test_an_opset_that_torch_cannot_convert_to_ends_in_a_file_that_does_not_run() -> None:
    left = written_for(TORCH, 26)
    assert "ai.onnx 18" in left["opsets"]
    assert "Attention" in left["nodes"]
    assert "INVALID_GRAPH" in left["runs"][0]
    assert written_for(OURS, 26)["runs"] == ["right"]


def test_nobody_heeds_dynamo_false_for_a_captured_program() -> None:
    assert {found(way, tries("dynamo", CAPTURED)) for way in WAYS} == {Found(Verdict.IGNORED, "")}


def test_initializers_become_inputs_only_on_the_way_to_a_file() -> None:
    given = {"keep_initializers_as_inputs": True}
    program = torch.onnx.export(torch.nn.Linear(3, 2).eval(), (torch.ones(2, 3),), dynamo=True, verbose=False, **given)
    assert len(program.model.graph.inputs) == 1
    with pytest.raises(ValueError, match=r"needs a file: pass f, or call program\.save"):
        to_onnx(torch.nn.Linear(3, 2).eval(), (torch.ones(2, 3),), **given)


class Halved(torch.nn.Module):
    """Does something else above 32 rows."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x * 2 if x.shape[0] <= 32 else x * 3


def test_the_tree_of_a_collection_is_narrowed_where_the_object_is_refused() -> None:
    x, collection = torch.ones(6, 3), torch.export.ShapesCollection()
    collection[x] = {0: torch.export.Dim("rows", max=64)}
    with pytest.raises(torch.onnx.OnnxExporterError):
        torch.onnx.export(Halved(), (x,), dynamic_shapes=collection, dynamo=True, verbose=False)
    program = torch.onnx.export(Halved(), (x,), dynamic_shapes=collection.dynamic_shapes(Halved(), (x,)), dynamo=True, verbose=False)
    assert torch.equal(program(torch.ones(40, 3))[0], torch.full((40, 3), 2.0))


@pytest.mark.parametrize("opset", [15, 17])
def test_a_linear_layer_is_converted_down(opset: int) -> None:
    program = torch.onnx.export(torch.nn.Linear(3, 2).eval(), (torch.ones(2, 3),), dynamo=True, verbose=False, opset_version=opset)
    assert program.model.opset_imports[""] == opset


def test_the_tables_say_what_was_found() -> None:
    rows = [{"name": "f", "option": "f=<b>", "of": "it", "found": {"way": ["ignored", ""]}}]
    table = options_table(rows)
    assert "<code>f=&lt;b&gt;</code><small>it</small>" in table
    assert '<td data-label="way"><b class="verdict ignored">ignored</b><small>nothing differs</small>' in table
    assert '<td data-label="ignored options"><code>f</code>' in totals(rows)
