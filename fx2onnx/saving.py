"""Saving a model and the weights beside it as one: no reader finds the model of one save and the weights of another."""

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

PRODUCER = "fx2onnx"  # the name that a file bears


def save_atomically(model: ir.Model, path: str | os.PathLike[str], beside: bool) -> None:
    """Save a model; `beside` has its weights in a second file, of the same name and `.data`.

    A save that replaces a model gives its weights a name of their own (`model.onnx.1f0c9a3e.data`): the model, which is moved last,
    names them, so whoever reads meanwhile has the old pair or the new one. The weights of the model before are removed after that.

    Raises:
        TypeError: `path` is none. OSError: it cannot be written there, or `path` is a link and the weights would not be found beside it;
            nothing is left behind.
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
    """Have the weights of a model that `to_onnx` made, while it lasts, say shape and dtype themselves and nowhere else.

    Otherwise they stand in `value_info`, and ONNX Runtime's quantiser, which transposes weights, finds another shape there and ends.
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
    """Return the names of the files that the model at `path` has its weights in, where these are names that `save_atomically` gives."""
    ours = re.compile(rf"{re.escape(path.name)}(\.[0-9a-f]{{8}})?\.data")
    if not path.is_file() or not any(ours.fullmatch(entry.name) for entry in path.parent.iterdir()):
        return set()
    try:
        graph = onnx.load(path, load_external_data=False).graph
    except DecodeError:  # what is replaced was no model
        return set()
    located = (entry.value for tensor in graph.initializer for entry in tensor.external_data if entry.key == "location")
    return {name for name in located if ours.fullmatch(name)}
