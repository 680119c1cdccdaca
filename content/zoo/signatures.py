"""Arguments and results of `forward` other than one tensor. Caches are in caches."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn

from exportlab.cases import Declaration, case
from exportlab.specs import BuiltSpec, built, tensor


def of_batch(number: Callable[[int], Any]) -> BuiltSpec:
    """Convert the batch size to a Python value, so that it differs at each size."""
    return built(lambda rows: number(len(rows)), tensor("batch"))


@case(dims={"batch": (4, 7, 1, 0)}, topics=("signature", "containers"))
def nested() -> Declaration:
    """Nested dicts, lists and tuples: are all leaves in their places, as inputs and outputs?"""

    class Nested(nn.Module):
        def forward(self, state: dict[str, Tensor], pairs: list[tuple[Tensor, Tensor]]) -> dict[str, object]:
            (a, b), (c, d) = pairs
            return {"total": state["x"] + state["y"], "parts": [a - b, (c * d, a)]}

    row = [tensor("batch", 3) for _ in range(6)]
    return Nested(), ({"x": row[0], "y": row[1]}, [(row[2], row[3]), (row[4], row[5])])


@case(dims={"batch": (4, 7, 1, 0)}, topics=("signature", "None"))
def optional() -> Declaration:
    """An argument and an output are None: do the others keep their positions?"""

    class Optional(nn.Module):
        def forward(self, x: Tensor, bias: Tensor | None, scale: Tensor | None) -> tuple[Tensor, None, Tensor]:
            y = x if bias is None else x + bias
            return y * 2, None, y if scale is None else y * scale

    return Optional(), (tensor("batch", 3), None, tensor(3))


@case(dims={"batch": (4, 7, 1, 0)}, topics=("signature", "Python values"))
def python_numbers() -> Declaration:
    """An int, a float and a bool among the arguments: are they inputs, or specialised?"""

    class Scaled(nn.Module):
        def forward(self, x: Tensor, axis: int, scale: float, negate: bool) -> Tensor:
            y = x.cumsum(axis) * scale
            return -y if negate else y

    return Scaled(), (tensor("batch", 3), 1, 2.5, True)


@dataclass
class Point:
    """Two named tensors; an input and an output of `dataclasses_both_ways`."""

    x: Tensor
    y: Tensor


@cache
def register_point() -> None:
    """Register `Point` with torch.export as a container, once."""
    torch.export.register_dataclass(Point, serialized_type_name="content.zoo.Point")


@case(dims={"batch": (4, 7, 1, 0)}, topics=("signature", "containers"))
def dataclasses_both_ways() -> Declaration:
    """A dataclass is input and output: is it rebuilt?"""
    register_point()

    class Swap(nn.Module):
        def forward(self, point: Point) -> Point:
            return Point(point.y * 2, point.x + point.y)

    return Swap(), (built(Point, tensor("batch", 2), tensor("batch", 2)),)


@case(dims={"batch": (4, 7, 1, 0)}, topics=("signature", "keywords"))
def keywords() -> Declaration:
    """Keyword arguments in another order than in `forward`: does each reach its parameter?"""

    class Keywords(nn.Module):
        def forward(self, x: Tensor, y: Tensor, *, scale: Tensor, shift: Tensor) -> Tensor:
            return (x - y) * scale + shift

    rows = tensor("batch", 3)
    return Keywords(), (rows,), {"shift": tensor(3), "scale": tensor(3), "y": tensor("batch", 3)}


@case(dims={"batch": (4, 7, 1, 0)}, topics=("signature", "silence"))
def same_tensor_thrice() -> Declaration:
    """The example passes one tensor as all three arguments: are there three inputs?"""

    class Weighted(nn.Module):
        def forward(self, x: Tensor, y: Tensor, z: Tensor) -> Tensor:
            return x + 2 * y + 3 * z

    x = tensor("batch", 3)
    return Weighted(), (x, x, x)


@case(dims={"batch": (4, 7, 1, 0)}, topics=("signature",))
def unused_input() -> Declaration:
    """An argument isn't used: is it still an input of the exported model?"""

    class Unused(nn.Module):
        def forward(self, x: Tensor, unused: Tensor, y: Tensor) -> Tensor:
            return x - y

    return Unused(), (tensor("batch", 3), tensor("batch", 2), tensor("batch", 3))


@case(dims={"batch": (4, 7, 1, 0)}, topics=("signature", "keywords"))
def further_keywords() -> Declaration:
    """`**extra` accepts any keywords: do they become inputs with dynamic axes?"""

    class FurtherKeywords(nn.Module):
        def forward(self, x: Tensor, **extra: Tensor) -> Tensor:
            return (x - extra["shift"]) * extra["scale"]

    return FurtherKeywords(), (tensor("batch", 3),), {"scale": tensor("batch", 1), "shift": tensor("batch", 3)}


@case(dims={"batch": (4, 7, 1, 0)}, topics=("signature", "keywords"))
def further_positions() -> Declaration:
    """`*terms` accepts any number of tensors: are those of the example separate inputs?"""

    class FurtherPositions(nn.Module):
        def forward(self, *terms: Tensor, scale: Tensor) -> Tensor:
            return sum(i * term for i, term in enumerate(terms, 1)) * scale

    return FurtherPositions(), (tensor("batch", 3), tensor("batch", 1), tensor(3)), {"scale": tensor(3)}


@case(dims={"batch": (4, 7, 1, 0)}, topics=("signature", "None", "keywords"))
def optional_left_out() -> Declaration:
    """The example gives only the second of two optional arguments: does it reach the right parameter?"""

    class Prompted(nn.Module):
        def forward(self, x: Tensor, points: Tensor | None = None, box: Tensor | None = None) -> Tensor:
            y = x if points is None else x + points
            return y if box is None else y * box

    return Prompted(), (tensor("batch", 3),), {"box": tensor("batch", 3)}


@case(dims={"batch": (4, 7, 1, 0)}, topics=("signature", "Python values"))
def defaults() -> Declaration:
    """One number keeps its default, the next doesn't: which value is in the exported model?"""

    class Defaults(nn.Module):
        def forward(self, x: Tensor, scale: float = 0.5, shift: float = 1.0) -> Tensor:
            return x * scale + shift

    return Defaults(), (tensor("batch", 3),), {"shift": -3.0}


@case(dims={"batch": (4, 7, 1, 0)}, topics=("signature", "Python values", "silence"))
def float_that_moves() -> Declaration:
    """A float differs at each call: is the example's value specialised?"""

    class Scaled(nn.Module):
        def forward(self, x: Tensor, scale: float) -> Tensor:
            return x * scale

    return Scaled(), (tensor("batch", 3), of_batch(lambda rows: 0.5 + rows))


@case(dims={"batch": (4, 7, 1, 0)}, topics=("signature", "Python values", "silence"))
def int_that_moves() -> Declaration:
    """An int sets the number of repetitions: is the output size specialised to the example?"""

    class Repeated(nn.Module):
        def forward(self, x: Tensor, times: int) -> Tensor:
            return x.repeat(1, times)

    return Repeated(), (tensor("batch", 3), of_batch(lambda rows: 2 + rows))


@case(dims={"batch": (4, 7, 1, 0)}, topics=("signature", "Python values", "branches", "silence"))
def flag_that_moves() -> Declaration:
    """A bool selects the formula: can a caller still select the other one?"""

    class Chosen(nn.Module):
        def forward(self, x: Tensor, negate: bool) -> Tensor:
            return -x if negate else x * 2

    return Chosen(), (tensor("batch", 3), of_batch(lambda rows: rows % 2 == 0))


@case(dims={"batch": (4, 7, 1, 0)}, topics=("signature", "Python values", "branches"))
def string_argument() -> Declaration:
    """A string selects the computation: is it treated as a constant?"""

    class Activated(nn.Module):
        def forward(self, x: Tensor, how: str) -> Tensor:
            return x.tanh() if how == "tanh" else x.exp()

    return Activated(), (tensor("batch", 3), "exp")


@case(dims={"batch": (4, 7, 1, 0)}, topics=("signature", "Python values", "dtypes"))
def dtype_argument() -> Declaration:
    """A dtype selects the result's type: is it treated as a constant?"""

    class Cast(nn.Module):
        def forward(self, x: Tensor, dtype: torch.dtype) -> Tensor:
            return x.to(dtype) / 3

    return Cast(), (tensor("batch", 3), torch.float64)


@case(dims={"batch": (4, 7, 1, 0)}, topics=("signature",))
def number_as_tensor() -> Declaration:
    """A number is passed as a tensor without axes: is it an input?"""

    class Scaled(nn.Module):
        def forward(self, x: Tensor, scale: Tensor) -> Tensor:
            return x * scale + 1

    return Scaled(), (tensor("batch", 3), tensor())


@case(dims={"first": (4, 7, 1, 0), "second": (3, 2, 1, 5)}, topics=("signature", "containers"))
def list_of_tensors() -> Declaration:
    """A list of two tensors with their own sizes: are both dynamic and independent?"""

    class Joined(nn.Module):
        def forward(self, pieces: list[Tensor]) -> Tensor:
            return torch.cat(pieces) - pieces[1].sum(0)

    return Joined(), ([tensor("first", 3), tensor("second", 3)],)


@case(dims={"length": (4, 6, 1)}, topics=("signature", "containers"))
def list_of_any_length() -> Declaration:
    """A list is longer at the next call: is it refused, or are the extra tensors dropped?"""

    class Summed(nn.Module):
        def forward(self, x: Tensor, pieces: list[Tensor]) -> Tensor:
            return x.sum(0) + torch.stack(pieces).sum(0)

    return Summed(), (tensor("length", 3), built(lambda x: list(x.unbind()), tensor("length", 3)))


@case(dims={"batch": (4, 7, 1, 0)}, topics=("signature", "containers"))
def keys_out_of_order() -> Declaration:
    """The keys of a dict are unsorted, in input and output: does each value keep its key?"""

    class Turned(nn.Module):
        def forward(self, state: dict[str, Tensor], scale: Tensor) -> dict[str, Tensor]:
            return {"z": state["a"] - state["m"], "b": state["z"] * scale, "y": state["m"] + 1}

    return Turned(), ({"z": tensor("batch", 3), "a": tensor("batch", 3), "m": tensor("batch", 3)}, tensor(3))


@case(dims={"batch": (4, 7, 1, 0)}, topics=("signature", "containers", "keywords"))
def dict_as_last_argument() -> Declaration:
    """The last positional argument is a dict: is it mistaken for the keyword arguments?"""

    class Looked(nn.Module):
        def forward(self, x: Tensor, state: dict[str, Tensor]) -> Tensor:
            return x * state["scale"] + state["shift"]

    return Looked(), (tensor("batch", 3), {"scale": tensor(3), "shift": tensor("batch", 3)})


@case(dims={"batch": (4, 7, 1, 0)}, topics=("signature", "containers"))
def empty_containers() -> Declaration:
    """Empty lists and dicts among arguments and outputs: do they take up a position?"""

    class Empty(nn.Module):
        def forward(self, x: Tensor, extras: list[Tensor], state: dict[str, Tensor], y: Tensor) -> tuple[object, ...]:
            return x - y, [], sum(extras, y * 2)

    return Empty(), (tensor("batch", 3), [], {}, tensor("batch", 3))


class Moments(NamedTuple):
    """Mean and spread; an input and an output of `namedtuples_both_ways`."""

    mean: Tensor
    spread: Tensor


@case(dims={"batch": (4, 7, 1, 0)}, topics=("signature", "containers"))
def namedtuples_both_ways() -> Declaration:
    """A namedtuple is input and output: is it rebuilt, or returned as a plain tuple?"""

    class Standardized(nn.Module):
        def forward(self, x: Tensor, moments: Moments) -> Moments:
            y = (x - moments.mean) / moments.spread.abs().add(1)
            return Moments(y, y.abs())

    return Standardized(), (tensor("batch", 3), Moments(tensor("batch", 1), tensor(3)))


@dataclass
class Settings:
    """An object that isn't registered; an input of `unregistered_dataclass`."""

    scale: float


@case(dims={"batch": (4, 7, 1, 0)}, topics=("signature", "containers"))
def unregistered_dataclass() -> Declaration:
    """An unregistered dataclass contains a number: does the error explain what to do?"""

    class Configured(nn.Module):
        def forward(self, x: Tensor, settings: Settings) -> Tensor:
            return x * settings.scale

    return Configured(), (tensor("batch", 3), Settings(2.5))
