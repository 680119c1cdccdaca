"""
Why does my Python loop over the batch break at another batch size?
===================================================================

The model below adds ``sin`` to its output row by row, in a Python ``for``. You will see what each exporter makes of the loop at a
batch size it never saw, why one of them writes a wrong file without a word, how ``to_onnx`` keeps the loop, and two ways to write it that
the others take as well.

``to_onnx`` is this site's own exporter, so check what is said of it here on a model of your own.
"""

import torch
from torch import nn

from exportlab import compare, expect_failure, export, show, to_onnx, verify

# %%
# The model: a linear layer, then a loop whose length is the batch.


class SinByRow(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(16, 10)

    def forward(self, x):
        y = self.linear(x)
        for i in range(x.shape[0]):
            y[i] += torch.sin(y[i])
        return y


torch.manual_seed(0)
model = SinByRow().eval()
samples = [(torch.randn(n, 16),) for n in (4, 7, 1, 0, 100)]
batch = ({0: "batch"},)

# %%
# What goes wrong
# ---------------
# Export at four rows, ask for a dynamic batch, then verify at others:

exporters = ("torch.export", "dynamo", "torchscript")
compared = compare(model, samples, dynamic_shapes=batch, exporters=exporters)
assert compared.outcomes() == {
    "torch.export": "capture",
    "dynamo": "capture",
    "torchscript": "frozen",
}
compared

# %%
# Two exporters refuse. ``torchscript`` writes a file that says *batch* on its input, runs at seven rows, and leaves the last three
# rows without their ``sin``.
#
# Why
# ---
# A Python loop is run while the model is captured, so it leaves four copies of its body. Capture without a dynamic batch shows them:

show.program(torch.export.export(model, samples[0]))

# %%
# Nothing in this graph can be done a fifth time. ``torch.export`` notices that the loop pinned the batch to 4 and says so; a trace
# has no way to notice.

with expect_failure(torch._dynamo.exc.UserError, match="specialized it to be a constant"):
    torch.export.export(model, samples[0], dynamic_shapes=({0: torch.export.Dim.DYNAMIC},))

# %%
# What works: several runs
# ------------------------
# One run shows four copies. Runs at other sizes show more of them, one for each row. ``to_onnx`` runs the model at several sizes and sees
# that every turn makes the same calls, with the number of its row. It writes one of them as the body of a ``Loop``. The model stays as it is:

program = to_onnx(model, samples[0], dynamic_shapes=batch)
verify(program, model, samples).check()

# %%
# Right at four rows, and at seven, one, none and a hundred. The turn is there once:

loop = next(node for node in program.model.graph if node.op_type == "Loop")
body = loop.attributes["body"].as_graph()
assert [node.op_type for node in body].count("Sin") == 1
print([node.op_type for node in program.model.graph])
print([node.op_type for node in body])

# %%
# A file that keeps the loop also keeps its price: ONNX Runtime takes the rows one after the other, and each turn copies the rows into which it
# writes.
#
# What works: no loop at all
# --------------------------
# Rows that do not depend on each other need no loop. This is the first thing to try, and the fastest to run.


class SinAtOnce(SinByRow):
    def forward(self, x):
        y = self.linear(x)
        return y + torch.sin(y)


at_once = SinAtOnce().eval()
at_once.load_state_dict(model.state_dict())
compared = compare(at_once, samples, dynamic_shapes=batch)
assert set(compared.outcomes().values()) == {"ok"}
compared

# %%
# What works: a loop that is part of the graph
# --------------------------------------------
# Where a row does need the one before it, ``scan`` keeps the loop for every exporter: its body is captured once, and ONNX has a ``Scan`` of its
# own.


def add_sin(nothing, row):
    return [nothing.clone(), row + torch.sin(row)]


class SinByScan(SinByRow):
    def forward(self, x):
        y = self.linear(x)
        _, rows = torch.ops.higher_order.scan(add_sin, [torch.zeros(1)], [y], [])
        return rows


by_scan = SinByScan().eval()
by_scan.load_state_dict(model.state_dict())
files = {
    exporter: export(exporter, by_scan, samples[0], dynamic_shapes=batch)
    for exporter in ("dynamo", "to_onnx")
}

# %%
# The answers have to be those of the model that you started from, so verify both files against it:

for file in files.values():
    verify(file, model, samples[:3]).check()
    assert file.stats().ops["Scan"] == 1
show.table(
    [{"exporter": e, "nodes": ", ".join(f.stats().ops.elements())} for e, f in files.items()]
)

# %%
# One body, however many rows, in either file:

show.graphs({"torch.onnx.export": files["dynamo"], "to_onnx": files["to_onnx"]})

# %%
# One run of a loop shows how many turns it took; several runs show what each turn does. Next: :doc:`branches that depend on values
# <cond>`.
