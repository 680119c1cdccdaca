"""Turn a captured (FX) or exported (ONNX) graph into boxes and edges. `boxes` lays them out, and `svg` and `figure` draw them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING, Any

import torch

from ..checks import must_be
from .drawing import Drawing, Edge, Node
from .figure import show_drawings
from .origin import describe_fx_node, describe_ir_node
from .text import CALLS, Program, fx_annotation, fx_inputs, ir_model, is_fx, op_name, value_annotation

if TYPE_CHECKING:
    import onnx_ir as ir

MOST = 80  # boxes; a larger picture cannot be read


def graph(source: Any, *, title: str = "", save: str | Path | None = None, most: int = MOST) -> None:
    """Draw the graph of an `ExportedProgram`, a `GraphModule`, an ONNX model (onnx or onnx-ir), or of an object that has one as `.model`.

    Weights and constants are left out; a subgraph is listed inside its node. Notebooks and pages show the picture, which is SVG.
    `save` also writes it to a .svg file.

    Raises:
        TypeError: `source` is not one of these types, or another argument has the wrong type.
        ValueError: the graph has more than `most` boxes, or `save` does not name a .svg file.
    """
    must_be(str, title=title)
    must_be(str, PathLike, type(None), save=save)
    if save is not None and Path(save).suffix != ".svg":
        raise ValueError(f"save={str(save)!r}: a picture is written to a .svg file")
    _drawing(source, most).draw(title, save)


def graphs(sources: Mapping[str, Any], *, most: int = MOST) -> None:
    """Draw several graphs as one picture, for example the exports of one model by two exporters.

    `graphs({"torch.onnx.export": a, "to_onnx": b})` names each.
    A page or notebook shows one graph at a time, with a button for each name.
    Each source is an argument that `graph` accepts.

    Raises:
        TypeError: `sources` is not a mapping from names, or a source has the wrong type.
        ValueError: `sources` is empty, or a graph has more than `most` boxes.
    """
    must_be(Mapping, sources=sources)
    for name in sources:
        must_be(str, name=name)
    if not sources:
        raise ValueError("sources is empty: pass a graph for each name")
    show_drawings({name: _drawing(source, most) for name, source in sources.items()})


def _drawing(source: Any, most: int) -> Drawing:
    must_be(int, most=most)
    drawing = from_fx(source) if is_fx(source) else from_ir(ir_model(source))
    if len(drawing.nodes) > most:
        raise ValueError(f"the graph has {len(drawing.nodes)} boxes, a picture holds {most}: draw a part of it, or pass most=")
    return drawing


def from_fx(program: Program) -> Drawing:
    """Return the boxes of an `ExportedProgram` or `GraphModule`: the user's inputs, the nodes and the outputs."""
    inputs = fx_inputs(program)
    shown = [n for n in program.graph.nodes if n.op in CALLS or n.name in inputs]
    nodes = [Node(n.name, _fx_label(n), "input" if n.name in inputs else "op", describe_fx_node(n)) for n in shown]
    known = {n.name for n in shown}
    edges = [Edge(a.name, n.name) for n in shown for a in n.all_input_nodes if a.name in known]
    results = next(n for n in program.graph.nodes if n.op == "output").all_input_nodes
    outputs = [Node(f"out:{n.name}", n.name, "output") for n in results]
    answers = [Edge(n.name, f"out:{n.name}") for n in results if n.name in known]
    return Drawing((*nodes, *outputs), (*edges, *answers))


def _fx_label(node: torch.fx.Node) -> str:
    shape = fx_annotation(node)
    name = node.name if node.op == "placeholder" else op_name(node)
    bodies = [f"{a.target}: {_fx_body(a)}" for a in node.all_input_nodes if a.op == "get_attr" and _fx_body(a)]
    return "\n".join(filter(None, [name, *bodies, shape]))


def _fx_body(node: torch.fx.Node) -> str:
    body = getattr(node.graph.owning_module, str(node.target), None)
    if not isinstance(body, torch.fx.GraphModule):
        return ""
    return _abbreviate_names([op_name(n) for n in body.graph.nodes if n.op in CALLS])


def from_ir(model: ir.Model) -> Drawing:
    """Return the boxes of an onnx-ir model: its inputs, nodes (constants left out) and outputs."""
    main = model.graph
    shown = [n for n in main if n.op_type != "Constant"]
    keys = {id(node): f"node:{i}" for i, node in enumerate(shown)}
    sources = {id(v): f"in:{v.name}" for v in main.inputs} | {id(v): keys[id(n)] for n in shown for v in n.outputs}
    inputs = [Node(f"in:{v.name}", "\n".join(filter(None, [v.name, value_annotation(v)])), "input") for v in main.inputs]
    ops = [Node(keys[id(n)], _ir_label(n), "op" if n.domain in ("", "ai.onnx") else "function", describe_ir_node(n)) for n in shown]
    outputs = [Node(f"out:{v.name}", "\n".join(filter(None, [v.name, value_annotation(v)])), "output") for v in main.outputs]
    edges = [Edge(s, keys[id(n)]) for n in shown for s in _distinct(sources.get(id(v)) for v in _read_by(n))]
    results = [Edge(sources[id(v)], f"out:{v.name}") for v in main.outputs if id(v) in sources]
    return Drawing((*inputs, *ops, *outputs), (*edges, *results))


def _ir_label(node: ir.Node) -> str:
    bodies = [f"{name}: {_abbreviate_names([n.op_type for n in body])}" for name, body in _subgraphs(node)]
    return "\n".join([node.op_type, *bodies])


def _subgraphs(node: ir.Node) -> Iterator[tuple[str, ir.Graph]]:
    for attribute in node.attributes.values():
        if attribute.type.name == "GRAPH":
            yield attribute.name, attribute.value


def _read_by(node: ir.Node) -> Iterator[ir.Value]:
    """Yield the inputs of a node and the outer values that its subgraphs read."""
    yield from (v for v in node.inputs if v is not None)
    for _, body in _subgraphs(node):
        for inner in body:
            yield from _read_by(inner)


def _distinct(keys: Iterator[str | None]) -> list[str]:
    return list(dict.fromkeys(k for k in keys if k is not None))


def _abbreviate_names(names: list[str], most: int = 5) -> str:
    kept = ", ".join(names[:most])
    return kept if len(names) <= most else f"{kept}, … ({len(names)} nodes)"
