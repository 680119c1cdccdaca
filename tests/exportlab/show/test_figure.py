"""Graphs as SVG: every box says what is known of it, and several graphs stand behind a button each."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from collections.abc import Iterator
from typing import Any

import onnx_ir as ir
import pytest
import torch
from torch import nn

from exportlab import show
from exportlab.exporters import export
from exportlab.show.figure import UNSHOWN, Picture
from exportlab.show.origin import describe_ir_node, source_line

SVG = "{http://www.w3.org/2000/svg}"


class Inner(nn.Module):
    """A module within another."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(3, 4)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.linear(x).relu()


class Outer(nn.Module):
    """A line of its own, and a module."""

    def __init__(self) -> None:
        super().__init__()
        self.inner = Inner()

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.inner(x) + 1


@pytest.fixture(scope="module")
def exported() -> dict[str, Any]:
    names = {"torch.export": "torch.export", "torch.onnx.export": "dynamo", "to_onnx": "to_onnx"}
    return {
        name: export(exporter, Outer().eval(), (torch.ones(2, 3),), dynamic_shapes=({0: "batch"},)).model
        for name, exporter in names.items()
    }


@pytest.fixture
def figure(request: pytest.FixtureRequest) -> Iterator[Picture]:
    request.param(request.getfixturevalue("exported"))
    yield UNSHOWN.pop()
    UNSHOWN.clear()


def graph_of(name: str) -> Any:
    return lambda exported: show.graph(exported[name], title=f"<{name}>")


def titles(figure: Picture) -> list[str]:
    """What the boxes of its one graph say."""
    return [title.text or "" for title in ET.fromstring(figure._repr_svg_() or "").iter(f"{SVG}title")]


@pytest.mark.parametrize("figure", [graph_of("torch.export")], indirect=True)
def test_a_captured_node_says_shape_module_and_line(figure: Picture) -> None:
    relu = next(said for said in titles(figure) if said.startswith("aten.relu"))
    name, shape, module, line = relu.split("\n")
    assert name == "aten.relu.default"
    assert shape.startswith("f32[s") and shape.endswith(", 4]")  # noqa: PT018
    assert module == "in inner, Inner"
    assert line == "return self.linear(x).relu()"


@pytest.mark.parametrize("figure", [graph_of("torch.onnx.export")], indirect=True)
def test_an_onnx_node_says_what_its_file_does(figure: Picture) -> None:
    relu = next(said for said in titles(figure) if said.startswith("Relu"))
    assert relu.split("\n")[1:] == ["relu: f32[batch, 4]", "in inner, Inner", "return self.linear(x).relu()"]


def test_the_node_that_a_file_names_after_its_module_is_no_module() -> None:
    said = {"namespace": ": m.M/sym_size_int_3: int", "pkg.torch.onnx.fx_node": "%sym_size_int_3 = …"}
    value = ir.Value(name="n", type=ir.TensorType(ir.DataType.INT64), shape=ir.Shape([1]))
    assert describe_ir_node(ir.Node("", "Shape", [], outputs=[value], metadata_props=said)) == "Shape\nn: i64[1]"


@pytest.mark.parametrize("figure", [graph_of("to_onnx")], indirect=True)
def test_where_a_file_names_no_line_none_is_said(figure: Picture) -> None:
    relu = next(said for said in titles(figure) if said.startswith("Relu"))
    assert relu.split("\n")[1:] == ["relu: f32[batch, 4]", "in inner, Inner"]


@pytest.mark.parametrize("figure", [graph_of("torch.export")], indirect=True)
def test_the_picture_has_a_name_and_an_arrow_for_each_edge(figure: Picture) -> None:
    root = ET.fromstring(figure._repr_svg_() or "")
    (drawing,) = figure.drawings.values()
    ends = [tuple(map(int, path.attrib["data-ends"].split())) for path in root.iter(f"{SVG}path")]
    keys = [node.key for node in drawing.nodes]
    assert [(keys[a], keys[b]) for a, b in ends] == [(edge.source, edge.target) for edge in drawing.edges]
    assert root.attrib["aria-label"].startswith("<torch.export>: A graph from x to ")
    assert "&lt;torch.export&gt;</p>" in figure.html()


@pytest.mark.parametrize("figure", [lambda exported: show.graphs(exported)], indirect=True)
def test_several_graphs_have_a_button_each_and_the_first_is_seen(figure: Picture) -> None:
    root = ET.fromstring(f"<div>{figure._repr_html_()}</div>")
    buttons = list(root.iter("input"))
    labels = {label.attrib["for"]: label.text or "" for label in root.iter("label")}
    assert [labels[button.attrib["id"]] for button in buttons] == list(figure.drawings)
    assert len({button.attrib["name"] for button in buttons}) == 1
    assert ["checked" in button.attrib for button in buttons] == [True, False, False]
    assert len(list(root.iter(f"{SVG}svg"))) == 3
    assert figure._repr_svg_() is None


def test_a_line_is_the_innermost_of_the_user() -> None:
    mine, library = '  File "/a/m.py", line 3, in forward\n    y = f(x)\n', '  File "/v/site-packages/t.py", line 9, in f\n    g(x)\n'
    assert source_line(mine + library) == "y = f(x)"
    assert source_line(library) == source_line("") == ""


def test_graphs_need_a_name_each() -> None:
    with pytest.raises(TypeError, match="sources must be a Mapping"):
        show.graphs([1])  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="pass a graph for each name"):
        show.graphs({})
    with pytest.raises(TypeError, match="name must be"):
        show.graphs({3: 4})  # type: ignore[dict-item]
