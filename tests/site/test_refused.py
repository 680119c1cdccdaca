"""Every case that `to_onnx` does not get right with dynamic sizes is listed in docs/to_onnx_limits.md, with who is right and the reason."""

from __future__ import annotations

import csv
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import nn

from content.zoo import cases
from exportlab import export, verify
from exportlab.cases import Built
from exportlab.messages import muffled
from exportlab.samples import Sample
from fx2onnx.ir.graph import Graph

ROOT = Path(__file__).parents[2]
sys.path.insert(0, str(ROOT / "tools"))
from expected import EXPECTED, from_csv, moving  # noqa: E402

LISTED = ROOT / "docs/data/refused.csv"
KINDS = {"another way", "no exporter", "not done yet"}
NAMES = {
    "torch.export": "`torch.export`",
    "dynamo": "`torch.onnx.export`",
    "torchscript": "`dynamo=False`",
    "openvino": "OpenVINO",
    "executorch": "ExecuTorch",
    "aoti": "AOTInductor",
    "transformers": "`transformers.exporters`",
}  # as the page writes them, in its order
OUTCOMES = moving(from_csv(EXPECTED.read_text()))
FARTHEST = -(2**62)  # before the start of any axis

Options = dict[str, Any]


def rows() -> list[dict[str, str]]:
    """The table as the page shows it."""
    with LISTED.open(newline="") as file:
        return list(csv.DictReader(file))


def of_kind(kind: str) -> list[str]:
    """The cases that carry a label."""
    return [row["case"] for row in rows() if row["kind"] == kind]


def right_by(case: str) -> list[str]:
    """The exporters that get a case right, as the page names them."""
    right = {exporter for (of, exporter, _), outcome in OUTCOMES.items() if of == case and outcome == "ok"}
    return [written for name, written in NAMES.items() if name in right]


def test_each_reason_is_a_sentence_of_a_known_kind() -> None:
    for row in rows():
        assert set(row) == {"case", "kind", "right by", "why"}
        assert row["kind"] in KINDS
        assert row["why"].endswith(".")
        assert len(row["why"]) > 30


def test_the_list_is_that_of_the_cases_that_are_not_right() -> None:
    not_right = {case for (case, exporter, _), outcome in OUTCOMES.items() if exporter == "to_onnx" and outcome != "ok"}
    listed = [row["case"] for row in rows()]
    assert len(listed) == len(set(listed))
    assert not_right - set(listed) == set(), "no reason is given"
    assert set(listed) - not_right == set(), "these are right, or no cases"


@pytest.mark.parametrize("row", rows(), ids=lambda row: row["case"])
def test_a_row_names_the_exporters_that_are_right(row: dict[str, str]) -> None:
    assert row["right by"] == ", ".join(right_by(row["case"]))


@pytest.mark.parametrize("case", of_kind("no exporter"))
def test_no_exporter_is_right_where_the_label_says_so(case: str) -> None:
    assert right_by(case) == []


def added(g: Graph, tensors: list[Any]) -> Any:
    """The sum of a list."""
    first, *others = tensors
    for other in others:
        first = g.Add(first, other)
    return first


def split(g: Graph, x: Any, weight: Any, more: list[Any]) -> tuple[Any, Any]:
    """`exportlab::split_by_sign` in operators of ONNX."""
    total = g.Add(x if weight is None else g.Mul(x, weight), added(g, more))
    return g.Relu(total), g.Neg(g.Relu(g.Neg(total)))


TRANSLATED: dict[str, tuple[str, Callable[..., Any]]] = {
    "cpp_op": ("cubed", lambda g, x: g.Mul(x, g.Mul(x, x))),
    "custom_op": ("scaled_sine", lambda g, x, scale: g.Mul(g.Sin(x), scale)),
    "custom_op_in_place": ("softened_", lambda g, x, by: g.Mul(g.Sign(x), g.Relu(g.Sub(g.Abs(x), by)))),
    "custom_op_of_many": ("split_by_sign", split),
    "custom_op_of_unknown_length": ("positives", lambda g, x: g.Compress(x, g.Reshape(g.Greater(x, 0.0), [-1]))),
    "custom_op_without_fake": ("without_fake", lambda g, x: g.Mul(g.Slice(x, [-1], [FARTHEST], [0], [-1]), 2.0)),
}


class InReals(nn.Module):
    """A model of complex numbers that takes and returns pairs of floats."""

    def __init__(self, model: nn.Module) -> None:
        super().__init__()
        self.model = model

    def forward(self, z: torch.Tensor) -> torch.Tensor:
        return torch.view_as_real(self.model(torch.view_as_complex(z)))


def translated(case: str) -> Options:
    """The translation of the operator of a case, which has been built and so registered it."""
    operator, translation = TRANSLATED[case]
    return {"custom_translation_table": {getattr(torch.ops.exportlab, operator).default: translation}}


def another_way(case: str, why: str) -> Options:
    """What the reason of a row tells the reader to pass."""
    if "custom_translation_table=" in why:
        return translated(case)
    if 'mutations="outputs"' in why:
        return {"mutations": "outputs"}
    if "strict=True" in why:
        return {"strict": True}
    if "one name" in why:
        return {"dynamic_shapes": ({0: "rows"}, {0: "rows"})}
    if "Dim.DYNAMIC" in why:
        return {"dynamic_shapes": ({0: "batch"}, torch.export.Dim.DYNAMIC)}
    return {}


def rewritten(made: Built, why: str) -> tuple[nn.Module, list[Sample]]:
    """The module and its samples, as the reason of a row has the reader write them."""
    if "view_as_real" not in why:
        return made.module, made.samples
    return InReals(made.module), [Sample((torch.view_as_real(sample.args[0]),)) for sample in made.samples]


@pytest.mark.parametrize("row", [row for row in rows() if row["kind"] == "another way"], ids=lambda row: row["case"])
def test_another_way_is_right(row: dict[str, str]) -> None:
    case = next(case for case in cases() if case.name == row["case"])
    made = case.build()
    module, samples = rewritten(made, row["why"])
    options = {"dynamic_shapes": made.dynamic_shapes, **another_way(row["case"], row["why"])}
    with torch.no_grad(), muffled():
        exported = export("to_onnx", module, samples[0].args, samples[0].kwargs, train=case.training, **options)
        assert verify(exported, module, samples).outcome == "ok"
