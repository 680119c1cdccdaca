"""Draw what a page of the site includes and no lesson shows: the parts of `to_onnx`, two worlds side by side."""

from __future__ import annotations

from pathlib import Path

from svg_boxes import WIDTH, box, draw_down_arrow, drawing, text

SIDE, GAP = 112, 12  # of the three columns of the converter
FIRST = (("module, arguments",), ("capture", "runs, or torch.export"), ("interpreter", "node by node"))
TRANSLATIONS = ("your table", "ops/", "torchlib", "decompose")
LAST = (("graph, symbols", "ONNX nodes, each once"), ("conversion, passes",), ("ONNXProgram with a report",))
WORLDS = (  # in PyTorch, what they have in common, in ONNX
    (("torch.export",), "capture", ("torch.onnx.export", "to_onnx")),
    (("ExportedProgram", ".pt2"), "what you keep", ("ModelProto", ".onnx")),
    (("ATen", "Core ATen"), "operators", ("opset 20", "domains")),
    (("symbols", "guards"), "moving sizes", ("named dimensions",)),
    (("torch.cond", "while_loop, scan"), "control flow", ("If", "Loop, Scan")),
    (("custom operator", "fake kernel"), "your own", ("domain of your own", "function")),
    (("AOTInductor", "ExecuTorch"), "what runs it", ("ONNX Runtime", "TensorRT, OpenVINO")),
)


def draw_converter(path: Path) -> None:
    """Write the modules of `to_onnx`, and what flows between them."""
    parts, top = _column(FIRST, 0)
    parts += [_fan(top, top + 22), *_draw_interpreter(top + 22)]
    bottom = top + 22 + 168
    parts += [draw_down_arrow(x, bottom, bottom + 20) for x in _middles()]
    last, end = _column(LAST, bottom + 22)
    title = "Module and arguments are captured; an interpreter goes node by node, looks up translations, and fills an ONNX graph"
    path.write_text(drawing(title, end + 3, [*parts, *last]), encoding="utf-8")


def _column(boxes: tuple[tuple[str, ...], ...], top: float) -> tuple[list[str], float]:
    """Return boxes one below the other with arrows between them, and where they end."""
    parts: list[str] = []
    for place, lines in enumerate(boxes):
        height = 44 if len(lines) > 1 else 30
        parts += [draw_down_arrow(WIDTH / 2, top - 20, top - 2)] if place else []
        parts.append(box(40, top, WIDTH - 80, height, lines))
        top += height + 22
    return parts, top - 22


def _middles() -> list[float]:
    return [SIDE / 2 + place * (SIDE + GAP) for place in range(3)]


def _fan(start: float, end: float) -> str:
    """Return one line that ends in three arrows."""
    middle = (start + end) / 2
    return f'<path d="M{WIDTH / 2} {start} V{middle} M{_middles()[0]} {middle} H{_middles()[2]}"/>' + "".join(
        draw_down_arrow(x, middle, end - 2) for x in _middles()
    )


def _draw_interpreter(top: float) -> list[str]:
    """Return what the interpreter asks: who writes, which translation, what about graphs inside."""
    centre = SIDE + GAP
    looked_up = [box(centre, top + 56 + 28 * place, SIDE, 24, (name,), "written") for place, name in enumerate(TRANSLATIONS)]
    return [
        box(0, top, SIDE, 166, ("writes", "aliasing", "view_writes")),
        box(centre, top, SIDE, 44, ("dispatch", "which one?")),
        *looked_up,
        box(2 * centre, top, SIDE, 166, ("graphs inside", "subgraphs", "functions")),
    ]


def draw_worlds(path: Path) -> None:
    """Write what is called how in PyTorch and in ONNX."""
    wide, row = 132, 54
    parts = [text(wide / 2, 12, "PyTorch", strong=True), text(WIDTH - wide / 2, 12, "ONNX", strong=True)]
    for place, (torch, common, onnx) in enumerate(WORLDS):
        top = 24 + place * row
        parts += [box(0, top, wide, 44, torch, headed=False), box(WIDTH - wide, top, wide, 44, onnx, "written", headed=False)]
        parts += [text(WIDTH / 2, top + 26.5, common), f'<path stroke-dasharray="2 3" d="M{wide} {top + 38} H{WIDTH - wide}"/>']
    title = "Two columns, PyTorch and ONNX, and between each two boxes what they have in common"
    path.write_text(drawing(title, 24 + len(WORLDS) * row, parts), encoding="utf-8")
