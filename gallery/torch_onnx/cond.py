"""
How do I export an if on a tensor's value with torch.cond?
==========================================================

Put the ``if`` into the graph with ``torch.cond``, or compute both branches with ``torch.where``.

Export a model that branches on the values of its input. ``torch.export`` refuses a Python ``if`` on a tensor, and the legacy exporter
(``dynamo=False``) writes a model with the wrong answer. This recipe rewrites the model with ``torch.cond`` or ``torch.where``, and
exports the original model with ``to_onnx``.
"""

import textwrap

import torch
from torch import nn
from torch._dynamo.exc import TorchRuntimeError, UncapturedHigherOrderOpError
from torch.fx.experimental.symbolic_shapes import GuardOnDataDependentSymNode

from exportlab import compare, expect_failure, export, show, to_onnx, verify

# %%
# The model uses one layer if its inputs sum to a positive number (warm), and another layer if they don't (cold):


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
# The samples cover both branches at several sizes. We export with the first sample. An empty batch sums to zero, so it is cold.

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
# What goes wrong: a Python if on a tensor
# ----------------------------------------

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
# ``torch.export`` refuses the model in the capture, and so does ``torch.onnx.export`` ("dynamo"), which uses it. During capture, tensors
# have shapes but no values. ``u0`` stands for the unknown result of ``x.sum() > 0``, so Python can't decide which branch to run.
#
# The legacy exporter (``dynamo=False``, "torchscript" in the table) traces the model with the values of the example. It follows the warm
# branch and records only that branch, so its model is ``wrong`` for other values. It doesn't raise an error, but only emits a warning:

messages = compared["torchscript"].said
(warning,) = [line for line in messages if line.startswith("TracerWarning")]
print(textwrap.fill(warning, 96))

# %%
# The exported model is right for the example and at another size. The cold samples reveal the missing branch, and so does the check
# *other values*, which negates the example among other changes:

report = compared["torchscript"].report
assert {check.name for check in report.checks if check.outcome == "wrong"} == {"other values"}
report

# %%
# Export both branches with to_onnx
# ---------------------------------
# ``to_onnx`` runs the model with each result of the test. The exported model computes what the runs share, and has an ``If`` with one
# subgraph for each branch. You don't have to change the model:

program = to_onnx(model, *samples[:1], dynamic_shapes=free)
verify(program, model, samples).check()
print([node.op_type for node in program.model.graph], program.report.branches)

# %%
# If ``to_onnx`` can't export a test, it raises an error with the line, for example if the branches return different shapes. See :doc:`the
# supported tests </docs/converter>`.
#
# Rewrite the model with torch.cond
# ---------------------------------
# PyTorch's documentation recommends ``torch.cond``. It records both branches in the captured program, so it works with every exporter
# that is based on ``torch.export``. Pass the condition, one function for each branch, and a tuple of operands:


# sphinx_gallery_start_answer
class GateByCond(Gate):
    def forward(self, x):
        return torch.cond(x.sum() > 0, self.warm, self.cold, (x,))


# sphinx_gallery_end_answer


by_cond = GateByCond().eval()
by_cond.load_state_dict(model.state_dict())
compared = compare(by_cond, samples, dynamic_shapes=free)
# sphinx_gallery_start_ignore
# sphinx_gallery_start_answer
file = torch.onnx.export(
    by_cond, samples[0], dynamic_shapes=({0: "batch"},), dynamo=True, verbose=False
)
# sphinx_gallery_end_answer
# sphinx_gallery_end_ignore
assert compared.outcomes() == {
    "torch.export": "ok",
    "to_onnx": "ok",
    "dynamo": "ok",
    "torchscript": "capture",
}
compared

# %%
# The legacy exporter does not support ``torch.cond``. In the captured graph, the weights that the branches use have become operands:

show.program(compared["torch.export"].artifact.model)

# %%
# Both exporters translate it to an ``If``. Compare both ONNX models with the original module, on both branches and at sizes that the
# export never saw:

files = {exporter: compared[exporter].artifact for exporter in ("dynamo", "to_onnx")}
for file in files.values():
    assert file.stats().ops["If"] == 1
    verify(file, model, samples).check()
show.table(
    [{"exporter": e, "nodes": ", ".join(f.stats().ops.elements())} for e, f in files.items()]
)

# %%
# The graphs have the test, the ``If``, and one subgraph for each branch:

show.graphs({"torch.onnx.export": files["dynamo"], "to_onnx": files["to_onnx"]})

# %%
# Rules for the branches of torch.cond
# ------------------------------------
# **A branch must not return its input unchanged.** The long error message contains the fix: *Replace `return input` with `return
# input.clone()`*.


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
# **Both branches must return the same dtype and the same number of dimensions.** The second line of the message contains the reason but
# is too long to show, so the code checks it with ``match``:

for other, reason in (
    (torch.isnan, "same dtype but got torch.float32 and torch.bool"),
    (torch.sum, "same dim but got 2 and 0"),
):
    with expect_failure(TorchRuntimeError, match=reason, lines=1):
        torch.export.export(Either(torch.neg, other), *samples[:1])

# %%
# Compute both branches with torch.where
# --------------------------------------
# ``torch.where`` computes both branches and selects one result. All four exporters support it. Use it if both branches are cheap:


class GateByWhere(Gate):
    def forward(self, x):
        return torch.where(x.sum() > 0, self.warm(x), self.cold(x))


by_where = GateByWhere().eval()
by_where.load_state_dict(model.state_dict())
compared = compare(by_where, samples, dynamic_shapes=free)
assert set(compared.outcomes().values()) == {"ok"}
compared

# %%
# If a branch is expensive, keep the ``If``: ONNX Runtime runs only the selected branch. Next: :doc:`loops in the graph
# <loop_over_the_batch>`.
