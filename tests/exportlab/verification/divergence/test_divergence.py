"""`first_difference` names the node: one planted defect per test, in the files of both exporters."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import onnx_ir as ir
import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from exportlab import export, to_onnx
from exportlab.exporters.calling import by_signature
from exportlab.verification.difference import Difference
from exportlab.verification.divergence import Divergence, compared, first_difference
from exportlab.verification.divergence.tap_outputs import Observed
from fx2onnx.errors import shown_path

Exporter = Callable[..., torch.onnx.ONNXProgram]


class Mlp(nn.Module):
    """Two linear layers around a norm."""

    def __init__(self) -> None:
        super().__init__()
        self.up, self.norm, self.down = nn.Linear(8, 16), nn.LayerNorm(16), nn.Linear(16, 4)

    def forward(self, x: Tensor) -> Tensor:
        hidden = torch.tanh(self.up(x))
        return self.down(self.norm(hidden))


class ConvNet(nn.Module):
    """Two convolutions, the first with a batch norm, and a linear layer."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.norm, self.second = nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8), nn.Conv2d(8, 8, 3, stride=2)
        self.head = nn.Linear(8, 5)

    def forward(self, x: Tensor) -> Tensor:
        x = F.relu(self.norm(self.first(x)))
        x = F.relu(self.second(x))
        return self.head(F.max_pool2d(x, 3).mean((2, 3)))


class Block(nn.Module):
    """A transformer block."""

    def __init__(self) -> None:
        super().__init__()
        self.before, self.after = nn.LayerNorm(16), nn.LayerNorm(16)
        self.qkv, self.mix, self.up, self.down = nn.Linear(16, 48), nn.Linear(16, 16), nn.Linear(16, 32), nn.Linear(32, 16)

    def forward(self, x: Tensor) -> Tensor:
        batch, length, _ = x.shape
        query, key, value = (part.view(batch, length, 2, 8).transpose(1, 2) for part in self.qkv(self.before(x)).chunk(3, -1))
        scores = query @ key.transpose(-2, -1) / 8**0.5
        seen = scores.softmax(-1) @ value
        x = x + self.mix(seen.transpose(1, 2).reshape(batch, length, 16))
        return x + self.down(F.gelu(self.up(self.after(x))))


def official(model: nn.Module, args: tuple[Any, ...], **options: Any) -> torch.onnx.ONNXProgram:
    return torch.onnx.export(model.eval(), args, dynamo=True, verbose=False, **options)


def ours(model: nn.Module, args: tuple[Any, ...], **options: Any) -> torch.onnx.ONNXProgram:
    return to_onnx(model.eval(), args, **options)


EXPORTERS = pytest.mark.parametrize("exporter", [official, ours])
MODELS = {
    Mlp: (lambda n: torch.randn(n, 8), {0: "n"}),
    ConvNet: (lambda n: torch.randn(n, 3, 9, 9), {0: "n"}),
    Block: (lambda n: torch.randn(n, n + 2, 16), {0: "n", 1: "length"}),
}


@cache
def exported_once(kind: type[nn.Module], exporter: Exporter) -> torch.onnx.ONNXProgram:
    torch.manual_seed(0)
    make, moving = MODELS[kind]
    return exporter(kind(), (make(3),), dynamic_shapes=(moving,))


def exported(kind: type[nn.Module], exporter: Exporter) -> torch.onnx.ONNXProgram:
    """A file to spoil, whose weights are those of the one that others get."""
    program = exported_once(kind, exporter)
    return torch.onnx.ONNXProgram(program.model.clone(), program.exported_program)


def at_unseen_size(kind: type[nn.Module]) -> Tensor:
    torch.manual_seed(1)
    return MODELS[kind][0](5)


def nth(program: torch.onnx.ONNXProgram, op_type: str, number: int = 0) -> ir.Node:
    return [node for node in program.model.graph if node.op_type == op_type][number]


def set_attribute(node: ir.Node, name: str, value: Any) -> None:
    node.attributes[name] = ir.convenience.convert_attribute(name, value)


def become(node: ir.Node, op_type: str, *kept: str) -> None:
    node.op_type = op_type
    for name in [name for name in node.attributes if name not in kept]:
        del node.attributes[name]


def spoil_weight(program: torch.onnx.ONNXProgram, name: str) -> None:
    """One element of a weight, off by one; the module's own stays as it is."""
    (value,) = [v for found, v in program.model.graph.initializers.items() if found.startswith(name)]
    array = value.const_value.numpy().copy()
    array.flat[3] += 1
    value.const_value = ir.tensor(array, name=value.name)


def spoil_norm(program: torch.onnx.ONNXProgram) -> None:
    set_attribute(nth(program, "LayerNormalization"), "epsilon", 0.5)


def spoil_bias(program: torch.onnx.ONNXProgram) -> None:
    spoil_weight(program, "down.bias")


def replace_tanh(program: torch.onnx.ONNXProgram) -> None:
    nth(program, "Tanh").op_type = "Softsign"


def spoil_padding(program: torch.onnx.ONNXProgram) -> None:
    set_attribute(nth(program, "Conv"), "pads", [2, 2, 0, 0])


def spoil_filter(program: torch.onnx.ONNXProgram) -> None:
    spoil_weight(program, "second.weight")


def replace_pool(program: torch.onnx.ONNXProgram) -> None:
    become(nth(program, "MaxPool"), "AveragePool", "kernel_shape", "strides")


def spoil_softmax(program: torch.onnx.ONNXProgram) -> None:
    set_attribute(nth(program, "Softmax"), "axis", 1)


def spoil_mix(program: torch.onnx.ONNXProgram) -> None:
    spoil_weight(program, "mix.bias")


def replace_gelu(program: torch.onnx.ONNXProgram) -> None:
    become(nth(program, "Gelu"), "Relu")


PLANTED = [
    (Mlp, spoil_norm, "layer_norm", "LayerNormalization", "self.norm(hidden)"),
    (Mlp, spoil_bias, "linear_1", "Gemm", "self.down(self.norm(hidden))"),
    (Mlp, replace_tanh, "tanh", "Softsign", "torch.tanh"),
    (ConvNet, spoil_padding, "batch_norm", "Conv", "self.norm(self.first(x))"),
    (ConvNet, spoil_filter, "conv2d_1", "Conv", "self.second(x)"),
    (ConvNet, replace_pool, "max_pool2d", "AveragePool", "F.max_pool2d"),
    (Block, spoil_softmax, "softmax", "Softmax", "scores.softmax"),
    (Block, spoil_mix, "linear_1", "Add", "self.mix("),
    (Block, replace_gelu, "gelu", "Relu", "F.gelu"),
]

DECOMPOSED = {"batch_norm": "getitem"}  # what torch.onnx.export calls it after its decompositions


def line_of(kind: type[nn.Module], text: str) -> str:
    lines, start = inspect.getsourcelines(kind)
    (found,) = [number for number, line in enumerate(lines, start) if text in line]
    return f"{shown_path(__file__)}:{found} in forward"


@EXPORTERS
@pytest.mark.parametrize(("kind", "plant", "node", "op", "text"), PLANTED, ids=lambda value: getattr(value, "__name__", None))
def test_a_planted_defect_is_named(
    exporter: Exporter, kind: type[nn.Module], plant: Callable[..., None], node: str, op: str, text: str
) -> None:
    program = exported(kind, exporter)
    plant(program)
    found = first_difference(program, at_unseen_size(kind))
    assert found.node == (node if exporter is ours else DECOMPOSED.get(node, node))
    assert op in [n.op_type for n in found.first.onnx]
    assert found.first.line == line_of(kind, text)
    assert found.ranking[0] is found.first
    assert all(not row.difference.problem for row in found.rows if row is not found.first)
    assert f"diverges at {found.node}: " in repr(found)


@EXPORTERS
@pytest.mark.parametrize("kind", MODELS)
def test_a_right_file_does_not_part(exporter: Exporter, kind: type[nn.Module]) -> None:
    found = first_difference(exported(kind, exporter), at_unseen_size(kind))
    assert found.node is None
    assert found.first is None
    assert not found.alone.problem
    assert set(found.unaligned) <= {"conv2d", "transpose_1"}  # folded into a batch norm, and into another transposition
    assert "no difference; " in repr(found)


class Counted(nn.Module):
    """Writes into what it computed, into a view of it, and into a buffer."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("calls", torch.zeros(()))

    def forward(self, x: Tensor) -> Tensor:
        self.calls.add_(1)
        y = x * 2
        y[:, 1].mul_(3)
        return y.relu_() + self.calls


def test_values_are_compared_before_they_are_written_over() -> None:
    program = to_onnx(Counted().eval(), (torch.randn(3, 4),), dynamic_shapes=({0: "n"},), mutations="outputs")
    found = first_difference(program, torch.randn(5, 4))
    assert found.node is None
    assert [row.op for row in found.rows if "/write" in row.value] == ["add_", "mul_", "relu_"]
    assert program.exported_program.state_dict["calls"] == 0


class Rectified(nn.Module):
    """A product whose name an output may be given."""

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        y = x * 2
        return y.relu(), y.sin()


@EXPORTERS
def test_a_renamed_output_is_still_aligned_with_its_own_node(exporter: Exporter) -> None:
    program = exporter(Rectified(), (torch.randn(3, 4),), output_names=["mul_of", "sine"])
    nth(program, "Relu").op_type = "Tanh"
    found = first_difference(program, torch.randn(3, 4))
    assert found.node == "relu"
    assert found.first.value == "mul_of"
    assert not {"relu", "sin"} & set(found.unaligned)


def test_an_output_with_the_name_of_another_node_is_not_taken_for_its_value() -> None:
    program = to_onnx(Rectified().eval(), (torch.randn(3, 4),), output_names=["mul", "sine"])
    found = first_difference(program, torch.randn(3, 4))
    assert found.node is None
    assert found.unaligned == ("mul",)


class Twice(nn.Module):
    """The same value as two outputs, one of which a file has to copy."""

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        y = x.sin()
        return y, y


def test_a_copy_of_an_output_is_looked_at_as_well() -> None:
    program = to_onnx(Twice(), (torch.randn(3),))
    nth(program, "Identity").op_type = "Neg"
    found = first_difference(program, torch.randn(3))
    assert found.node == "sin"
    assert [(row.value, bool(row.difference.problem)) for row in found.rows] == [("sin", False), ("sin/2", True)]


class Branches(nn.Module):
    """A `cond`, whose values inside are not looked at."""

    def forward(self, x: Tensor) -> Tensor:
        return torch.cond(x.sum() > 0, lambda x: x.sin() * 2, lambda x: x.cos(), (x,)) + 1


@EXPORTERS
def test_what_comes_out_of_a_branch_is_looked_at(exporter: Exporter) -> None:
    program = exporter(Branches(), (torch.ones(3),))
    assert first_difference(program, torch.ones(3)).node is None
    for branch in nth(program, "If").attributes.values():
        for node in [n for n in branch.as_graph() if n.op_type == "Sin"]:
            node.op_type = "Tan"
    found = first_difference(program, torch.ones(3))
    assert found.node == "getitem"
    assert found.first.op == "cond[0]"
    assert [node.op_type for node in found.first.onnx][-1] == "If"


class Folded(nn.Module):
    """A dropout, which hands on its input, and a convolution that is folded into its batch norm."""

    def __init__(self) -> None:
        super().__init__()
        self.conv, self.norm = nn.Conv2d(2, 2, 1), nn.BatchNorm2d(2)

    def forward(self, x: Tensor) -> Tensor:
        return self.norm(self.conv(F.dropout(x, 0.5, self.training).relu()))


@EXPORTERS
def test_what_has_no_value_in_the_file_is_listed(exporter: Exporter) -> None:
    program = exporter(Folded(), (torch.randn(2, 2, 3, 3),))
    spoil_weight(program, "conv.weight")
    found = first_difference(program, torch.randn(2, 2, 3, 3))
    assert found.same == ("dropout" if exporter is ours else "clone",)
    assert found.unaligned == ("conv2d",)
    assert found.first.through == ("conv2d",)
    told = repr(found).replace("\n", " ")
    assert f"or before it in conv2d: only the call is known, {found.first.line}" in told
    assert "3 of 4 captured nodes aligned, not conv2d" in told


def test_a_dtype_that_differs_parts() -> None:
    program = official(Angles(), (torch.tensor([1, -2]),))
    found = first_difference(program, torch.tensor([1, -2]))
    assert found.node == "angle"
    assert (found.first.expected, found.first.actual) == ("f32[2]", "i64[2]")


class Angles(nn.Module):
    """The angle of integers, a float."""

    def forward(self, n: Tensor) -> Tensor:
        return torch.angle(n)


def test_a_file_on_disk_can_be_held_against_the_captured_graph(tmp_path: Path) -> None:
    program = exported(Mlp, ours)
    right, wrong = tmp_path / "right.onnx", tmp_path / "wrong.onnx"
    program.save(right)
    replace_tanh(program)
    program.save(wrong)
    x = at_unseen_size(Mlp)
    assert compared(program.exported_program, right, (x,)).node is None
    assert compared(program.exported_program, wrong, (x,)).node == "tanh"


def test_tolerances_are_those_given() -> None:
    program = exported(Mlp, ours)
    spoil_weight(program, "down.bias")
    lax = {torch.float32: (0.0, 3.0)}
    assert compared(program.exported_program, program.model, (at_unseen_size(Mlp),), tolerances=lax).node is None
    assert first_difference(program, at_unseen_size(Mlp), tolerances=lax).node is None
    assert first_difference(program, at_unseen_size(Mlp)).node == "linear_1"


def test_weights_are_neither_written_into_the_model_nor_copied() -> None:
    program = ours(nn.Linear(64, 64), (torch.randn(2, 64),))
    observed = Observed(program.model, by_signature(program.exported_program), ())
    (array,) = observed._weights.values()
    weight = program.exported_program.state_dict["weight"]
    assert array.ctypes.data == weight.data_ptr()
    assert len(ir.to_proto(observed.model).SerializeToString()) < weight.nbytes / 4
    assert program.model.graph.initializers["weight"].const_value.numpy().shape == (64, 64)


@EXPORTERS
def test_the_result_is_headed_by_who_wrote_the_file_and_fits_a_page(exporter: Exporter) -> None:
    program = exported(Block, exporter)
    spoil_softmax(program)
    told = repr(first_difference(program, at_unseen_size(Block)))
    assert told.startswith("to_onnx: diverges at softmax" if exporter is ours else "torch.onnx.export: diverges at softmax")
    assert max(map(len, told.splitlines())) <= 100
    assert "rtol 0.0001, atol 1e-05" in told.replace("\n", " ")


def test_what_export_returns_remembers_its_capture() -> None:
    artifact = export("to_onnx", Mlp().eval(), (torch.randn(2, 8),))
    nth(artifact, "Tanh").op_type = "Softsign"
    assert first_difference(artifact, torch.randn(2, 8)).node == "tanh"


def test_an_output_that_only_differs_when_fused_is_told() -> None:
    found = Divergence((), (), (), Difference(1.0, "output[0]: 2 where eager has 1"))
    assert found.node is None
    assert "the outputs do when ONNX Runtime may fuse nodes: [0]: 2 where eager has 1" in found._table().title


def test_what_does_not_remember_its_capture_is_refused() -> None:
    x = torch.randn(2, 8)
    with pytest.raises(TypeError, match="this OnnxArtifact doesn't contain the captured graph"):
        first_difference(export("torchscript", Mlp().eval(), (x,)), x)
    with pytest.raises(TypeError, match="this ONNXProgram doesn't contain the captured graph"):
        first_difference(torch.onnx.ONNXProgram(exported(Mlp, ours).model, None), x)
    with pytest.raises(TypeError, match="exported for arguments like"):
        first_difference(exported(Mlp, ours), x, x)


def test_a_file_with_blocks_as_functions_is_refused() -> None:
    stack = nn.Sequential(Mlp(), nn.Linear(4, 8), Mlp())
    program = to_onnx(stack.eval(), (torch.randn(2, 8),), functions=(Mlp,))
    with pytest.raises(ValueError, match="export it without"):
        first_difference(program, torch.randn(2, 8))


def test_an_input_may_have_a_name_of_python_s_own() -> None:
    model = nn.Sequential(nn.Linear(4, 3), nn.ReLU()).eval()
    program = to_onnx(model, (torch.randn(2, 4),), capture="run")
    assert first_difference(program, torch.randn(2, 4)).node is None
    spoil_weight(program, "0.weight")
    assert first_difference(program, torch.randn(2, 4)).first.line == "module 0 (Linear)", "no line of the exporter's own"


class Halved(nn.Module):
    """Sizes that are computed, and a loop over rows."""

    def forward(self, x: Tensor) -> Tensor:
        h, seen = torch.zeros(2), []
        for row in x.reshape(2 * x.shape[0], 2):
            h = h * 0.5 + row
            seen.append(h)
        return torch.stack(seen).sin().reshape(x.shape[0], -1) / x.shape[0]


def test_a_program_that_was_captured_by_running_is_called_at_the_sizes_given() -> None:
    program = to_onnx(Halved(), (torch.randn(3, 4),), dynamic_shapes=({0: "rows"},), capture="run")
    assert first_difference(program, torch.randn(7, 4)).node is None
    next(node for node in program.model.graph if node.op_type == "Sin").op_type = "Cos"
    found = first_difference(program, torch.randn(7, 4))
    assert (found.node, found.first.expected) == ("sin", "f32[14, 2]")


class LongRow(nn.Module):
    """The length of a row, in half precision: its square does not fit, its root does."""

    def forward(self, x: Tensor) -> Tensor:
        return (x * x).sum(-1, keepdim=True).sqrt()


def test_half_precision_is_told_where_float32_may_end() -> None:
    """The sum has to stay wide with the product, and the root goes back."""
    x = torch.full((2, 8), 300.0, dtype=torch.float16)
    said = " ".join(repr(first_difference(to_onnx(LongRow(), (x,)), x)).split())
    assert "with mul in float32, and back after sum_1, that would be inf" in said
    assert "with mul, sum_1 in float32, and back after sqrt, <0.1" in said


def test_a_file_is_judged_as_it_runs() -> None:
    """With every value asked for, the product overflows; as the file runs, ONNX Runtime leaves the rounding out."""
    x = torch.full((2, 8), 300.0, dtype=torch.float16)
    found = first_difference(torch.onnx.export(LongRow(), (x,), dynamo=True, verbose=False), x)
    assert found.outputs.file < 1 < found.outputs.eager
    assert "the outputs change when ONNX Runtime may fuse nodes" in " ".join(repr(found).split())


class SquaredRow(nn.Module):
    """The same by `square`, which the official exporter sums in float32 and takes back to float16 before the root."""

    def forward(self, x: Tensor) -> Tensor:
        return x / x.square().sum(-1, keepdim=True).sqrt()


@EXPORTERS
def test_what_overflows_only_behind_another_overflow_is_named_with_it(exporter: Exporter) -> None:
    x = torch.full((2, 300), 300.0, dtype=torch.float16)
    found = first_difference(exporter(SquaredRow().eval(), (x,)), x)
    assert len([row for row in found.rows if row.named]) == 2
    assert found.outputs.repaired < 1 < found.outputs.eager
    assert "in float32, and back after sqrt, <0.1" in " ".join(repr(found).split())
