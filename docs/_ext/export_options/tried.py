"""List the options of `torch.onnx.export` and of `to_onnx`, with a value to test and the kind of effect to expect."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import torch
from onnxscript import opset20 as op
from torch import nn
from torch.nn import functional
from torch.onnx import OperatorExportTypes, TrainingMode

ATEN = torch.ops.aten


class Tiny(nn.Module):
    """A model with a batch norm to fold, a weight to transpose, and a keyword argument."""

    def __init__(self) -> None:
        super().__init__()
        self.linear, self.norm = nn.Linear(3, 3), nn.BatchNorm1d(3)
        self.turned = nn.Parameter(torch.randn(3, 3))

    def forward(self, x: torch.Tensor, factor: Any = 2.0) -> torch.Tensor:
        return torch.relu(self.norm(self.linear(x))) @ self.turned.T * factor


class Square(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: torch.Tensor) -> torch.Tensor:
        return x * x


class Calls(nn.Module):
    """A model that calls a function, and may count its calls in a buffer."""

    def __init__(self, function: Any, count: torch.Tensor | None = None) -> None:
        super().__init__()
        self.function = function
        self.register_buffer("count", count)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        if self.count is not None:
            self.count += 1
        return self.function(x)


def branch(x: torch.Tensor) -> torch.Tensor:
    return torch.relu(x) if x.shape[0] > 3 else -x


def call_custom_hardswish(x: torch.Tensor) -> torch.Tensor:
    """Call hardswish, which dynamo=False translates to a node of the domain "mine" through a registered symbolic function."""
    if torch.jit.is_tracing():
        return functional.hardswish(x)
    return torch.onnx.ops.symbolic("mine::Hardswish", (x,), dtype=x.dtype, shape=x.shape, version=1)


def negate(x: Any) -> Any:
    return op.Neg(x)


def register_symbolics() -> None:
    """Register symbolic functions for dynamo=False: hardswish becomes a node of the domain "mine", and tanh gets a wrong translation."""
    torch.onnx.register_custom_op_symbolic("aten::hardswish", lambda g, x: g.op("mine::Hardswish", x), 20)
    torch.onnx.register_custom_op_symbolic("aten::tanh", lambda g, x: g.op("Neg", x), 20)


@dataclass(frozen=True)
class Try:
    """One value of one option.

    Attributes:
        about: the kind of observation that changes if the option is honoured, a key of the result of `observed.left`.
        written: the value as source code, if that isn't its `repr`.
        of: description of the exported model, if it isn't `Tiny`.
        given: other arguments of both exports.
    """

    name: str
    value: Any
    about: str
    written: str = ""
    of: str = ""
    given: dict[str, Any] = field(default_factory=dict)

    def __str__(self) -> str:
        return f"{self.name}={self.written or repr(self.value)}"


torch.manual_seed(0)
X = torch.randn(4, 3)
RENORM = Calls(lambda x: torch.renorm(x, 2, 0, 1.0)).eval()
WRONG = {"model": nn.Tanh().eval(), "custom_translation_table": {ATEN.tanh.default: negate}}
CAPTURED = {"model": torch.export.export(Tiny().eval(), (X,)), "dynamo": True}
MOVING = {"dynamic_shapes": ({0: "batch"},)}
BRANCHING = {"model": Calls(branch).eval(), "capture": "torch.export", **MOVING}
NESTED = {"model": nn.Sequential(Tiny()).eval()}
TRIED = (
    Try("model", nn.ReLU().eval(), "nodes", "nn.ReLU()"),
    Try("args", (X[:2],), "inputs", "(x[:2],)"),
    Try("f", "other.onnx", "files"),
    Try("f", None, "files"),
    Try("kwargs", {"factor": torch.tensor(3.0)}, "inputs"),
    Try("verbose", True, "prints", given={"verbose": False}),
    Try("input_names", ["a"], "inputs"),
    Try("output_names", ["z"], "outputs"),
    Try("opset_version", 23, "opsets"),
    Try("dynamo", False, "nodes", given={"dynamo": True}),
    Try("dynamo", False, "nodes", of="a captured program", given=CAPTURED),
    Try("external_data", False, "files"),
    Try("dynamic_shapes", ({0: "batch"},), "inputs"),
    Try("custom_translation_table", {ATEN.relu.default: negate}, "nodes", "{aten.relu.default: …}"),
    Try("report", True, "files"),
    Try("optimize", False, "nodes"),
    Try("verify", True, "says", of="a tanh with a wrong translation", given=WRONG),
    Try("profile", True, "prints"),
    Try("dump_exported_program", True, "files"),
    Try("artifacts_dir", "here", "files", of="with report=True", given={"report": True}),
    Try("export_params", False, "weights"),
    Try("keep_initializers_as_inputs", True, "inputs"),
    Try("dynamic_axes", {"a": {0: "batch"}}, "inputs", given={"input_names": ["a"]}),
    Try("training", TrainingMode.EVAL, "nodes", "TrainingMode.EVAL", "a dropout in training mode",
        {"model": nn.Sequential(nn.Linear(3, 3), nn.Dropout()).train(), "training": TrainingMode.PRESERVE}),
    Try("training", TrainingMode.TRAINING, "nodes", "TrainingMode.TRAINING", "a dropout in evaluation mode",
        {"model": nn.Sequential(nn.Linear(3, 3), nn.Dropout()).eval()}),
    Try("operator_export_type", OperatorExportTypes.ONNX_FALLTHROUGH, "nodes", "OperatorExportTypes.ONNX_FALLTHROUGH", "torch.sinc",
        {"model": Calls(torch.sinc).eval()}),
    Try("do_constant_folding", False, "nodes"),
    Try("custom_opsets", {"mine": 2}, "opsets", of="a node of the domain mine", given={"model": Calls(call_custom_hardswish).eval()}),
    Try("export_modules_as_functions", True, "functions", of="a module in a module", given=NESTED),
    Try("autograd_inlining", False, "says", of="an autograd.Function", given={"model": Calls(Square.apply).eval()}),
    Try("strict", True, "captured by"),
    Try("functions", True, "functions", of="a module in a module", given=NESTED),
    Try("mutations", "outputs", "outputs", of="a buffer that counts", given={"model": Calls(torch.relu, torch.zeros(1)).eval()}),
    Try("fallback", False, "says", of="torch.renorm, which to_onnx does not translate", given={"model": RENORM}),
    Try("accept_ranges", ("batch",), "inputs", of="a branch on the batch, captured by torch.export", given=BRANCHING),
    Try("capture", "torch.export", "captured by"),
)  # fmt: skip
