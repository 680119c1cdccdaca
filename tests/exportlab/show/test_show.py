"""Pictures and tables: what they hold, not how they look."""

from __future__ import annotations

import sys
from pathlib import Path
from types import SimpleNamespace

import pytest
import torch
from torch import nn

from exportlab import show
from exportlab.exporters import export
from exportlab.show.figure import UNSHOWN
from exportlab.show.graph import from_fx, from_ir


class Branch(nn.Module):
    """A cond, so that there are subgraphs."""

    def __init__(self) -> None:
        super().__init__()
        self.linear = nn.Linear(3, 3)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = torch.cond(x.sum() > 0, lambda x: x * 2, lambda x: (x - 1).relu(), (x,))
        return self.linear(y)


@pytest.fixture(scope="module")
def program() -> torch.export.ExportedProgram:
    return export("torch.export", Branch().eval(), (torch.ones(2, 3),), dynamic_shapes=({0: "n"},)).model


@pytest.fixture(scope="module")
def model() -> object:
    return export("dynamo", Branch().eval(), (torch.ones(2, 3),), dynamic_shapes=({0: "n"},)).model


def test_fx_drawing_shows_data_not_weights(program: torch.export.ExportedProgram) -> None:
    drawing = from_fx(program)
    assert [n.label.split("\n")[0] for n in drawing.nodes if n.kind == "input"] == ["x"]
    assert not [n for n in drawing.nodes if "weight" in n.label]
    assert any("true_graph_0: mul" in n.label for n in drawing.nodes)


def test_onnx_drawing_lists_branches(model: object) -> None:
    drawing = from_ir(model)
    branch = next(n for n in drawing.nodes if n.label.startswith("If"))
    assert "then_branch: Mul" in branch.label
    assert "else_branch: Sub, Relu" in branch.label
    assert any(e.target == branch.key and e.source.startswith("in:") for e in drawing.edges), "what a branch reads from outside is an edge"


def test_graph_is_saved(program: torch.export.ExportedProgram, model: object, tmp_path: Path) -> None:
    for source in (program, model):
        path = tmp_path / "graph.svg"
        show.graph(source, title="A graph", save=path)
        assert path.read_text(encoding="utf-8") == UNSHOWN.pop().svg()
    with pytest.raises(ValueError, match=r"written to a \.svg file"):
        show.graph(program, save=tmp_path / "graph.png")


def test_boxes_do_not_overlap(program: torch.export.ExportedProgram) -> None:
    from exportlab.show.boxes import layout

    drawing = from_fx(program)
    places, _ = layout(drawing)
    boxes = [(*places[n.key], *n.size) for n in drawing.nodes]
    for i, (x, y, w, h) in enumerate(boxes):
        for x2, y2, w2, h2 in boxes[i + 1 :]:
            assert abs(x - x2) >= (w + w2) / 2 or abs(y - y2) >= (h + h2) / 2


def test_too_large_a_graph_is_refused(program: torch.export.ExportedProgram) -> None:
    with pytest.raises(ValueError, match="a picture holds 3"):
        show.graph(program, most=3)


def test_no_graph_in_it() -> None:
    with pytest.raises(TypeError, match="no graph in an int"):
        show.graph(3)
    with pytest.raises(TypeError, match=r"use show\.summary for ONNX models"):
        show.program(3)


def test_program_is_concise(program: torch.export.ExportedProgram, capsys: pytest.CaptureFixture[str]) -> None:
    show.program(program)
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].endswith(", 3] = input")
    assert lines[-1].startswith("s") and " in [" in lines[-1]  # noqa: PT018
    assert len(lines) <= 8


def test_summary_is_concise(model: object, capsys: pytest.CaptureFixture[str]) -> None:
    show.summary(model)
    out = capsys.readouterr().out
    assert "input    x: f32[n, 3]" in out
    assert "If 1" in out
    assert len(out.splitlines()) <= 6


def test_summary_reads_files(model: object, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    artifact = export("dynamo", nn.ReLU().eval(), (torch.ones(2),))
    show.summary(artifact.save(tmp_path / "m.onnx"))
    assert "Relu 1" in capsys.readouterr().out


def test_table_escapes_and_colours() -> None:
    made = show.table([{"a": "<b>", "outcome": "wrong"}], title="<i>")
    assert "&lt;b&gt;" in made._repr_html_()
    assert "&lt;i&gt;" in made._repr_html_()
    assert show.OUTCOME_COLORS["wrong"] in made._repr_html_()
    assert repr(made).splitlines() == ["<i>", "a    outcome", "<b>  wrong"]


def test_empty_columns_are_left_out() -> None:
    assert repr(show.table([{"a": 0, "b": "", "c": ""}, {"a": "", "b": "", "c": "x"}])).splitlines() == ["a  c", "0", "   x"]
    assert repr(show.table([])) == ""


def test_a_long_cell_of_a_table_is_folded_below_itself() -> None:
    words = " ".join(f"word{i}" for i in range(40))
    lines = repr(show.table([{"a": "short", "seen": words, "b": "x"}])).splitlines()
    assert max(map(len, lines)) <= 160
    assert " ".join(line[7:158].strip() for line in lines[1:]) == words
    assert [line[:11] for line in lines[1:3]] == ["short  word", "       word"]


def test_table_needs_equal_keys() -> None:
    with pytest.raises(ValueError, match="all rows need the keys"):
        show.table([{"a": 1}, {"b": 1}])


def test_graphs_of_torchdynamo_are_shown_too(capsys: pytest.CaptureFixture[str]) -> None:
    """They call methods, and keep shapes elsewhere than torch.export does."""
    seen: list[torch.fx.GraphModule] = []

    def keep(graph: torch.fx.GraphModule, example_inputs: list[torch.Tensor]) -> torch.fx.GraphModule:
        seen.append(graph)
        return graph

    torch.compile(lambda x: x.sum() + 1, backend=keep)(torch.ones(3))
    show.program(seen[0])
    assert "sum_1: f32[] = sum(l_x_)" in capsys.readouterr().out
    assert len(from_fx(seen[0]).edges) == 3


def test_a_drawn_graph_says_what_is_seen(program: torch.export.ExportedProgram) -> None:
    show.graph(program)
    assert repr(UNSHOWN.pop()).startswith("A graph from x to linear; nodes: 5 (")


def test_a_notebook_shows_a_graph_at_once(program: torch.export.ExportedProgram, monkeypatch: pytest.MonkeyPatch) -> None:
    shown: list[object] = []
    notebook = SimpleNamespace(get_ipython=lambda: "a shell", display=SimpleNamespace(display=shown.append))
    monkeypatch.setitem(sys.modules, "IPython", notebook)
    show.graph(program)
    assert [picture.svg()[:4] for picture in shown] == ["<svg"]
    assert not UNSHOWN
