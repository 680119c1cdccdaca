"""Compare opsets: export one model for each opset, compare the nodes, and test whether ONNX Runtime runs the file."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import onnx
import onnxruntime
import torch
from torch import nn
from torch.nn import functional

from exportlab.messages import first_line

from .observed import Left, file_parts, left
from .verdicts import WAYS

OLDEST = 17  # one below torchlib's opset
OPSETS = range(OLDEST, onnx.defs.onnx_opset_version() + 1)
CLOSE = 1e-4


class Recent(nn.Module):
    """A model that calls four functions for which newer opsets have an operator. The legacy exporter can't translate the last one."""

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        x = functional.gelu(x) + functional.silu(x)
        x = functional.scaled_dot_product_attention(x, x, x)
        x = functional.group_norm(x, 2)
        return x if torch.jit.is_tracing() else functional.rms_norm(x, (8,))


class Written(NamedTuple):
    """The result of one opset: the error, or the change in nodes since the last written opset, the messages, and the run of the file."""

    error: str
    nodes: str
    said: str
    runs: str


torch.manual_seed(0)
X = torch.rand(2, 4, 5, 8)


def all_written() -> Iterator[dict[str, Any]]:
    """Yield the results of each opset, by way of exporting."""
    before: dict[str, list[str]] = {}
    for opset in OPSETS:
        row: dict[str, Written] = {}
        for way in WAYS:
            found = written_for(way, opset)
            row[way] = describe_opset(opset, before.get(way), found)
            before[way] = found.get("nodes", before.get(way, []))
        yield {"opset": opset, "found": row}


def written_for(way: str, opset: int) -> Left:
    """Return the observations of an export for this opset, with the result of ONNX Runtime under `runs`."""
    export, base = WAYS[way]
    return left(export, Recent().eval(), (X,), look=_parts_and_answer, **base, opset_version=opset)


def _parts_and_answer(path: str) -> Left:
    return {**file_parts(path), "runs": [_answer(path)]}


def _answer(path: str) -> str:
    """Return the result of ONNX Runtime. It is compared with the whole model or, for dynamo=False, with the model's first part."""
    try:
        session = onnxruntime.InferenceSession(path, providers=["CPUExecutionProvider"])
        (answer,) = session.run(None, {session.get_inputs()[0].name: X.numpy()})
    except Exception as error:  # noqa: BLE001 - record any exception of ONNX Runtime
        return first_line(error)
    whole, part = Recent()(X), torch.jit.trace(Recent(), (X,), check_trace=False)(X)
    return "right" if any(torch.allclose(torch.from_numpy(answer), eager, atol=CLOSE) for eager in (whole, part)) else "wrong"


def describe_opset(opset: int, before: Sequence[str] | None, found: Left) -> Written:
    """Return the result of an opset, compared with the nodes of the last written opset."""
    said = "; ".join(line for line in found["says"] if line not in found["error"] and "version" in line)
    if found["error"]:
        return Written(found["error"][0], "", said, "")
    (written,) = (name.removeprefix("ai.onnx ") for name in found["opsets"] if name.startswith("ai.onnx "))
    nodes = f"{len(found['nodes'])} nodes" if before is None else describe_node_changes(before, found["nodes"])
    return Written("" if written == str(opset) else f"opset {written} is written", nodes, said, "".join(found["runs"]))


def describe_node_changes(before: Sequence[str], after: Sequence[str]) -> str:
    """Describe which kinds of nodes are new, and how many nodes they replace."""
    old, new = Counter(before), Counter(after)
    came = ", ".join(new - old)
    if not (gone := (old - new).total()):
        return f"{came} more" if came else "the same nodes"
    return f"{came or 'nothing'} instead of {gone} node{'s' if gone > 1 else ''}"
