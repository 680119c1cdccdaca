"""
How do I export a Python for loop over the batch dimension?
===========================================================

Replace the loop with tensor operations if the rows are independent, and use ``scan`` if they aren't.

Export a model with a Python ``for`` over its rows and a dynamic batch size. ``torch.export`` refuses it, and the legacy exporter
(``dynamo=False``) writes a wrong model. This recipe removes the loop, or puts it into the graph with ``scan``, and shows how ``to_onnx``
exports the original model as a ``Loop``.
"""

import torch
from torch import nn

from exportlab import compare, expect_failure, export, show, to_onnx, verify

# %%
# The model is a linear layer followed by a loop over the batch that adds ``sin`` to each row.


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
# What goes wrong: the loop is unrolled
# -------------------------------------
# Export at four rows with a dynamic batch, and verify at other sizes:

exporters = ("torch.export", "dynamo", "torchscript")
compared = compare(model, samples, dynamic_shapes=batch, exporters=exporters)
assert compared.outcomes() == {
    "torch.export": "capture",
    "dynamo": "capture",
    "torchscript": "frozen",
}
compared

# %%
# ``torch.export`` and ``torch.onnx.export`` ("dynamo") refuse the model. The model of the legacy exporter ("torchscript") is ``frozen``,
# which means right at the size of the export and wrong at another. It declares a dynamic *batch* and runs at seven rows, but the last three
# rows have no ``sin``.
#
# Why the batch size is fixed
# ---------------------------
# Capture runs the Python loop, so the graph contains four copies of the body. Export without a dynamic batch to see them:

show.program(torch.export.export(model, samples[0]))

# %%
# The graph can't run a fifth iteration. ``torch.export`` detects that the loop fixed the batch size, and raises an error. The legacy
# exporter doesn't detect it.

with expect_failure(torch._dynamo.exc.UserError, match="specialized it to be a constant"):
    torch.export.export(model, samples[0], dynamic_shapes=({0: torch.export.Dim.DYNAMIC},))

# %%
# Export the loop with to_onnx
# ----------------------------
# ``to_onnx`` runs the model at several sizes, and detects that each iteration makes the same calls with another row number. It writes the
# iteration as the body of a ``Loop``. You don't have to change the model:

program = to_onnx(model, samples[0], dynamic_shapes=batch)
verify(program, model, samples).check()

# %%
# The model is right at four rows, and at seven, one, none and a hundred. The body occurs once:

loop = next(node for node in program.model.graph if node.op_type == "Loop")
body = loop.attributes["body"].as_graph()
assert [node.op_type for node in body].count("Sin") == 1
print([node.op_type for node in program.model.graph])
print([node.op_type for node in body])

# %%
# The loop is slow: ONNX Runtime processes one row after the other, and each iteration copies the tensor that it writes to.
#
# Remove the loop
# ---------------
# Rows that don't depend on each other don't need a loop. Try this first, because it is the fastest version.


class SinAtOnce(SinByRow):
    # sphinx_gallery_start_answer
    def forward(self, x):
        y = self.linear(x)
        return y + torch.sin(y)

    # sphinx_gallery_end_answer


at_once = SinAtOnce().eval()
at_once.load_state_dict(model.state_dict())
compared = compare(at_once, samples, dynamic_shapes=batch)
# sphinx_gallery_start_ignore
# sphinx_gallery_start_answer
program = torch.onnx.export(
    at_once, samples[0], dynamic_shapes=({0: "batch"},), dynamo=True, verbose=False
)
# sphinx_gallery_end_answer
# sphinx_gallery_end_ignore
assert set(compared.outcomes().values()) == {"ok"}
compared

# %%
# Put the loop into the graph with scan
# -------------------------------------
# If a row depends on the previous one, use ``scan``. Its body is captured once, and becomes an ONNX ``Scan``.


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
# Verify both ONNX models against the original module:

for file in files.values():
    verify(file, model, samples[:3]).check()
    assert file.stats().ops["Scan"] == 1
show.table(
    [{"exporter": e, "nodes": ", ".join(f.stats().ops.elements())} for e, f in files.items()]
)

# %%
# Both graphs contain one body, for any number of rows:

show.graphs({"torch.onnx.export": files["dynamo"], "to_onnx": files["to_onnx"]})

# %%
# Next: :doc:`branches that depend on values <cond>`.
