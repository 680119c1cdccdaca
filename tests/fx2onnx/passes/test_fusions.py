"""Chains that ONNX Runtime computes in one kernel: written as one node where that is the same, and left alone where it is not."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from pathlib import Path

import onnx
import onnxruntime
import pytest
import torch
import torch.nn.functional as F
from torch import Tensor, nn

from exportlab.verification.verify import verify
from fx2onnx import to_onnx

HEADS, SHARED, WIDTH = 4, 2, 8
ALL = HEADS * WIDTH


class Norm(nn.Module):
    """An RMS norm as Llama has it."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.linspace(0.5, 2, ALL))

    def forward(self, x: Tensor) -> Tensor:
        wide = x.to(torch.float32)
        normed = wide * torch.rsqrt(wide.pow(2).mean(-1, keepdim=True) + 1e-6)
        return self.weight * normed.to(x.dtype)


class Attending(nn.Module):
    """Attention of grouped heads at positions after a cache, as Llama has it."""

    speeds: Tensor

    def __init__(self) -> None:
        super().__init__()
        self.norm = Norm()
        self.q, self.k, self.v = nn.Linear(ALL, ALL), nn.Linear(ALL, SHARED * WIDTH), nn.Linear(ALL, SHARED * WIDTH)
        self.out = nn.Linear(ALL, ALL, bias=False)
        self.register_buffer("speeds", torch.linspace(0.1, 1, WIDTH // 2))

    def forward(self, x: Tensor, past_k: Tensor, past_v: Tensor, mask: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        x = self.norm(x)
        q, k, v = (layer(x).unflatten(-1, (-1, WIDTH)).transpose(1, 2) for layer in (self.q, self.k, self.v))
        angles = (torch.arange(x.shape[1]) + past_k.shape[2])[None, :, None] * self.speeds
        table = torch.cat([angles, angles], -1)
        cos, sin = table.cos()[:, None], table.sin()[:, None]
        q, k = turned(q, cos, sin), turned(k, cos, sin)
        k, v = torch.cat([past_k, k], 2), torch.cat([past_v, v], -2)
        made = F.scaled_dot_product_attention(q, repeated(k), repeated(v), attn_mask=mask)
        return self.out(made.transpose(1, 2).flatten(2)), k, v


def turned(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    """A rotary embedding."""
    half = x.shape[-1] // 2
    return x * cos + torch.cat([-x[..., half:], x[..., :half]], -1) * sin


def repeated(x: Tensor) -> Tensor:
    """Each head as often as heads of queries share it."""
    batch, heads, length, width = x.shape
    return x[:, :, None].expand(batch, heads, HEADS // heads, length, width).reshape(batch, HEADS, length, width)


def example(batch: int, length: int, past: int) -> tuple[Tensor, ...]:
    """Arguments; the second row of the mask hides everything where there is one."""
    mask = torch.rand(batch, 1, length, past + length) > 0.3
    mask[:, :, 1:2] = False
    caches = (torch.randn(batch, SHARED, past, WIDTH) for _ in range(2))
    return (torch.randn(batch, length, ALL), *caches, mask)


MOVING = ({0: "batch", 1: "seq"}, {0: "batch", 2: "past"}, {0: "batch", 2: "past"}, {0: "batch", 2: "seq", 3: "past+seq"})


def counted(module: nn.Module, args: tuple[Tensor, ...], opset: int, **options: object) -> Counter[str]:
    """The nodes of its file, which is right."""
    program = to_onnx(module, args, opset_version=opset, **options)  # type: ignore[arg-type]
    verify(program, module, [args]).check()
    return Counter(node.op_type for node in program.model.graph)


def test_attention_after_a_cache_is_one_node_between_its_linear_layers() -> None:
    module = Attending().eval()
    program = to_onnx(module, example(2, 3, 4), dynamic_shapes=MOVING, opset_version=23)
    verify(program, module, [example(2, 3, 4), example(3, 5, 1), example(1, 1, 7), example(1, 4, 0)]).check()
    nodes = Counter(node.op_type for node in program.model.graph)
    assert (nodes["Attention"], nodes["RotaryEmbedding"], nodes["RMSNormalization"]) == (1, 2, 1)
    assert not {"Transpose", "Reshape", "Softmax", "Pow"} & set(nodes)
    assert len(next(node for node in program.model.graph if node.op_type == "Attention").outputs) == 3


@pytest.mark.parametrize("opset", [18, 20, 22])
def test_onnxruntime_fuses_the_norm_of_older_opsets(opset: int, tmp_path: Path) -> None:
    to_onnx(Norm(), (torch.randn(2, 3, ALL),), tmp_path / "norm.onnx", opset_version=opset)
    options = onnxruntime.SessionOptions()
    options.optimized_model_filepath = str(tmp_path / "optimised.onnx")
    onnxruntime.InferenceSession(tmp_path / "norm.onnx", options)
    assert [node.op_type for node in onnx.load(tmp_path / "optimised.onnx").graph.node] == ["SimplifiedLayerNormalization"]


@pytest.mark.parametrize("opset", [18, 23])
@pytest.mark.parametrize("dtype", [torch.float32, torch.float16, torch.bfloat16, torch.float64])
def test_a_norm_of_any_dtype_is_right(dtype: torch.dtype, opset: int) -> None:
    module, x = Norm().to(dtype), torch.randn(2, 3, ALL).to(dtype)
    nodes = counted(module, (x,), opset)
    assert nodes["RMSNormalization"] == (opset == 23 and dtype in (torch.float32, torch.float16))


def inverse_root(x: Tensor, power: int = 2, axis: int = -1) -> Tensor:
    return torch.rsqrt(x.pow(power).mean(axis, keepdim=True) + 1e-6)


X, Y, ONES = torch.randn(2, ALL), torch.randn(2, ALL), torch.ones(ALL)
HALVES = (torch.randn(2, 3, 5, 8), torch.randn(2, 5, 8), torch.randn(2, 5, 8))
OTHERS: dict[str, tuple[Callable[..., object], tuple[Tensor, ...], str]] = {
    "of another": (lambda x, y: y * inverse_root(x) * ONES, (X, Y), "Div"),
    "along another axis": (lambda x: x * inverse_root(x, axis=0) * ONES, (X,), "Div"),
    "cubes": (lambda x: x * inverse_root(x, power=4) * ONES, (X,), "Div"),
    "scale of rows": (lambda x: x * inverse_root(x) * torch.ones(2, 1), (X,), "RMSNormalization"),
    "other halves": (lambda x, cos, sin: turned(x, cos[:, None], sin[:, None]), HALVES, "RotaryEmbedding"),
}


def squares_kept(x: Tensor) -> tuple[Tensor, Tensor]:
    root = inverse_root(x)
    return x * root * ONES, root


class Called(nn.Module):
    """A function as a module."""

    def __init__(self, function: Callable[..., object]) -> None:
        super().__init__()
        self.function = function

    def forward(self, *args: Tensor) -> object:
        return self.function(*args)


@pytest.mark.parametrize("name", OTHERS)
def test_what_only_looks_alike_is_left_alone(name: str) -> None:
    function, args, fused = OTHERS[name]
    assert not counted(Called(function), args, 23)[fused]


def test_a_root_that_is_a_result_stays_one() -> None:
    nodes = counted(Called(squares_kept), (torch.randn(2, ALL),), 23)
    assert (nodes["RMSNormalization"], nodes["Reciprocal"]) == (1, 1)


def test_a_cache_that_is_measured_before_the_attention_stays_a_concat() -> None:
    def measured(x: Tensor, past: Tensor) -> tuple[Tensor, Tensor]:
        k, v = torch.cat([past, x], 2), torch.cat([past, x.tanh()], 2)
        return F.scaled_dot_product_attention(x, k, v, attn_mask=k[..., 0][:, :, None] > 0), v

    args = (torch.randn(2, 3, 4, 8), torch.randn(2, 3, 5, 8))
    assert counted(Called(measured), args, 23)["Concat"] == 2


def test_equal_blocks_hold_fused_nodes_too() -> None:
    module = nn.Sequential(*(Norm() for _ in range(3)))
    program = to_onnx(module, (torch.randn(2, 3, ALL),), dynamic_shapes=({0: "batch"},), opset_version=23, functions=(Norm,))
    verify(program, module, [(torch.randn(2, 3, ALL),), (torch.randn(5, 3, ALL),)]).check()
    [body] = program.model.functions.values()
    assert [node.op_type for node in body if node.op_type != "Constant"] == ["RMSNormalization"]
