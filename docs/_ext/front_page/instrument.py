"""Compute the data of the demo on the landing page: one model, two exports of it, and their outputs for each batch size."""

from __future__ import annotations

import base64
import inspect
import json
from collections.abc import Sequence
from dataclasses import dataclass

import onnx_ir as ir
import torch

from exportlab import exporters, quiet
from exportlab.messages import muffled

ROWS, START, BATCHES, WIDTH = 6, 3, range(1, 9), 3  # batch of the export, where the slider starts, its range, columns
EXPORTERS = {"dynamo": "torch.onnx.export", "to_onnx": "to_onnx"}


class ByBatch(torch.nn.Module):
    """A model with a different factor for small batches."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return x of shape (batch, 3), float32, times two or three."""
        if x.shape[0] > 4:
            return x * 2
        return x * 3


@dataclass(frozen=True)
class Measured:
    """An exported model, and its factor and the factor of eager mode for each batch size."""

    name: str
    file: bytes
    nodes: tuple[str, ...]
    answers: tuple[float, ...]
    eager: tuple[float, ...]

    @property
    def right(self) -> tuple[bool, ...]:
        """Whether it agrees with eager mode, for each batch size."""
        return tuple(mine == theirs for mine, theirs in zip(self.answers, self.eager, strict=True))


def code() -> str:
    """Return the model and its export as source code."""
    head, _, *body = inspect.getsource(ByBatch.forward).splitlines()
    plain = head.replace(": torch.Tensor", "").replace(" -> torch.Tensor", "")
    model = "\n".join(["class ByBatch(nn.Module):", plain, *body])
    call = 'torch.onnx.export(\n    ByBatch(), (x,), "model.onnx",\n    dynamic_shapes=({0: "batch"},),\n)'
    return f"{model}\n\nx = torch.ones({ROWS}, {WIDTH})\n{call}"


def measure_all() -> list[Measured]:
    """Return the outputs of both exported models.

    Raises:
        ValueError: a model contradicts the page: the first must be wrong only below five rows, the second must not be wrong.
    """
    quiet()
    seen = [measure_exporter(name) for name in EXPORTERS]
    wanted = [tuple(rows > 4 for rows in BATCHES), (True,) * len(BATCHES)]
    for one, right in zip(seen, wanted, strict=True):
        if one.right != right:
            raise ValueError(f"the landing page is wrong about {one.name}: it is right at {[*zip(BATCHES, one.right, strict=True)]}")
    return seen


def measure_exporter(name: str) -> Measured:
    """Export the model with a dynamic batch, and run the export and eager mode at all batch sizes."""
    model = ByBatch().eval()
    with muffled():
        made = exporters.get(name).export(model, (torch.ones(ROWS, WIDTH),), dynamic_shapes=({0: "batch"},))
    assert isinstance(made, exporters.OnnxArtifact)
    inputs = [torch.ones(rows, WIDTH) for rows in BATCHES]
    answers, eager = (tuple(float(call(x).max()) for x in inputs) for call in (made, model))
    operators = tuple(node.op_type for node in made.model.graph)
    return Measured(EXPORTERS[name], ir.to_proto(made.model).SerializeToString(), operators, answers, eager)


def to_json(seen: Sequence[Measured]) -> str:
    """Return the data for the page's script: the exported models and their outputs when the site was built."""
    return json.dumps(
        {
            "width": WIDTH,
            "eager": dict(zip(BATCHES, seen[0].eager, strict=True)),
            "files": [
                {"name": s.name, "file": base64.b64encode(s.file).decode(), "answers": dict(zip(BATCHES, s.answers, strict=True))}
                for s in seen
            ],
        }
    )
