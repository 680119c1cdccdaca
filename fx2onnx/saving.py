"""Saving a model and its weights as one: a reader never combines the model of one save with the weights of another."""

from __future__ import annotations

import os
import re
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import onnx
import onnx_ir as ir
from google.protobuf.message import DecodeError

from .files import atomic_write, check_replaceable

PRODUCER = "fx2onnx"  # in the exported model


def save_atomically(model: ir.Model, path: str | os.PathLike[str], beside: bool) -> None:
    """Save a model; `beside` writes its weights to a second file, of the same name and `.data`.

    If a model is replaced, its weights get a new name (`model.onnx.1f0c9a3e.data`). The model refers to this name and is replaced last,
    so a concurrent reader finds either the old pair or the new one. Afterwards the weights of the old model are removed.

    Raises:
        TypeError: `path` is not a path. OSError: it cannot be written, or it is a link and `beside` is set. No files are left behind.
    """
    check_replaceable(path, beside)
    target = Path(os.path.realpath(path))
    before = weights_of(target)
    with atomic_write(path) as draft, _drop_weight_value_info(model):
        ir.save(model, draft, external_data=_name_of_weights(target) if beside else None)
        kept = weights_of(draft)
    for name in before - kept:
        (target.parent / name).unlink(missing_ok=True)


@contextmanager
def _drop_weight_value_info(model: ir.Model) -> Iterator[None]:
    """Omit the shapes and dtypes of weights from the `value_info` of a model by `to_onnx` inside the context.

    ONNX Runtime's quantiser transposes weights, and fails if `value_info` has another shape.
    """
    weights = model.graph.initializers.values() if model.producer_name == PRODUCER else ()
    declared = [(value, value.shape, value.type) for value in weights if not value.is_graph_input()]
    for value, *_ in declared:
        value.shape, value.type = None, None
    try:
        yield
    finally:
        for value, shape, dtype in declared:
            value.shape, value.type = shape, dtype


def _name_of_weights(path: Path) -> str:
    usual = path.with_name(f"{path.name}.data")
    return f"{path.name}.{secrets.token_hex(4)}.data" if path.exists() or usual.exists() else usual.name


def weights_of(path: Path) -> set[str]:
    """Return the names of the weight files of the model at `path`, of those that `save_atomically` may have written."""
    ours = re.compile(rf"{re.escape(path.name)}(\.[0-9a-f]{{8}})?\.data")
    if not path.is_file() or not any(ours.fullmatch(entry.name) for entry in path.parent.iterdir()):
        return set()
    try:
        graph = onnx.load(path, load_external_data=False).graph
    except DecodeError:  # the file to replace is not a model
        return set()
    located = (entry.value for tensor in graph.initializer for entry in tensor.external_data if entry.key == "location")
    return {name for name in located if ours.fullmatch(name)}
