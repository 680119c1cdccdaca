"""Read ONNX models and their external data, with the same restrictions as ONNX Runtime: only files below the model's folder."""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from ..messages import first_line, heard, root

if TYPE_CHECKING:
    import onnx
    import onnx_ir as ir


def read_model(path: Path) -> ir.Model:
    """Read a model and load its weights into memory.

    Raises:
        OSError: a file is missing or cannot be read.
        ValueError: the file isn't an ONNX model, or its weights aren't where the model specifies.
    """
    with _refusing(path):
        return _load_weights(_read(path), path.parent)


def read_proto(path: Path) -> onnx.ModelProto:
    """Read a model without loading its external data, but check that the data exists.

    Raises:
        OSError, ValueError: as `read_model`.
    """
    with _refusing(path):
        return _read(path)


def _read(path: Path) -> onnx.ModelProto:
    import onnx

    proto = onnx.load(path, load_external_data=False)
    check_beside(proto, path)
    return proto


@contextmanager
def _refusing(path: Path) -> Iterator[None]:
    """Convert any error while reading to one with a one-line message."""
    from google.protobuf.message import DecodeError

    try:
        with heard():
            yield
    except (OSError, Misplaced):
        raise
    except DecodeError as error:
        raise ValueError(f"{path} is not an ONNX model") from error
    except Exception as error:
        raise ValueError(f"{path} contains something that ONNX cannot read: {first_line(root(error))}") from error


class Misplaced(ValueError):
    """External data isn't where the model specifies, or the specification is invalid; the one-line message names the weights."""


def check_beside(model: onnx.ModelProto, path: Path) -> None:
    """Check the location of all external data before reading any of it.

    Raises:
        FileNotFoundError: a file doesn't exist.
        Misplaced: a file is outside the model's folder or not a regular file; or the specified offset and length exceed the file, or
            don't match the weight's type and shape.
    """
    from onnx.external_data_helper import uses_external_data

    functions = (node for function in model.functions for node in function.node)
    for tensor in (*_tensors(model.graph), *_find_node_tensors(functions)):
        if uses_external_data(tensor):
            _check_place(tensor, path.parent)


def _tensors(graph: onnx.GraphProto) -> Iterator[onnx.TensorProto]:
    yield from graph.initializer
    yield from _find_node_tensors(graph.node)


def _find_node_tensors(nodes: Iterable[onnx.NodeProto]) -> Iterator[onnx.TensorProto]:
    for attribute in (attribute for node in nodes for attribute in node.attribute):
        yield from (attribute.t, *attribute.tensors)
        for graph in (attribute.g, *attribute.graphs):
            yield from _tensors(graph)


def _check_place(tensor: onnx.TensorProto, folder: Path) -> None:
    place = {entry.key: entry.value for entry in tensor.external_data}
    file, what = place.get("location", ""), f"the weights {tensor.name!r}"
    offset, length, needed = _number(place, "offset", what), _number(place, "length", what), _bytes(tensor)
    where = folder.resolve() / file
    leaves = os.path.isabs(file) or os.path.normpath(file).startswith("..") or not where.resolve().is_relative_to(folder.resolve())
    if not file or leaves:
        raise Misplaced(f"{what} have the location {file!r}: it must be a file in the folder of the model, or below it")
    if not where.exists():
        raise FileNotFoundError(f"{what} are in {file!r}, which does not exist: put it in the folder of the model")
    if not where.is_file():
        raise Misplaced(f"{what} have the location {file!r}, which is not a regular file")
    if length and length != needed:
        raise Misplaced(f"{what} have a length of {length:,} bytes, but their type and shape need {needed:,}")
    if offset + needed > (size := where.stat().st_size):
        raise Misplaced(f"{what} end at byte {offset + needed:,} of {file!r}, which has only {size:,} bytes: the file is incomplete")


def _number(place: dict[str, str], key: str, what: str) -> int:
    """Return an offset or length, 0 if the model doesn't specify it."""
    text = place.get(key, "") or "0"
    if not (text.isascii() and text.isdigit()):
        raise Misplaced(f"{what} have the {key} {text!r}: it must be a number of bytes, 0 or more")
    return int(text)


def _bytes(tensor: onnx.TensorProto) -> int:
    import onnx_ir as ir

    return math.ceil(math.prod(tensor.dims) * ir.DataType(tensor.data_type).bitwidth / 8)


def _load_weights(proto: onnx.ModelProto, folder: Path) -> ir.Model:
    import onnx_ir as ir

    model = ir.from_proto(proto)
    ir.external_data.set_base_dir(model.graph, folder)
    return ir.external_data.load_to_model(model)
