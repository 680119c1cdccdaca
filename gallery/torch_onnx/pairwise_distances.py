"""
How do I export pairwise distances (torch.cdist) to ONNX?
=========================================================

Use ``torch.vmap`` over a function of one row. If the differences of all pairs need too much memory, use ``scan``.

This recipe exports the distances between all pairs of rows of two tensors, with dynamic row counts. ``torch.vmap`` is precise, and right
for empty inputs with ``torch.onnx.export`` and ``to_onnx``. The recipe also tests ``scan`` and three other ways.
"""

# sphinx_gallery_thumbnail_number = -1
import matplotlib.pyplot as plt
import torch
from torch import nn

from exportlab import compare, export, show, verify

# %%
# The loop computes, for each row of ``x``, its distance to every row of ``y``:


# sphinx_gallery_start_answer
def distances(row, others):
    return (others - row).square().sum(-1).sqrt()


# sphinx_gallery_end_answer


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
# A Python loop can't be exported with ``torch.export`` and ``torch.onnx.export`` ("dynamo"): the capture records five iterations, one for
# each row of the example, so it reports that the row count is constant. The legacy exporter ("torchscript") writes a model, but the model
# rejects other row counts (``narrow``). ``to_onnx`` also runs the model at other sizes, and writes a ``Loop``:

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
# :doc:`scan </generated/gallery/torch_export/scan>` iterates over the rows of ``x``, and each iteration also reads all of ``y``. Pass ``y``
# in the last list, for *additional inputs*. The first list is for state that is carried between iterations, so it is empty here.


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
# Both exporters write a single ``Scan`` node, whose body reads ``y`` from the outer graph:

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
# The iterations are independent, so tensor operations can compute all pairs at once. We compare broadcasting (``axes`` in the tables),
# ``vmap``, ``cdist``, and a matrix product. The product uses ``(x - y)² = x² + y² - 2xy``:


class ByAxes(nn.Module):
    def forward(self, x, y):
        return distances(x[:, None], y)


# sphinx_gallery_start_answer
class ByVmap(nn.Module):
    def forward(self, x, y):
        return torch.vmap(distances, in_dims=(0, None))(x, y)


# sphinx_gallery_end_answer


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
# ``cdist`` chooses its algorithm by the number of rows. With at most 25 rows, as here, it calls an operator that ``torch.onnx.export``
# can't translate. With a larger example, the export succeeds, but the model then uses the less precise matrix product at all sizes.
#
# Broadcasting, ``vmap`` and ``cdist`` store the differences of all pairs, ``scan`` those of one row. The product stores only the result.
#
# Test inputs with no rows
# ------------------------
# If ``x`` has three rows and ``y`` is empty, the result has the shape :math:`3 \times 0`. Verify each model with such inputs:

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
# With ``torch.onnx.export``, broadcasting returns a wrong result for the empty ``y`` (``frozen``), and ``scan`` raises an
# error (``narrow``). Use ``vmap`` if your inputs can be empty. (If ``x`` is empty, ``scan`` fails in eager mode too.)
#
# Precision of torch.cdist far from the origin
# --------------------------------------------
# Here the model of ``to_onnx`` is more precise than PyTorch: above 25 rows, ``cdist`` in eager mode uses the matrix product. The product
# subtracts large squares to get a small distance, which loses digits. ``verify`` accepts the model ("the file"): it is closer to float64:

few, many = torch.randn(20, 3) + 1000, torch.randn(30, 3) + 1000
cdist = ways["cdist"]["to_onnx"].artifact
report = verify(cdist, ByCdist(), [samples[0], (few, few), (many, many)])
assert report.checks[2].outcome == "ok"
assert "the file is nearer than eager" in report.checks[2].detail
report

# %%
# Measure the largest error of both, relative to ``cdist`` in float64, where the product is precise enough:


def error(run, x):
    return (run(x, x).double() - torch.cdist(x.double(), x.double())).abs().max().item()


assert error(cdist, many) < 1e-5 < 0.1 < error(torch.cdist, many)

# %%
# To get precise distances in eager mode too, pass ``compute_mode="donot_use_mm_for_euclid_dist"`` to ``cdist``:


class ByDifferences(nn.Module):
    def forward(self, x, y):
        return torch.cdist(x, y, compute_mode="donot_use_mm_for_euclid_dist")


exact = export("to_onnx", ByDifferences().eval(), samples[0], dynamic_shapes=dynamic)
verify(exact, ByDifferences(), [samples[0], (few, few), (many, many)]).check()

# %%
# The errors of ``cdist`` in eager mode and of the product grow with the distance from the origin. The figure shows them for 30 rows:

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
# Next: :doc:`a loop that carries state </generated/gallery/torch_export/scan>`.
