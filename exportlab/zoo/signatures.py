"""What a `forward` may take and return besides one tensor. Not here: caches, which are in transformers."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import torch
from torch import Tensor, nn

from .case import Declaration, case
from .specs import built, tensor


@case(dims={"batch": (4, 7, 1, 0)}, topics=("signature", "containers"))
def nested() -> Declaration:
    """Dicts, lists and tuples in each other: do all leaves find their places, in and out?"""

    class Nested(nn.Module):
        def forward(self, state: dict[str, Tensor], pairs: list[tuple[Tensor, Tensor]]) -> dict[str, object]:
            (a, b), (c, d) = pairs
            return {"total": state["x"] + state["y"], "parts": [a - b, (c * d, a)]}

    row = [tensor("batch", 3) for _ in range(6)]
    return Nested(), ({"x": row[0], "y": row[1]}, [(row[2], row[3]), (row[4], row[5])])


@case(dims={"batch": (4, 7, 1, 0)}, topics=("signature", "None"))
def optional() -> Declaration:
    """An argument is None and so is an output: do the others keep their places?"""

    class Optional(nn.Module):
        def forward(self, x: Tensor, bias: Tensor | None, scale: Tensor | None) -> tuple[Tensor, None, Tensor]:
            y = x if bias is None else x + bias
            return y * 2, None, y if scale is None else y * scale

    return Optional(), (tensor("batch", 3), None, tensor(3))


@case(dims={"batch": (4, 7, 1, 0)}, topics=("signature", "Python values"))
def python_numbers() -> Declaration:
    """An int, a float and a bool among the arguments: are they inputs of the file or burnt into it?"""

    class Scaled(nn.Module):
        def forward(self, x: Tensor, axis: int, scale: float, negate: bool) -> Tensor:
            y = x.cumsum(axis) * scale
            return -y if negate else y

    return Scaled(), (tensor("batch", 3), 1, 2.5, True)


@dataclass
class Point:
    """Two tensors under names; an input and an output of `dataclasses_both_ways`."""

    x: Tensor
    y: Tensor


@cache
def register_point() -> None:
    """Tells torch.export, once, that a `Point` is a container."""
    torch.export.register_dataclass(Point, serialized_type_name="exportlab.zoo.Point")


@case(dims={"batch": (4, 7, 1, 0)}, topics=("signature", "containers"))
def dataclasses_both_ways() -> Declaration:
    """A dataclass goes in and one comes out: is it rebuilt?"""
    register_point()

    class Swap(nn.Module):
        def forward(self, point: Point) -> Point:
            return Point(point.y * 2, point.x + point.y)

    return Swap(), (built(Point, tensor("batch", 2), tensor("batch", 2)),)


@case(dims={"batch": (4, 7, 1, 0)}, topics=("signature", "keywords"))
def keywords() -> Declaration:
    """Keyword arguments in another order than `forward` has them: does each reach its own name?"""

    class Keywords(nn.Module):
        def forward(self, x: Tensor, y: Tensor, *, scale: Tensor, shift: Tensor) -> Tensor:
            return (x - y) * scale + shift

    rows = tensor("batch", 3)
    return Keywords(), (rows,), {"shift": tensor(3), "scale": tensor(3), "y": tensor("batch", 3)}


@case(dims={"batch": (4, 7, 1, 0)}, topics=("signature", "silence"))
def same_tensor_thrice() -> Declaration:
    """The example passes one tensor as all three arguments: are they three inputs afterwards?"""

    class Weighted(nn.Module):
        def forward(self, x: Tensor, y: Tensor, z: Tensor) -> Tensor:
            return x + 2 * y + 3 * z

    x = tensor("batch", 3)
    return Weighted(), (x, x, x)


@case(dims={"batch": (4, 7, 1, 0)}, topics=("signature",))
def unused_input() -> Declaration:
    """An argument that nothing reads: is it still an input of the file?"""

    class Unused(nn.Module):
        def forward(self, x: Tensor, unused: Tensor, y: Tensor) -> Tensor:
            return x - y

    return Unused(), (tensor("batch", 3), tensor("batch", 2), tensor("batch", 3))
