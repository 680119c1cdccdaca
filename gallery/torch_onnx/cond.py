"""
My model has an if on a tensor's value: how do I export it?
===========================================================

The model below looks at its input and takes one of two branches. One flavour of the official exporter refuses it, the other writes a wrong
file, and ``to_onnx`` writes both branches. Then comes ``torch.cond``: its rules, and the ONNX ``If`` that either exporter makes of it.

``to_onnx`` is this site's own exporter, so check what is said of it here on a model of your own.
"""

import textwrap

import torch
from torch import nn
from torch._dynamo.exc import TorchRuntimeError, UncapturedHigherOrderOpError
from torch.fx.experimental.symbolic_shapes import GuardOnDataDependentSymNode

from exportlab import compare, expect_failure, export, show, to_onnx, verify

# %%
# The model: one layer for warm inputs, one for cold ones.


class Gate(nn.Module):
    def __init__(self):
        super().__init__()
        self.warm = nn.Sequential(nn.Linear(4, 3), nn.ReLU())
        self.cold = nn.Sequential(nn.Linear(4, 3), nn.Tanh())

    def forward(self, x):
        if x.sum() > 0:
            return self.warm(x)
        return self.cold(x)


# %%
# Inputs for both roads, at several sizes; the first is the one to export with. An empty batch sums to zero, so it is a cold one.

torch.manual_seed(0)
model = Gate().eval()
samples = [
    (torch.rand(5, 4),),
    (torch.rand(7, 4),),
    (-torch.rand(3, 4),),
    (-torch.rand(1, 4),),
    (torch.zeros(0, 4),),
]
assert [bool(x.sum() > 0) for (x,) in samples] == [True, True, False, False, False]

# %%
# What goes wrong
# ---------------

free = ({0: "batch"},)
exporters = ("torch.export", "dynamo", "torchscript")
compared = compare(model, samples, dynamic_shapes=free, exporters=exporters)
assert compared.outcomes() == {
    "torch.export": "capture",
    "dynamo": "capture",
    "torchscript": "wrong",
}
assert isinstance(compared["torch.export"].error, GuardOnDataDependentSymNode)
compared

# %%
# ``torch.export`` refuses, and ``dynamo`` stands on it. While a model is captured there are shapes but no values: ``u0`` is
# the answer to ``x.sum() > 0``, 0 or 1, and Python cannot take its ``if`` without knowing which.
#
# ``torchscript`` does have values, those of the example. It takes the warm road, keeps that one alone, and says so only in a warning:

(warning,) = [said for said in compared["torchscript"].said if said.startswith("TracerWarning")]
print(textwrap.fill(warning, 96))

# %%
# Its file is right for the example, and at another size. The cold inputs find the missing road, and so does the check *other values*,
# which negates the example, among other things:

report = compared["torchscript"].report
assert {check.name for check in report.checks if check.outcome == "wrong"} == {"other values"}
report

# %%
# What works: both answers
# ------------------------
# ``to_onnx`` runs the model, and answers the test itself: yes in one run, no in another. The file computes what both runs share, and then
# an ``If`` has a graph for each road. The model stays as it is:

program = to_onnx(model, *samples[:1], dynamic_shapes=free)
verify(program, model, samples).check()
print([node.op_type for node in program.model.graph], program.report.branches)

# %%
# :doc:`Its page </docs/converter>` says which tests it takes: a test whose roads return other shapes, say, is refused, with the line.
#
# What works: ``torch.cond``
# --------------------------
# This one says in the model itself that there are two roads, and so to every exporter that captures with ``torch.export``. It takes the condition, a function for each road, and the operands in a tuple. Both functions are captured.


class GateByCond(Gate):
    def forward(self, x):
        return torch.cond(x.sum() > 0, self.warm, self.cold, (x,))


by_cond = GateByCond().eval()
by_cond.load_state_dict(model.state_dict())
compared = compare(by_cond, samples, dynamic_shapes=free)
assert compared.outcomes() == {
    "torch.export": "ok",
    "to_onnx": "ok",
    "dynamo": "ok",
    "torchscript": "capture",
}
compared

# %%
# The trace cannot take ``torch.cond`` at all. In the captured graph, the weights that the branches read have become operands:

show.program(compared["torch.export"].artifact.model)

# %%
# In the file it is an ``If``, from either exporter. Hold both against the model that you started from, on both roads, at sizes that the
# export never saw:

files = {exporter: compared[exporter].artifact for exporter in ("dynamo", "to_onnx")}
for file in files.values():
    assert file.stats().ops["If"] == 1
    verify(file, model, samples).check()
show.table(
    [{"exporter": e, "nodes": ", ".join(f.stats().ops.elements())} for e, f in files.items()]
)

# %%
# The rules
# ---------
# **No branch returns its input.** "Otherwise leave it as it is" is therefore refused. Further down in a long message stands what to do:
# *Replace `return input` with `return input.clone()`*.


class Either(nn.Module):
    def __init__(self, yes, no):
        super().__init__()
        self.yes, self.no = yes, no

    def forward(self, x):
        return torch.cond(x.sum() > 0, self.yes, self.no, (x,))


with expect_failure(UncapturedHigherOrderOpError, match=r"`return input.clone\(\)`", lines=2):
    torch.export.export(Either(torch.neg, lambda x: x), *samples[:1])

kept = Either(torch.neg, torch.clone).eval()
for exporter in files:
    verify(export(exporter, kept, *samples[:1], dynamic_shapes=free), kept, samples).check()

# %%
# **Both branches return the same dtype**, and as many dimensions. The reason stands inside a long second line; here it is what ``match``
# looks for:

for other, reason in (
    (torch.isnan, "same dtype but got torch.float32 and torch.bool"),
    (torch.sum, "same dim but got 2 and 0"),
):
    with expect_failure(TorchRuntimeError, match=reason, lines=1):
        torch.export.export(Either(torch.neg, other), *samples[:1])

# %%
# The alternative: take both roads
# --------------------------------
# ``torch.where`` computes both sides and picks one. Where both are cheap it is the shorter way, and every exporter takes it:


class GateByWhere(Gate):
    def forward(self, x):
        return torch.where(x.sum() > 0, self.warm(x), self.cold(x))


by_where = GateByWhere().eval()
by_where.load_state_dict(model.state_dict())
compared = compare(by_where, samples, dynamic_shapes=free)
assert set(compared.outcomes().values()) == {"ok"}
compared

# %%
# Where a road is expensive, keep the ``If``: ONNX Runtime runs only the branch that it takes.

show.graphs({"torch.onnx.export": files["dynamo"], "to_onnx": files["to_onnx"]})

# %%
# An ``if`` that depends on a value has to be part of the graph, or there is no ``if`` in the file. Next: :doc:`a loop that has to be part
# of it <loop_over_the_batch>`.
