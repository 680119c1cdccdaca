"""
Why does my Python loop over the batch break at another batch size?
===================================================================

The model below adds ``sin`` to its output row by row, in a Python ``for``. You will see what each exporter makes of the loop at a
batch size it never saw, why one of them writes a wrong file without a word, and two ways to write the loop that export.

``to_onnx`` is this site's own exporter: hold what is said of it here against a model of yours.
"""

import torch
from torch import nn

from exportlab import compare, expect_failure, export, show, to_onnx, verify
from fx2onnx.errors import FrozenDimension

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
four, seven, one = (torch.randn(n, 16) for n in (4, 7, 1))
batch = ({0: "batch"},)

# %%
# What goes wrong
# ---------------
# Export at four rows, ask for a dynamic batch, then verify at seven rows and at one:

compared = compare(model, [(four,), (seven,), (one,)], dynamic_shapes=batch)
assert compared.outcomes() == {
    "torch.export": "capture",
    "to_onnx": "capture",
    "dynamo": "capture",
    "torchscript": "frozen",
}
compared

# %%
# Three exporters refuse. ``torchscript`` writes a file that says *batch* on its input, runs at seven rows, and leaves the last three
# rows without their ``sin``.
#
# Why
# ---
# A Python loop is run while the model is captured, so it leaves four copies of its body. Capture without a dynamic batch shows them:

show.program(torch.export.export(model, (four,)))

# %%
# Nothing in this graph can be done a fifth time. ``torch.export`` notices that the loop pinned the batch to 4 and says so; a trace
# has no way to notice.

with expect_failure(torch._dynamo.exc.UserError, match="specialized it to be a constant"):
    torch.export.export(model, (four,), dynamic_shapes=({0: torch.export.Dim.DYNAMIC},))

# %%
# ``to_onnx`` says which axis, by the name that you gave it, after which of your lines, and what you can do:

with expect_failure(FrozenDimension, match='"batch" was asked to be dynamic'):
    to_onnx(model, (four,), dynamic_shapes=batch)

# %%
# What works: no loop at all
# --------------------------
# Rows that do not depend on each other need no loop. This is the first thing to try, and the fastest to run.


class SinAtOnce(SinByRow):
    def forward(self, x):
        y = self.linear(x)
        return y + torch.sin(y)


at_once = SinAtOnce().eval()
at_once.load_state_dict(model.state_dict())
compared = compare(at_once, [(four,), (seven,), (one,)], dynamic_shapes=batch)
assert set(compared.outcomes().values()) == {"ok"}
compared

# %%
# What works: a loop that is part of the graph
# --------------------------------------------
# Where a row does need the one before it, ``scan`` keeps the loop: its body is captured once, and ONNX has a ``Scan`` of its own.


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
    exporter: export(exporter, by_scan, (four,), dynamic_shapes=batch)
    for exporter in ("dynamo", "to_onnx")
}

# %%
# The answers have to be those of the model that you started from, so verify both files against it:

for file in files.values():
    verify(file, model, [(four,), (seven,), (one,)]).check()
    assert file.stats().ops["Scan"] == 1
show.table(
    [{"exporter": e, "nodes": ", ".join(f.stats().ops.elements())} for e, f in files.items()]
)

# %%
# One body, however many rows:

show.graph(files["to_onnx"], title="The loop survives as a Scan")

# %%
# A loop that Python runs is gone before the exporter sees it. Next: :doc:`branches that depend on values <cond>`.
