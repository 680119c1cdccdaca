"""Name collisions: of arguments, attributes, submodules, keys, and values in the exported model."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from exportlab.cases import Declaration, case
from exportlab.specs import tensor


class Shift(nn.Module):
    """Adds its own weight, so that shifts can be told apart."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.randn(3))

    def forward(self, x: Tensor) -> Tensor:
        return x * 2 + self.weight


class Shifts(nn.Module):
    """Shifts with the given names, applied in order."""

    def __init__(self, *names: str) -> None:
        super().__init__()
        for name in names:
            self.add_module(name, Shift())

    def forward(self, x: Tensor) -> Tensor:
        for shift in self.children():
            x = shift(x)
        return x


@case(dims={"batch": (4, 7, 1, 0)}, topics=("names", "silence"))
def attribute_named_mean() -> Declaration:
    """A buffer is called `mean`, and the model computes a mean: are they two values?"""

    class Centered(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("mean", torch.randn(3))

        def forward(self, x: Tensor) -> Tensor:
            return (x - x.mean(-1, keepdim=True)) * self.mean

    return Centered(), (tensor("batch", 3),)


@case(dims={"batch": (4, 7, 1, 0)}, topics=("names", "silence"))
def attributes_named_like_ops() -> Declaration:
    """Buffers are called `linear`, `relu`, `add_1`: are they confused with results of that name?"""

    class NamedLikeOps(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            for name in ("linear", "relu", "add", "add_1"):
                self.register_buffer(name, torch.randn(3))

        def forward(self, x: Tensor) -> Tensor:
            y = torch.relu(x + self.add) * self.relu
            return nn.functional.linear(y + self.add_1, self.linear[None])

    return NamedLikeOps(), (tensor("batch", 3),)


@case(dims={"batch": (4, 7, 1, 0)}, topics=("names", "silence"))
def arguments_named_like_ops() -> Declaration:
    """Arguments are called `softmax`, `mul` and `add`, and all three are computed: does each stay an input?"""

    class NamedLikeOps(nn.Module):
        def forward(self, softmax: Tensor, mul: Tensor, add: Tensor) -> Tensor:
            return softmax.softmax(-1) * mul + add

    return NamedLikeOps(), (tensor("batch", 3), tensor("batch", 3), tensor(3))


@case(dims={"batch": (4, 7, 1, 0)}, topics=("names", "silence"))
def arguments_named_like_values() -> Declaration:
    """Arguments are called `val_0`, `val_1`, `val_2`, like exporters' inner values: are they kept apart?"""

    class NamedLikeValues(nn.Module):
        def forward(self, val_0: Tensor, val_1: Tensor, val_2: Tensor) -> Tensor:
            return torch.cat([val_0[:, -2:], val_1.roll(1, 1), val_2[:, 1:]], 1)

    return NamedLikeValues(), (tensor("batch", 3), tensor("batch", 4), tensor("batch", 5))


@case(dims={"batch": (4, 7, 1, 0)}, topics=("names", "silence"))
def arguments_named_inside_functions() -> Declaration:
    """Arguments are called `tmp`, `first`, `second`, `beta`, like values in onnxscript functions: do they collide?"""

    class NamedInside(nn.Module):
        def forward(self, tmp: Tensor, first: Tensor, second: Tensor, beta: Tensor) -> Tensor:
            return nn.functional.softplus(tmp, 2.0) * nn.functional.glu(first) - second + beta

    return NamedInside(), (tensor("batch", 3), tensor("batch", 6), tensor("batch", 3), tensor(3))


@case(dims={"batch": (4, 7, 1, 0)}, topics=("names", "silence"))
def buffers_named_like_values() -> Declaration:
    """Buffers are called `val_0` to `val_9`, like exporters' inner values: does a result overwrite a weight?"""

    class NamedLikeValues(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            for i in range(10):
                self.register_buffer(f"val_{i}", torch.randn(3))

        def forward(self, x: Tensor) -> Tensor:
            for weight in self.buffers():
                x = x.roll(1, 1)[:, -3:] * 2 + weight
            return x

    return NamedLikeValues(), (tensor("batch", 3),)


@case(dims={"batch": (4, 7, 1, 0)}, topics=("names", "silence"))
def arguments_named_like_numbers_of_values() -> Declaration:
    """Arguments are called `add_1` and `add_2`, and there are three additions: which value gets the name?"""

    class Added(nn.Module):
        def forward(self, add_2: Tensor, add_1: Tensor) -> Tensor:
            return ((add_1 + 1) * 2 + add_2) * 3 + add_1

    return Added(), (tensor("batch", 3), tensor("batch", 3))


@case(dims={"batch": (4, 7, 1, 0)}, topics=("names", "outputs"))
def arguments_named_input_and_output() -> Declaration:
    """Arguments are called `input`, `output` and `output_0`: what are the outputs called?"""

    class NamedLikeEnds(nn.Module):
        def forward(self, input: Tensor, output: Tensor, output_0: Tensor) -> tuple[Tensor, Tensor]:
            return input - output, output * output_0

    return NamedLikeEnds(), (tensor("batch", 3), tensor("batch", 3), tensor(3))


@case(dims={"batch": (4, 7, 1, 0)}, topics=("names", "outputs", "silence"))
def outputs_named_like_inputs() -> Declaration:
    """Output keys are the input names, swapped: does each output contain its own value?"""

    class Crossed(nn.Module):
        def forward(self, x: Tensor, y: Tensor) -> dict[str, Tensor]:
            return {"y": x * 2, "x": y}

    return Crossed(), (tensor("batch", 3), tensor("batch", 3))


@case(dims={"batch": (4, 7, 1, 0)}, topics=("names",))
def buffer_named_like_input() -> Declaration:
    """A buffer and an argument are both called `x`: which of them is an input?"""

    class Twins(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("x", torch.randn(3))

        def forward(self, x: Tensor) -> Tensor:
            return x * self.x + 1

    return Twins(), (tensor("batch", 3),)


@case(dims={"batch": (4, 7, 1, 0)}, topics=("names",))
def arguments_named_like_placeholders() -> Declaration:
    """Arguments have the names `p_weight` and `b_table`, which torch.export gives to weights: do they collide?"""

    class Placeholders(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.weight = nn.Parameter(torch.randn(3))
            self.register_buffer("table", torch.randn(3))

        def forward(self, p_weight: Tensor, b_table: Tensor) -> Tensor:
            return p_weight * self.weight - b_table * self.table

    return Placeholders(), (tensor("batch", 3), tensor("batch", 3))


@case(dims={"batch": (4, 7, 1, 0)}, topics=("names", "hierarchy", "silence"))
def dots_and_underscores() -> Declaration:
    """`inner.shift.weight` and `inner_shift.weight`: do they collide when dots are replaced?"""

    class Paths(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.inner = nn.ModuleDict({"shift": Shift()})
            self.inner_shift = Shift()

        def forward(self, x: Tensor) -> Tensor:
            return self.inner_shift(self.inner["shift"](x))

    return Paths(), (tensor("batch", 3),)


@case(dims={"batch": (4, 7, 1, 0)}, topics=("names", "hierarchy", "silence"))
def names_that_are_stripped() -> Declaration:
    """Submodules differ by a hyphen, a space, a slash, a colon: do they collide as underscores?"""

    return Shifts("a_b", "a-b", "a b", "a/b", "a:b"), (tensor("batch", 3),)


@case(dims={"batch": (4, 7, 1, 0)}, topics=("names", "hierarchy", "silence"))
def names_that_differ_by_case() -> Declaration:
    """`shift`, `Shift` and `SHIFT` are three submodules: do they stay distinct where files ignore case?"""

    return Shifts("shift", "Shift", "SHIFT"), (tensor("batch", 3),)


@case(dims={"batch": (4, 7, 1, 0)}, topics=("names", "hierarchy"))
def submodule_named_class() -> Declaration:
    """A submodule is named after a Python keyword: does generated code fail?"""
    return Shifts("class", "def"), (tensor("batch", 3),)


@case(dims={"batch": (4, 7, 1, 0)}, topics=("names", "hierarchy"))
def submodules_in_other_scripts() -> Declaration:
    """Submodules are called `0`, `größe` and `层`: do non-ASCII names stay distinct?"""
    return Shifts("0", "größe", "層", "层"), (tensor("batch", 3),)


@case(dims={"batch": (4, 7, 1, 0)}, topics=("names", "keywords"))
def keyword_named_class() -> Declaration:
    """A keyword argument for `**extra` is called `class`: does generated code fail?"""

    class Labelled(nn.Module):
        def forward(self, x: Tensor, **extra: Tensor) -> Tensor:
            return x - extra["class"]

    return Labelled(), (tensor("batch", 3),), {"class": tensor("batch", 3)}


@case(dims={"batch": (4, 7, 1, 0)}, topics=("names", "keywords", "silence"))
def keywords_that_are_stripped() -> Declaration:
    """Keyword arguments are called `a.b` and `a_b`: do they become two inputs?"""

    class Dotted(nn.Module):
        def forward(self, x: Tensor, **extra: Tensor) -> Tensor:
            return x * extra["a.b"] + extra["a_b"]

    return Dotted(), (tensor("batch", 3),), {"a.b": tensor("batch", 3), "a_b": tensor("batch", 3)}


@case(dims={"batch": (4, 7, 1, 0)}, topics=("names", "containers"))
def keys_that_flatten_alike() -> Declaration:
    """`state["a"]["b"]` and `state["a_b"]` both flatten to `state_a_b`: are they two inputs?"""

    class Flattened(nn.Module):
        def forward(self, state: dict[str, Any], scale: Tensor) -> Tensor:
            return (state["a"]["b"] - state["a_b"]) * scale

    return Flattened(), ({"a": {"b": tensor("batch", 3)}, "a_b": tensor("batch", 3)}, tensor(3))


@case(dims={"batch": (4, 7, 1, 0)}, topics=("names", "containers"))
def list_beside_its_own_members_names() -> Declaration:
    """A list `x` becomes `x_0` and `x_1`, and there is an argument `x_0`: are there three inputs?"""

    class Numbered(nn.Module):
        def forward(self, x: list[Tensor], x_0: Tensor) -> Tensor:
            return x[0] - x[1] * x_0

    return Numbered(), ([tensor("batch", 3), tensor("batch", 3)], tensor("batch", 3))


@case(dims={"batch": (4, 7, 1, 0), "rows": (3, 5, 1, 2)}, topics=("names", "sizes"))
def arguments_named_like_axes() -> Declaration:
    """Arguments have the names of dynamic axes, swapped: are sizes and tensors kept apart?"""

    class NamedLikeAxes(nn.Module):
        def forward(self, rows: Tensor, batch: Tensor) -> Tensor:
            return rows.sum() / (1 + rows.shape[0]) + batch * batch.shape[0]

    return NamedLikeAxes(), (tensor("batch", 3), tensor("rows", 3))


@case(dims={"batch": (4, 7, 1, 0)}, topics=("names", "branches", "silence"))
def branches_with_names_of_outside() -> Declaration:
    """Both branches of a `cond` and the outer model compute a `relu`: does one shadow another?"""

    class Shadowed(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            relu = x.relu()
            inner = torch.cond(x.sum() > 0, lambda x: (x - 1).relu() + 1, lambda x: (x + 1).relu() * 2, (x,))
            return relu - inner

    return Shadowed(), (tensor("batch", 3),)
