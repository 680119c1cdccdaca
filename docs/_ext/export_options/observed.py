"""Collect the observable results of an export: the parts of its file, other files, printed lines and messages."""

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
"""The observations by kind."""


def left(
    export: Callable[..., Any],
    model: Any,
    args: tuple[Any, ...],
    f: str | None = "model.onnx",
    look: Callable[[str], Left] | None = None,
    **options: Any,
) -> Left:
    """Export a copy of a model in an empty folder, and return the observations, with the error under `error`.

    Args:
        look: a function that reads the file, instead of `file_parts`.
    """
    lines: list[str] = []
    program, error = None, []
    with tempfile.TemporaryDirectory() as folder, contextlib.chdir(folder):
        with heard() as said, _count_printed_lines(lines):
            try:
                program = export(copy.deepcopy(model), args, f, **options)
            except Exception as raised:  # noqa: BLE001 - record any exception of an exporter
                error = [first_line(raised)]
        files = [str(path) for path in sorted(Path().rglob("*"))]
        parts = (look or file_parts)(f) if f in files and not error else {}
    captured = [program.report.capture] if hasattr(program, "report") else []
    says = [*error, *(line.removeprefix("torch.onnx._internal.exporter.") for line in said)]
    return {**parts, "files": list(map(_timeless, files)), "prints": lines, "captured by": captured, "says": says, "error": error}


def file_parts(path: str) -> Left:
    """Return the parts of an ONNX file by name."""
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
    """Return the name of a file without a timestamp."""
    return re.sub(r"_\d{4}-[\d_-]+", "_TIME", name).replace("TIMEsuccess", "TIME_success")


@contextlib.contextmanager
def _count_printed_lines(lines: list[str]) -> Iterator[None]:
    """Count the lines that a block prints, from Python and from native code."""
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
