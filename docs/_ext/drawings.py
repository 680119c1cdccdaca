"""Draw what a page of the site includes and no lesson shows: the parts of `to_onnx`, two worlds side by side."""

from __future__ import annotations

from pathlib import Path

from matplotlib import pyplot
from matplotlib.axes import Axes

from exportlab.show.drawing import Drawing, Edge, Node

WRITES, INSIDE, LOOKUP = "aliasing, view_writes\nwrites", "subgraphs, functions\ngraphs inside", "dispatch\nwhich translation?"
CAPTURE, WALK, NODES = "capture\nruns, torch.export", "interpreter\nnode by node", "graph, symbols\nONNX nodes, each once"
SIDES = ("your table", "ops/", "torchlib", "decompose")
FLOW = (
    *(("module, arguments", CAPTURE), (CAPTURE, WALK), (WALK, WRITES), (WALK, LOOKUP), (WALK, INSIDE)),
    *((LOOKUP, side) for side in SIDES),
    *((source, NODES) for source in (*SIDES, WRITES, INSIDE)),
    *((NODES, "conversion, passes"), ("conversion, passes", "ONNXProgram with a report")),
)
WORLDS = (  # in PyTorch, what they have in common, in ONNX
    ("torch.export", "capture", "torch.onnx.export\nto_onnx"),
    ("ExportedProgram\n.pt2", "what you keep", "ModelProto\n.onnx"),
    ("ATen, Core ATen", "operators", "opset 20, domains"),
    ("symbols, guards", "sizes that move", "named dimensions"),
    ("torch.cond\nwhile_loop, scan", "branches, loops", "If\nLoop, Scan"),
    ("custom operator\nfake kernel", "your own", "domain of your own\nfunction"),
    ("AOTInductor\nExecuTorch", "what runs it", "ONNX Runtime\nTensorRT, OpenVINO"),
)
TORCH, ONNX = "#fde3d3", "#d6e6f5"


def draw_converter(path: Path) -> None:
    """Draw the modules of `to_onnx`, and what flows between them."""
    kinds = {"module, arguments": "input", "your table": "input", "ONNXProgram with a report": "output"}
    names = dict.fromkeys(name for pair in FLOW for name in pair)
    Drawing(tuple(Node(n, n, kinds.get(n, "op")) for n in names), tuple(Edge(*pair) for pair in FLOW)).draw(save=path)
    pyplot.close()


def draw_worlds(path: Path) -> None:
    """Draw what is called how in PyTorch and in ONNX."""
    figure, axes = pyplot.subplots(figsize=(7.4, 6.2), layout="constrained")
    for row, (torch, common, onnx) in enumerate(WORLDS):
        _box(axes, 0, -row, torch, TORCH)
        _box(axes, 2, -row, onnx, ONNX)
        axes.plot((0.47, 1.53), (-row, -row), color="0.7", linestyle=":", zorder=0)
        axes.text(1, -row, common, ha="center", va="center", fontsize=10, color="0.35", backgroundcolor="white")
    for place, title in ((0, "PyTorch"), (2, "ONNX")):
        axes.text(place, 0.75, title, ha="center", fontsize=12, weight="bold")
    axes.set(xlim=(-0.55, 2.55), ylim=(0.3 - len(WORLDS), 1))
    axes.axis("off")
    figure.savefig(path, dpi=150)
    pyplot.close(figure)


def _box(axes: Axes, x: float, y: float, text: str, color: str) -> None:
    axes.text(
        x, y, text, ha="center", va="center", fontsize=10, bbox={"boxstyle": "round,pad=0.45", "facecolor": color, "edgecolor": "0.6"}
    )
