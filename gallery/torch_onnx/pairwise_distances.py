"""
How do I export pairwise distances (torch.cdist) to ONNX?
=========================================================

Export the distances between all pairs of rows of two tensors, with dynamic row counts. Replace a Python loop by ``scan``, broadcasting,
``vmap``, ``torch.cdist``, or a matrix product. These ways differ in supported exporters, memory, and precision far from the origin.
"""

# sphinx_gallery_thumbnail_number = -1
import matplotlib.pyplot as plt
import torch
from torch import nn

from exportlab import compare, export, show, verify

# %%
# The loop computes, for each row of ``x``, its distance to every row of ``y``:


def distances(row, others):
    return (others - row).square().sum(-1).sqrt()


class ByLoop(nn.Module):
    def forward(self, x, y):
        return torch.stack([distances(row, y) for row in x])


torch.manual_seed(0)
model = ByLoop().eval()
sizes = ((5, 4), (9, 2), (1, 1), (6, 6))
samples = [(torch.randn(rows, 3), torch.randn(others, 3)) for rows, others in sizes]
dynamic = ({0: "rows"}, {0: "others"})

# %%
# What goes wrong: a Python loop over rows
# ----------------------------------------
# Capturing the model runs the loop five times, once for each row of the example, so the row count becomes a constant. ``torch.export``
# and ``torch.onnx.export`` ("dynamo") therefore report an error. The legacy exporter's model ("torchscript") is ``narrow``: it rejects some
# sizes. ``to_onnx`` also runs the model at other sizes, so that it can write a ``Loop``:

looped = compare(model, samples, dynamic_shapes=dynamic)
assert looped.outcomes() == {
    "torch.export": "capture",
    "to_onnx": "ok",
    "dynamo": "capture",
    "torchscript": "narrow",
}
assert "Loop" in looped["to_onnx"].artifact.ops()
looped

# %%
# Put the loop into the graph with scan
# -------------------------------------
# :doc:`scan </generated/gallery/torch_export/scan>` iterates over the rows of ``x``. Each iteration needs all of ``y`` too, so ``y`` is an
# *additional input*: the last list of the call, and the last parameter of the body. The first list, for carried state, is empty.


def body(row, others):
    return [distances(row, others)]


class ByScan(nn.Module):
    def forward(self, x, y):
        (rows,) = torch.ops.higher_order.scan(body, [], [x], [y])
        return rows


exporters = ("torch.export", "dynamo", "to_onnx")
scanned = compare(ByScan().eval(), samples, dynamic_shapes=dynamic, exporters=exporters)
assert set(scanned.outcomes().values()) == {"ok"}
scanned

# %%
# Both exporters write one ``Scan``, whose body reads ``y`` from the outer graph:

for exporter in exporters[1:]:
    file = scanned[exporter].artifact
    assert [node.op_type for node in file.model.graph] == ["Scan"]
    verify(file, model, samples).check()
show.graphs(
    {"torch.onnx.export": scanned["dynamo"].artifact, "to_onnx": scanned["to_onnx"].artifact}
)

# %%
# Replace the loop with tensor operations
# ---------------------------------------
# The iterations are independent, so tensor operations can compute all pairs at once. There are four ways: broadcasting (``axes`` in the
# tables), ``vmap``, ``cdist``, and a matrix product, for which the square is expanded:


class ByAxes(nn.Module):
    def forward(self, x, y):
        return distances(x[:, None], y)


class ByVmap(nn.Module):
    def forward(self, x, y):
        return torch.vmap(distances, in_dims=(0, None))(x, y)


class ByCdist(nn.Module):
    def forward(self, x, y):
        return torch.cdist(x, y)


class ByProduct(nn.Module):
    def forward(self, x, y):
        squares = x.square().sum(1)[:, None] + y.square().sum(1)
        return (squares - 2 * x @ y.T).clamp(min=0).sqrt()


ways = {"scan": scanned}
for way in (ByAxes(), ByVmap(), ByCdist(), ByProduct()):
    name = type(way).__name__.removeprefix("By").lower()
    ways[name] = compare(way.eval(), samples, dynamic_shapes=dynamic, exporters=exporters)


def row(name, compared):
    files = {exporter: compared[exporter].artifact for exporter in exporters[1:]}
    nodes = {
        f"nodes, {exporter}": file.ops().total() if file else "" for exporter, file in files.items()
    }
    return {"way": name, **compared.outcomes(), **nodes}


assert {n for n, compared in ways.items() if set(compared.outcomes().values()) != {"ok"}} == {
    "cdist"
}
assert ways["cdist"].outcomes() == {"torch.export": "ok", "dynamo": "convert", "to_onnx": "ok"}
show.table([row(*way) for way in ways.items()])

# %%
# ``torch.onnx.export`` can't convert ``cdist`` here, because PyTorch chooses its algorithm by the example's row counts. Up to 25 rows, it
# uses an operator without a translation. For more, it uses the matrix product, which the exported model then uses for few rows too.
# Broadcasting, ``vmap`` and ``cdist`` need memory for all differences, ``scan`` for those of one row, and the product only for the result.
#
# Test inputs with no rows
# ------------------------
# With three rows on one side and none on the other, the result is empty and its shape is :math:`3 \times 0`. Verify it for each model:

no_rows = (torch.randn(3, 3), torch.randn(0, 3))


def without(compared):
    files = {exporter: compared[exporter].artifact for exporter in exporters[1:]}
    return {
        exporter: verify(file, ByAxes(), [samples[0], no_rows]).outcome if file else ""
        for exporter, file in files.items()
    }


empty = {name: without(compared) for name, compared in ways.items()}
assert {outcomes["to_onnx"] for outcomes in empty.values()} == {"ok"}
assert empty["scan"]["dynamo"] == "narrow"
assert empty["axes"]["dynamo"] == "frozen"
assert {empty[way]["dynamo"] for way in ("vmap", "product")} == {"ok"}
show.table([{"way": name, **outcomes} for name, outcomes in empty.items()])

# %%
# With ``torch.onnx.export``, ``scan`` raises an error for empty inputs (``narrow``), and broadcasting returns a wrong result (``frozen``).
# Use ``vmap`` or the product if your inputs can be empty. (If ``x`` has no rows, even eager ``scan`` fails: it has no first iteration.)
#
# Precision of torch.cdist far from the origin
# --------------------------------------------
# Shift both sides far from the origin. The distances don't change, but the squares grow, and the product subtracts large numbers to get a
# small one, which loses digits. Eager ``cdist`` uses the product too if there are more than 25 rows, but the ``to_onnx`` model subtracts
# before it squares. Therefore, ``verify`` reports that it is closer to float64 than eager:

few, many = torch.randn(20, 3) + 1000, torch.randn(30, 3) + 1000
cdist = ways["cdist"]["to_onnx"].artifact
report = verify(cdist, ByCdist(), [samples[0], (few, few), (many, many)])
assert report.checks[2].outcome == "ok"
assert "the file is nearer than eager" in report.checks[2].detail
report

# %%
# Measure both errors. The reference is ``cdist`` in float64, in which even the product is precise enough here:


def error(run, x):
    return (run(x, x).double() - torch.cdist(x.double(), x.double())).abs().max().item()


assert error(cdist, many) < 1e-5 < 0.1 < error(torch.cdist, many)

# %%
# To get these precise distances in eager too, pass ``compute_mode="donot_use_mm_for_euclid_dist"``:


class ByDifferences(nn.Module):
    def forward(self, x, y):
        return torch.cdist(x, y, compute_mode="donot_use_mm_for_euclid_dist")


exact = export("to_onnx", ByDifferences().eval(), samples[0], dynamic_shapes=dynamic)
verify(exact, ByDifferences(), [samples[0], (few, few), (many, many)]).check()

# %%
# The figure compares the errors for 30 rows. Those of eager ``cdist`` and the product grow with the distance from the origin:

offsets = (1, 3, 10, 30, 100, 300, 1000)
base = torch.randn(30, 3)
runs = {
    "cdist, eager": torch.cdist,
    "cdist, to_onnx": cdist,
    "product, to_onnx": ways["product"]["to_onnx"].artifact,
    "scan, torch.onnx.export": ways["scan"]["dynamo"].artifact,
}
figure, axes = plt.subplots(figsize=(6.6, 3.6), layout="constrained")
for (label, run), style in zip(runs.items(), ("o-", "s-", "x--", "+--"), strict=True):
    axes.plot(offsets, [error(run, base + offset) for offset in offsets], style, label=label)
axes.set(xscale="log", yscale="log", xlabel="distance from the origin", ylabel="largest error")
axes.legend(frameon=False)
axes.set_title("Far from the origin, torch.cdist and the product lose digits")
plt.show()

# %%
# If the iterations are independent, use tensor operations, and subtract before you square. Use ``scan`` only if all the differences need
# too much memory. Next: :doc:`a loop that carries state </generated/gallery/torch_export/scan>`.
