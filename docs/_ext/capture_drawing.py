"""Draw how `to_onnx` captures by running: an SVG that stands in the page itself, in the colours of its theme, and fits a phone."""

from __future__ import annotations

from pathlib import Path

from svg_boxes import WIDTH, box, draw_down_arrow, drawing, text

ROW, TOP = 50, 152
RUNS = (("batch = 4", "view [4, 16]", "relu"), ("batch = 7", "view [7, 16]", "relu"), ("batch = 10", "view [10, 16]", "relu"))
BECOMES = (  # what the notes of all runs show, and what is written
    (("the same in every run:", "relu, 16"), ("a node, a constant", "relu, 16")),
    (("a number that moves:", "4, 7, 10"), ("an expression", "batch")),
    (("a test that can come out", "the other way"), ("If", "run again for that side")),
    (("as many more turns as rows,", "all alike"), ("Loop", "with one turn as its body")),
    (("anything else",), ("torch.export", "or an error, with the line")),
)


def draw_capture(path: Path) -> None:
    """Write the drawing."""
    end = TOP + len(BECOMES) * ROW
    parts = [
        text(WIDTH / 2, 14, "The model is run at a few sizes", strong=True),
        *(
            part
            for place, lines in enumerate(RUNS)
            for part in (box(124 * place, 24, 112, 62, lines), draw_down_arrow(124 * place + 56, 88, 106))
        ),
        box(0, 108, WIDTH, 30, ("what it called, held against each other",)),
        *(part for place, row in enumerate(BECOMES) for part in _row(place, *row)),
        box(0, end + 20, WIDTH, 30, ("one graph, which the converter writes as a file",)),
        draw_down_arrow(284, end - 4, end + 18),
    ]
    title = "Runs at a few sizes; what their notes have in common; the graph that is written"
    path.write_text(drawing(title, end + 53, parts), encoding="utf-8")


def _row(place: int, seen: tuple[str, ...], written: tuple[str, ...]) -> list[str]:
    """What was seen on the left, what it becomes on the right."""
    top, last = TOP + place * ROW, place == len(BECOMES) - 1
    lines = [text(0, top + 25 + 16 * (i - (len(seen) - 1) / 2), line, anchor="start") for i, line in enumerate(seen)]
    arrow = f'<path d="M176 {top + 21} h26 m-6 -4 l6 4 l-6 4"/>'
    return [*lines, arrow, box(208, top, 152, 42, written, "else" if last else "written")]
