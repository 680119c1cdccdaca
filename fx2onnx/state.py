"""The state of an exported model: inputs that accept the outputs of the last call, and the metadata that describes them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

import onnx_ir as ir
import torch

KEY = "fx2onnx.state"  # in the metadata of a model
MOST = 4096  # elements: larger initial values are not stored, except as one number if all elements are equal


def describe_state(model: ir.Model, changed: Sequence[str], outputs: Sequence[str], initial: Mapping[str, torch.Tensor]) -> None:
    """Write, as JSON in the metadata, for each input that is state: the output with its new value, and the value at the export."""
    described = {name: {"new": output, **_value(initial.get(name))} for name, output in zip(changed, outputs, strict=True)}
    model.metadata_props[KEY] = json.dumps(described)


def _value(tensor: torch.Tensor | None) -> dict[str, Any]:
    if tensor is None:
        return {}
    kind = {"dtype": str(tensor.dtype).removeprefix("torch."), "shape": list(tensor.shape)}
    if tensor.is_complex():
        return kind
    flat = tensor.detach().flatten()
    if len(flat) and bool((flat == flat[0]).all()):
        return {**kind, "values": flat[0].item()}
    return {**kind, "values": flat.tolist()} if len(flat) <= MOST else kind


def changed_names(model: ir.Model) -> tuple[str, ...]:
    """Return the names of what a call changes; the last outputs are their new values, in this order."""
    return tuple(json.loads(model.metadata_props.get(KEY, "{}")))


def initial_state(model: ir.Model) -> dict[str, torch.Tensor]:
    """Return the initial values by name of input, in the order of the outputs; large ones are not stored in the model."""
    described = json.loads(model.metadata_props.get(KEY, "{}"))
    return {name: _tensor(found) for name, found in described.items() if "values" in found}


def _tensor(found: Mapping[str, Any]) -> torch.Tensor:
    values = torch.tensor(found["values"], dtype=getattr(torch, found["dtype"]))
    return values.expand(found["shape"]).clone() if values.dim() == 0 else values.reshape(found["shape"])
