"""What an export leaves, by kind: the parts of its file, the files beside it, what it prints and says. Not here: what that proves."""

from __future__ import annotations

import contextlib
import copy
import os
import re
import tempfile
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import onnx

from exportlab.messages import first_line, heard

Left = Mapping[str, list[str]]
"""What there is of each kind."""


def left(
    export: Callable[..., Any],
    model: Any,
    args: tuple[Any, ...],
    f: str | None = "model.onnx",
    look: Callable[[str], Left] | None = None,
    **options: Any,
) -> Left:
    """Export a copy of a model in an empty folder, and return what is left of it; under `error`, what it ended in.

    Args:
        look: what is asked of the file, where it is not `file_parts`.
    """
    lines: list[str] = []
    program, error = None, []
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        with heard() as said, _count_printed_lines(lines):
            try:
                program = export(copy.deepcopy(model), args, f, **options)
            except Exception as raised:  # noqa: BLE001 - whatever an exporter raises is what is noted
                error = [first_line(raised)]
        files = [str(path) for path in sorted(Path().rglob("*"))]
        parts = (look or file_parts)(f) if f in files and not error else {}
    captured = [program.report.capture] if hasattr(program, "report") else []
    says = [*error, *(line.removeprefix("torch.onnx._internal.exporter.") for line in said)]
    return {**parts, "files": list(map(_timeless, files)), "prints": lines, "captured by": captured, "says": says, "error": error}


def file_parts(path: str) -> Left:
    """Return what an ONNX file has of everything, by name."""
    model = onnx.load(path, load_external_data=False)
    return {
        "inputs": [f"{given.name}[{_sizes(given)}]" for given in model.graph.input],
        "outputs": [result.name for result in model.graph.output],
        "weights": [weight.name for weight in model.graph.initializer],
        "nodes": [node.op_type for node in model.graph.node],
        "opsets": [f"{opset.domain or 'ai.onnx'} {opset.version}" for opset in model.opset_import],
        "functions": [function.name for function in model.functions],
    }


def _sizes(value: onnx.ValueInfoProto) -> str:
    return ", ".join(str(dim.dim_param or dim.dim_value) for dim in value.type.tensor_type.shape.dim)


def _timeless(name: str) -> str:
    """The name of a file without the time that is in it."""
    return re.sub(r"_\d{4}-[\d_-]+", "_TIME", name).replace("TIMEsuccess", "TIME_success")


@contextlib.contextmanager
def _count_printed_lines(lines: list[str]) -> Iterator[None]:
    """Note how many lines a block prints, Python and what is below it."""
    with tempfile.TemporaryFile("w+") as file, contextlib.redirect_stdout(file):
        before = os.dup(1)
        os.dup2(file.fileno(), 1)
        try:
            yield
        finally:
            os.dup2(before, 1)
            os.close(before)
            file.flush()
            file.seek(0)
            lines.append(f"{len(file.readlines())} lines")
