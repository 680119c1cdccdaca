"""Build the demo of the recipe with two branches: the results of two exported models, and the branch they ran, for each slider position."""

from __future__ import annotations

import base64
from typing import Any

import numpy
import onnx_ir as ir
import onnxruntime
import torch
from site_files import ROOT

RECIPE = ROOT / "gallery/torch_onnx/cond.py"
REST = (1.0, -2.0, 1.0)  # the rest of the row sums to zero, so the slider's value decides
VALUES = [step / 4 for step in range(-8, 9)]
NAMES = {"to_onnx": "to_onnx", "torchscript": "torch.onnx.export(dynamo=False)"}


def models() -> tuple[torch.nn.Module, dict[str, ir.Model]]:
    """Run the recipe's cells up to its export by `to_onnx`, and return the model and the exported models."""
    before, export, rest = RECIPE.read_text(encoding="utf-8").partition("\nprogram = to_onnx(")
    code = before + export + rest.partition("\n# %%")[0]
    seen: dict[str, Any] = {"__name__": "recipe"}
    exec(compile(code, str(RECIPE), "exec"), seen)
    return seen["model"], {"to_onnx": seen["program"].model, "torchscript": seen["compared"]["torchscript"].artifact.model}


def row(value: float) -> torch.Tensor:
    """Return the input at a slider position."""
    return torch.tensor([[value, *REST]])


def expose_condition(model: ir.Model) -> tuple[bytes, list[list[str]]]:
    """Return the model with the condition of its `If`, if there is one, as an extra output, and the operators of each branch."""
    branches: list[list[str]] = []
    for node in model.graph:
        if node.op_type == "If":
            branches = [[inner.op_type for inner in node.attributes[name].as_graph()] for name in ("then_branch", "else_branch")]
            model.graph.outputs.append(node.inputs[0])
    return ir.to_proto(model).SerializeToString(), branches or [[node.op_type for node in model.graph]]


def run_at_values(file: bytes) -> list[dict[str, Any]]:
    """Return the output of ONNX Runtime for each value, and the branch it ran: 0 for then, 1 for else."""
    session = onnxruntime.InferenceSession(file, providers=["CPUExecutionProvider"])
    name, found = session.get_inputs()[0].name, []
    for value in VALUES:
        numbers, *test = session.run(None, {name: row(value).numpy()})
        found.append({"numbers": round_row(numbers), "branch": int(not test[0]) if test else 0})
    return found


def round_row(numbers: numpy.ndarray) -> list[float]:
    """Format one row for the page."""
    return [round(float(number), 4) for number in numbers.flatten()]


def build_demo() -> dict[str, Any]:
    """Return the data of the page: exported models, their results, and those of eager mode.

    Raises:
        ValueError: the results contradict the page: one model must be right for all values, the other wrong below zero.
    """
    model, files = models()
    with torch.inference_mode():
        eager = [round_row(model(row(value)).numpy()) for value in VALUES]
    seen = [describe_file(name, files[name]) for name in NAMES]
    for one, wanted in zip(seen, ([True] * len(VALUES), [value > 0 for value in VALUES]), strict=True):
        right = [numpy.allclose(a["numbers"], e, atol=2e-4) for a, e in zip(one["answers"], eager, strict=True)]
        if right != wanted:
            raise ValueError(f"the demo of two branches is wrong about {one['name']}: it is right at {right}")
    return {"values": VALUES, "rest": REST, "eager": eager, "files": seen}


def describe_file(name: str, model: ir.Model) -> dict[str, Any]:
    """Return the data of one exported model."""
    file, branches = expose_condition(model)
    return {"name": NAMES[name], "file": base64.b64encode(file).decode(), "branches": branches, "answers": run_at_values(file)}
