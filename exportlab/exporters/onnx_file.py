"""Reading an ONNX file and the weights beside it: nothing but what ONNX Runtime reads too, and nothing outside the folder of the file."""

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
    """Return the model in a file, its weights in memory.

    Raises:
        OSError: a file is missing, or cannot be read. ValueError: it holds no ONNX model, or its weights are not where it says.
    """
    with _refusing(path):
        return _load_weights(_read(path), path.parent)


def read_proto(path: Path) -> onnx.ModelProto:
    """Return the model in a file, weights beside it left there; that they are there was looked at.

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
    """Make one line of whatever reading a file raises."""
    from google.protobuf.message import DecodeError

    try:
        with heard():
            yield
    except (OSError, Misplaced):
        raise
    except DecodeError as error:
        raise ValueError(f"{path} is not an ONNX model") from error
    except Exception as error:
        raise ValueError(f"{path} holds something that ONNX does not know: {first_line(root(error))}") from error


class Misplaced(ValueError):
    """Weights are not where the model says, or it says what cannot be; the message is one line that names them and the place."""


def check_beside(model: onnx.ModelProto, path: Path) -> None:
    """Look where a model says that its weights are, before any of them is read.

    Raises:
        FileNotFoundError: there is no such file. Misplaced: it is outside the folder of the model, or is no regular file; or the weights
            begin before it or end behind it, or have another length than their type and sizes.
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
        raise Misplaced(f"{what} are said to be in {file!r}: they must be in a file in the folder of the model, or below it")
    if not where.exists():
        raise FileNotFoundError(f"{what} are in {file!r}, which is not there: it belongs beside the model")
    if not where.is_file():
        raise Misplaced(f"{what} are said to be in {file!r}, which is no regular file")
    if length and length != needed:
        raise Misplaced(f"{what} are said to have {length:,} bytes, and their type and sizes need {needed:,}")
    if offset + needed > (size := where.stat().st_size):
        raise Misplaced(f"{what} are said to end at byte {offset + needed:,} of {file!r}, which has {size:,}: a part of it is missing")


def _number(place: dict[str, str], key: str, what: str) -> int:
    """An offset or a length, 0 where the model does not say."""
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
