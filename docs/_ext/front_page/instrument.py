"""One model, two files of it, and what each answers at every batch: the data of the instrument on the landing page."""

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

ROWS, BATCHES, WIDTH = 6, range(1, 9), 3  # of the export, of the slider, of a row
EXPORTERS = {"dynamo": "torch.onnx.export", "to_onnx": "to_onnx"}


class ByBatch(torch.nn.Module):
    """The model: another factor for a small batch."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Return x, float32 of (batch, 3), times two, or times three."""
        if x.shape[0] > 4:
            return x * 2
        return x * 3


@dataclass(frozen=True)
class Measured:
    """A file, and the factor that it and eager give at each batch."""

    name: str
    file: bytes
    nodes: tuple[str, ...]
    answers: tuple[float, ...]
    eager: tuple[float, ...]

    @property
    def right(self) -> tuple[bool, ...]:
        """Whether it agrees with eager, batch by batch."""
        return tuple(mine == theirs for mine, theirs in zip(self.answers, self.eager, strict=True))


def code() -> str:
    """Return the model and its export as a reader would type them."""
    head, _, *body = inspect.getsource(ByBatch.forward).splitlines()
    plain = head.replace(": torch.Tensor", "").replace(" -> torch.Tensor", "")
    model = "\n".join(["class ByBatch(nn.Module):", plain, *body])
    call = 'torch.onnx.export(\n    ByBatch(), (x,), "model.onnx",\n    dynamic_shapes=({0: "batch"},),\n)'
    return f"{model}\n\nx = torch.ones({ROWS}, {WIDTH})\n{call}"


def measure_all() -> list[Measured]:
    """Return what each exporter's file answers.

    Raises:
        ValueError: a file is not what the page says of it: the first wrong below five rows alone, the second never.
    """
    quiet()
    seen = [measure_exporter(name) for name in EXPORTERS]
    wanted = [tuple(rows > 4 for rows in BATCHES), (True,) * len(BATCHES)]
    for one, right in zip(seen, wanted, strict=True):
        if one.right != right:
            raise ValueError(f"the landing page says otherwise of {one.name}: it is right at {[*zip(BATCHES, one.right, strict=True)]}")
    return seen


def measure_exporter(name: str) -> Measured:
    """Export the model with a batch that moves, and call the file and eager at every batch."""
    model = ByBatch().eval()
    with muffled():
        made = exporters.get(name).export(model, (torch.ones(ROWS, WIDTH),), dynamic_shapes=({0: "batch"},))
    assert isinstance(made, exporters.OnnxArtifact)
    inputs = [torch.ones(rows, WIDTH) for rows in BATCHES]
    answers, eager = (tuple(float(call(x).max()) for x in inputs) for call in (made, model))
    operators = tuple(node.op_type for node in made.model.graph)
    return Measured(EXPORTERS[name], ir.to_proto(made.model).SerializeToString(), operators, answers, eager)


def to_json(seen: Sequence[Measured]) -> str:
    """Return what the script of the page reads: files, and the answers as they were when the site was built."""
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
