"""
Can ``x[..., index] = update`` be exported?
===========================================

Yes: ``torch.export`` captures it in both modes, with fixed and with moving sizes, and it becomes one ``ScatterND`` that is right at every
size tried below. You will see what the assignment turns into on its way, and two things close to it that do go wrong: an ``int32`` index,
which gives a file that does not load, and a write into an input, which is lost without a word. ``to_onnx`` takes the first and warns of the
second.

``to_onnx`` is this site's own exporter, so check what is said of it here on a model of your own.
"""

import torch
from torch import nn

from exportlab import compare, export, show, verify
from exportlab.messages import heard

# %%
# The model writes some columns of ``x``, at positions that come in as a tensor.


class Update(nn.Module):
    def forward(self, x, update, index):
        x = x.clone()
        x[..., index] = update
        return x


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

narrow = [call(4, [7, 2], torch.int32), call(7, [0, 9, 5], torch.int32)]
compared = compare(model, narrow, dynamic_shapes=axes)
assert compared.outcomes() == {
    "torch.export": "ok",
    "to_onnx": "ok",
    "dynamo": "load",
    "torchscript": "load",
}
compared

# %%
# Why
# ---
# PyTorch indexes with either integer type. ``ScatterND`` takes ``int64`` alone, and the official exporter passes the index on as it is;
# ``to_onnx`` puts a ``Cast`` before it. For the official one pass ``int64``, or convert in the model. The file from ``torchscript`` is
# broken at another place, and stays so:

assert compared["to_onnx"].artifact.stats().ops["Cast"] == 1


class UpdateLong(Update):
    def forward(self, x, update, index):
        return super().forward(x, update, index.long())


compared = compare(UpdateLong().eval(), narrow, dynamic_shapes=axes)
assert compared.outcomes() == {
    "torch.export": "ok",
    "to_onnx": "ok",
    "dynamo": "ok",
    "torchscript": "load",
}
compared

# %%
# What works: the assignment itself
# ---------------------------------
# You may have read that non-strict capture refuses it. That is over: strict or not, with moving sizes or fixed ones, the graph holds the
# same two operations. ``index_put_`` still writes in place; the next step of the official exporter turns it into ``index_put``.

for strict in (False, True):
    for moving in (axes, None):
        captured = export(
            "torch.export", model, call(4, [7, 2]), dynamic_shapes=moving, strict=strict
        )
        assert list(captured.stats().ops) == ["clone", "index_put_"]

functional = captured.model.run_decompositions()
assert torch.ops.aten.index_put.default in [node.target for node in functional.graph.nodes]
show.program(captured.model)

# %%
# ONNX writes along the first axis, so ``ScatterND`` comes with three transposes, and ``update`` is spread to fit. Both exporters do so:

program, own = (
    export(e, model, call(4, [7, 2]), dynamic_shapes=axes) for e in ("dynamo", "to_onnx")
)
for file in (program, own):
    assert (file.stats().ops["ScatterND"], file.stats().ops["Transpose"]) == (1, 3)
show.graphs({"torch.onnx.export": program, "to_onnx": own})

# %%
# Other batches and counts, none at all, and negative positions are right. So is one position written twice: the last one wins on either
# side here, which PyTorch does not promise.

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
# A boolean mask, of which nobody knows beforehand how much it selects, is no harder:


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
# What does not work: writing into an input
# -----------------------------------------
# Without the ``clone``, the caller's own ``x`` changes. A captured program does that as well. A file leaves it as it was, and the report
# does not tell, since what is returned is right:


class Overwrite(nn.Module):
    def forward(self, x, update, index):
        x[..., index] = update
        return x.sum(-1)


x, update, index = call(4, [7, 2])
written = {}
for exporter in ("torch.export", "dynamo"):
    overwrite = export(exporter, Overwrite().eval(), (x, update, index), dynamic_shapes=axes)
    verify(overwrite, Overwrite(), [(x, update, index)]).check()
    overwrite(given := x.clone(), update, index)
    written[exporter] = not torch.equal(given, x)
assert written == {"torch.export": True, "dynamo": False}
written

# %%
# ``to_onnx`` writes such a file as well, and warns. With ``mutations="outputs"`` the new ``x`` is a further output:

with heard() as said:
    export("to_onnx", Overwrite().eval(), (x, update, index), dynamic_shapes=axes)
assert any("writes into its inputs (x): the file leaves them as they are" in line for line in said)
returned = export(
    "to_onnx", Overwrite().eval(), (x, update, index), dynamic_shapes=axes, mutations="outputs"
)
assert [output.name for output in returned.model.graph.outputs][1:] == ["x_new"]
show.summary(returned)

# %%
# Write with an ``int64`` index into a clone, and return it: what is not returned is lost. Next:
# :doc:`arguments by name, and caches <kwargs_and_caches>`.
