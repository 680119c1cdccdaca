"""Names that collide: of arguments, attributes, submodules, keys, and what a file calls its values."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from exportlab.cases import Declaration, case
from exportlab.specs import tensor


class Shift(nn.Module):
    """Adds a weight of its own, so that one shift is not another."""

    def __init__(self) -> None:
        super().__init__()
        self.weight = nn.Parameter(torch.randn(3))

    def forward(self, x: Tensor) -> Tensor:
        return x * 2 + self.weight


class Shifts(nn.Module):
    """Shifts under the names that are given, one after the other."""

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
    """A buffer is called `mean` and the model takes a mean: are they two values?"""

    class Centered(nn.Module):
        def __init__(self) -> None:
            super().__init__()
            self.register_buffer("mean", torch.randn(3))

        def forward(self, x: Tensor) -> Tensor:
            return (x - x.mean(-1, keepdim=True)) * self.mean

    return Centered(), (tensor("batch", 3),)


@case(dims={"batch": (4, 7, 1, 0)}, topics=("names", "silence"))
def attributes_named_like_ops() -> Declaration:
    """Buffers are called `linear`, `relu`, `add_1`: does the file mix them with results of that name?"""

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
    """Arguments are called `val_0`, `val_1`, `val_2`, as exporters call what is inside: are they kept apart?"""

    class NamedLikeValues(nn.Module):
        def forward(self, val_0: Tensor, val_1: Tensor, val_2: Tensor) -> Tensor:
            return torch.cat([val_0[:, -2:], val_1.roll(1, 1), val_2[:, 1:]], 1)

    return NamedLikeValues(), (tensor("batch", 3), tensor("batch", 4), tensor("batch", 5))


@case(dims={"batch": (4, 7, 1, 0)}, topics=("names", "silence"))
def arguments_named_inside_functions() -> Declaration:
    """Arguments are called `tmp`, `first`, `second`, `beta`, as onnxscript's functions call theirs: do they leak in?"""

    class NamedInside(nn.Module):
        def forward(self, tmp: Tensor, first: Tensor, second: Tensor, beta: Tensor) -> Tensor:
            return nn.functional.softplus(tmp, 2.0) * nn.functional.glu(first) - second + beta

    return NamedInside(), (tensor("batch", 3), tensor("batch", 6), tensor("batch", 3), tensor(3))


@case(dims={"batch": (4, 7, 1, 0)}, topics=("names", "silence"))
def buffers_named_like_values() -> Declaration:
    """Buffers are called `val_0` to `val_9`, as exporters call what is inside: is a weight overwritten by a result?"""

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
    """`add_1` and `add_2` are arguments, and there are three additions: who gets the name?"""

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
    """The keys that come out are the names that went in, the other way round: does each output hold its own value?"""

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
    """torch.export calls the weight `p_weight` and the buffer `b_table`: what if arguments already are?"""

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
    """`inner.shift.weight` beside `inner_shift.weight`: are they one once the dots are gone?"""

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
    """Submodules differ by a hyphen, a space, a slash, a colon: are they one once these are underscores?"""

    return Shifts("a_b", "a-b", "a b", "a/b", "a:b"), (tensor("batch", 3),)


@case(dims={"batch": (4, 7, 1, 0)}, topics=("names", "hierarchy", "silence"))
def names_that_differ_by_case() -> Declaration:
    """`shift`, `Shift` and `SHIFT` are three submodules: do they stay three where files ignore case?"""

    return Shifts("shift", "Shift", "SHIFT"), (tensor("batch", 3),)


@case(dims={"batch": (4, 7, 1, 0)}, topics=("names", "hierarchy"))
def submodule_named_class() -> Declaration:
    """A submodule has a keyword of Python for a name: does generated code stumble over it?"""
    return Shifts("class", "def"), (tensor("batch", 3),)


@case(dims={"batch": (4, 7, 1, 0)}, topics=("names", "hierarchy"))
def submodules_in_other_scripts() -> Declaration:
    """Submodules are called `0`, `größe` and `层`: do names beyond ASCII stay apart?"""
    return Shifts("0", "größe", "層", "层"), (tensor("batch", 3),)


@case(dims={"batch": (4, 7, 1, 0)}, topics=("names", "keywords"))
def keyword_named_class() -> Declaration:
    """A keyword argument that `**extra` takes is called `class`: does generated code stumble over it?"""

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
    """`state["a"]["b"]` and `state["a_b"]` are both `state_a_b` once flattened: are they still two inputs?"""

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
    """Arguments are called like the axes that move, each like that of the other: are sizes and tensors kept apart?"""

    class NamedLikeAxes(nn.Module):
        def forward(self, rows: Tensor, batch: Tensor) -> Tensor:
            return rows.sum() / (1 + rows.shape[0]) + batch * batch.shape[0]

    return NamedLikeAxes(), (tensor("batch", 3), tensor("rows", 3))


@case(dims={"batch": (4, 7, 1, 0)}, topics=("names", "branches", "silence"))
def branches_with_names_of_outside() -> Declaration:
    """Both branches of a `cond` compute a `relu` and so does the model around it: does one hide the other?"""

    class Shadowed(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            relu = x.relu()
            inner = torch.cond(x.sum() > 0, lambda x: (x - 1).relu() + 1, lambda x: (x + 1).relu() * 2, (x,))
            return relu - inner

    return Shadowed(), (tensor("batch", 3),)
