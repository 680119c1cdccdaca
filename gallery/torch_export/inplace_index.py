"""
Can I export ``x[..., index] = update`` (``index_put_``)?
=========================================================

Yes: clone the input, write with an ``int64`` index, and return the result. A change that the model doesn't return is lost.

``torch.export`` captures the assignment in both modes, with static and dynamic sizes, and it becomes a ``ScatterND`` in ONNX. This
recipe shows the translation and two problems close to it. With ``torch.onnx.export``, an ``int32`` index produces a model that doesn't
load, and a write into an input is lost.
"""

import torch
from torch import nn

from exportlab import compare, export, show, verify
from exportlab.messages import heard

# %%
# The model writes some columns of ``x``, at positions given as a tensor.


class Update(nn.Module):
    # sphinx_gallery_start_answer
    def forward(self, x, update, index):
        x = x.clone()
        x[..., index] = update
        return x

    # sphinx_gallery_end_answer


def call(batch, index, dtype=torch.int64):
    return (
        torch.randn(batch, 4, 10),
        torch.randn(batch, 1, len(index)),
        torch.tensor(index, dtype=dtype),
    )


torch.manual_seed(0)
model = Update().eval()
axes = ({0: "batch"}, {0: "batch", 2: "count"}, {0: "count"})

# %%
# What goes wrong: an int32 index
# -------------------------------

int32_calls = [call(4, [7, 2], torch.int32), call(7, [0, 9, 5], torch.int32)]
compared = compare(model, int32_calls, dynamic_shapes=axes)
assert compared.outcomes() == {
    "torch.export": "ok",
    "to_onnx": "ok",
    "dynamo": "load",
    "torchscript": "load",
}
compared

# %%
# Why an int32 index fails
# ------------------------
# PyTorch indexes with ``int32`` or ``int64``, but ``ScatterND`` accepts only ``int64``. ``torch.onnx.export`` ("dynamo") passes the index
# on unchanged, and ``to_onnx`` adds a ``Cast``. For ``torch.onnx.export``, pass ``int64`` or convert the index in the model. The legacy
# exporter's model ("torchscript") has a different fault, and still doesn't load:

assert compared["to_onnx"].artifact.stats().ops["Cast"] == 1


class UpdateLong(Update):
    def forward(self, x, update, index):
        return super().forward(x, update, index.long())


compared = compare(UpdateLong().eval(), int32_calls, dynamic_shapes=axes)
assert compared.outcomes() == {
    "torch.export": "ok",
    "to_onnx": "ok",
    "dynamo": "ok",
    "torchscript": "load",
}
compared

# %%
# What works: the assignment
# --------------------------
# Older advice says that non-strict capture refuses the assignment. This is no longer true: the graph has the same two operations in both
# modes, with dynamic or static sizes. ``index_put_`` still writes in place, and ``run_decompositions`` replaces it with ``index_put``.

for strict in (False, True):
    for shapes in (axes, None):
        captured = export(
            "torch.export", model, call(4, [7, 2]), dynamic_shapes=shapes, strict=strict
        )
        assert list(captured.stats().ops) == ["clone", "index_put_"]

functional = captured.model.run_decompositions()
assert torch.ops.aten.index_put.default in [node.target for node in functional.graph.nodes]
show.program(captured.model)

# %%
# ``ScatterND`` writes along the first axis, so both exporters add three transposes, and expand ``update`` to the target shape:

program, own = (
    export(e, model, call(4, [7, 2]), dynamic_shapes=axes) for e in ("dynamo", "to_onnx")
)
for file in (program, own):
    assert (file.stats().ops["ScatterND"], file.stats().ops["Transpose"]) == (1, 3)
show.graphs({"torch.onnx.export": program, "to_onnx": own})

# %%
# Other batch sizes, other counts (including zero) and negative positions are right. If a position occurs twice, the last value wins in
# both eager and ONNX Runtime here, but PyTorch doesn't promise this.

unseen = [
    call(7, [0, 9, 5]),
    call(1, [3]),
    call(0, [1, 2]),
    call(4, []),
    call(3, [-1, -10, 4]),
    call(2, [3, 3, -7, 3]),
]
for file in (program, own):
    verify(file, model, [call(4, [7, 2]), *unseen]).check()

# %%
# A boolean mask works too, although the number of selected elements is unknown at export:


class Double(nn.Module):
    def forward(self, x, mask):
        x = x.clone()
        x[mask] = x[mask] * 2
        return x


masked = [(torch.randn(n, 5), torch.rand(n, 5) > 0.5) for n in (4, 7, 1, 0)]
compared = compare(Double().eval(), masked, dynamic_shapes=({0: "batch"}, {0: "batch"}))
assert set(compared.outcomes().values()) == {"ok"}
compared

# %%
# What doesn't work: writing into an input
# ----------------------------------------
# Without the ``clone``, the model changes the caller's ``x``, and so does the captured program. The ONNX model leaves ``x`` unchanged.
# ``verify`` still reports ``ok``, because the returned value is right:


class Overwrite(nn.Module):
    def forward(self, x, update, index):
        x[..., index] = update
        return x.sum(-1)


x, update, index = call(4, [7, 2])
written = {}
for exporter in ("torch.export", "dynamo"):
    overwrite = export(exporter, Overwrite().eval(), (x, update, index), dynamic_shapes=axes)
    verify(overwrite, Overwrite(), [(x, update, index)]).check()
    argument = x.clone()
    overwrite(argument, update, index)
    written[exporter] = not torch.equal(argument, x)
assert written == {"torch.export": True, "dynamo": False}
written

# %%
# ``to_onnx`` writes the same model, with a warning. With ``mutations="outputs"``, the new ``x`` is an additional output:

with heard() as messages:
    export("to_onnx", Overwrite().eval(), (x, update, index), dynamic_shapes=axes)
assert any(
    "writes into its inputs (x): the exported model does not modify them" in line
    for line in messages
)
returned = export(
    "to_onnx", Overwrite().eval(), (x, update, index), dynamic_shapes=axes, mutations="outputs"
)
assert [output.name for output in returned.model.graph.outputs][1:] == ["x_new"]
show.summary(returned)

# %%
# Next: :doc:`keyword arguments and caches <kwargs_and_caches>`.
