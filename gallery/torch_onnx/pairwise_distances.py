"""
How do I export the distances between all pairs of rows?
========================================================

A loop over rows survives in one exporter of four, ``torch.cdist`` of few rows stops the official one, and the fastest formula loses precision.
You get five ways to write it, the nodes that each one becomes, files that are right for any number of rows on either side, and a case where
the file is right and eager is not.

``to_onnx`` is this site's own exporter, so check what is said of it here on a model of your own.
"""

# sphinx_gallery_thumbnail_number = -1
import matplotlib.pyplot as plt
import torch
from torch import nn

from exportlab import compare, export, show, verify

# %%
# What has to come out, as a loop: for each row of ``x``, how far it is from every row of ``y``.


def distances(row, others):
    return (others - row).square().sum(-1).sqrt()


class ByLoop(nn.Module):
    def forward(self, x, y):
        return torch.stack([distances(row, y) for row in x])


torch.manual_seed(0)
model = ByLoop().eval()
sizes = ((5, 4), (9, 2), (1, 1), (6, 6))
samples = [(torch.randn(rows, 3), torch.randn(others, 3)) for rows, others in sizes]
moving = ({0: "rows"}, {0: "others"})

# %%
# What goes wrong
# ---------------
# The loop runs while the model is captured, five times, and five it stays. ``to_onnx`` runs the model at other sizes, too, and writes a
# ``Loop``:

looped = compare(model, samples, dynamic_shapes=moving)
assert looped.outcomes() == {
    "torch.export": "capture",
    "to_onnx": "ok",
    "dynamo": "capture",
    "torchscript": "narrow",
}
assert "Loop" in looped["to_onnx"].artifact.ops()
looped

# %%
# What works everywhere: a loop that is part of the graph
# -------------------------------------------------------
# :doc:`scan </generated/gallery/torch_export/scan>` walks over the rows of ``x``. Every turn needs the whole of ``y`` as well, which is
# an *additional input*: the last list of the call, and the last parameter of the body. Nothing is carried from turn to turn, so the first
# list is empty.


def turn(row, others):
    return [distances(row, others)]


class ByScan(nn.Module):
    def forward(self, x, y):
        (found,) = torch.ops.higher_order.scan(turn, [], [x], [y])
        return found


exporters = ("torch.export", "dynamo", "to_onnx")
scanned = compare(ByScan().eval(), samples, dynamic_shapes=moving, exporters=exporters)
assert set(scanned.outcomes().values()) == {"ok"}
scanned

# %%
# In either file that is one ``Scan``. ONNX has no list for additional inputs and needs none, since its body may read what is outside:

for exporter in exporters[1:]:
    file = scanned[exporter].artifact
    assert [node.op_type for node in file.model.graph] == ["Scan"]
    verify(file, model, samples).check()
show.graphs(
    {"torch.onnx.export": scanned["dynamo"].artifact, "to_onnx": scanned["to_onnx"].artifact}
)

# %%
# No loop at all
# --------------
# Every turn does the same and none needs the one before. Then let the tensors do it, all pairs at once: by an axis for each side, by
# ``vmap``, by ``cdist``, or by multiplying out the square, which is a product of matrices.


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
    ways[name] = compare(way.eval(), samples, dynamic_shapes=moving, exporters=exporters)


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
# The official exporter has no translation of ``cdist`` of up to 25 rows. (Of an example with more it writes the product, for few rows too.) Axes,
# ``vmap`` and ``cdist`` hold a difference for each pair and column at one time, ``scan`` those of one row, the product none.
#
# No rows at all
# --------------
# Three rows on the one side and none on the other. The answer is empty, and its shape is :math:`3 \times 0`:

none = (torch.randn(3, 3), torch.randn(0, 3))


def without(compared):
    files = {exporter: compared[exporter].artifact for exporter in exporters[1:]}
    return {
        exporter: verify(file, ByAxes(), [samples[0], none]).outcome if file else ""
        for exporter, file in files.items()
    }


empty = {name: without(compared) for name, compared in ways.items()}
assert {found["to_onnx"] for found in empty.values()} == {"ok"}
assert empty["scan"]["dynamo"] == "narrow"
assert empty["axes"]["dynamo"] == "frozen"
assert {empty[way]["dynamo"] for way in ("vmap", "product")} == {"ok"}
show.table([{"way": name, **found} for name, found in empty.items()])

# %%
# Where no rows can happen, try it. (The other way round, ``scan`` itself cannot: it has no first turn to learn shapes from.)
#
# Where the digits go
# -------------------
# Move both sides far from the origin. Distances stay what they were; squares grow, and the product subtracts large numbers to get a small
# one. What one does not expect: eager ``cdist`` takes the product too, once there are more than 25 rows. The file of ``to_onnx`` takes
# differences, and ``verify`` finds it nearer to float64 than eager is:

few, many = torch.randn(20, 3) + 1000, torch.randn(30, 3) + 1000
cdist = ways["cdist"]["to_onnx"].artifact
report = verify(cdist, ByCdist(), [samples[0], (few, few), (many, many)])
assert report.checks[2].outcome == "ok"
assert "the file is nearer than eager" in report.checks[2].detail
report

# %%
# Hold both against float64 yourself:


def error(run, x):
    return (run(x, x).double() - torch.cdist(x.double(), x.double())).abs().max().item()


assert error(cdist, many) < 1e-5 < 0.1 < error(torch.cdist, many)

# %%
# ``compute_mode="donot_use_mm_for_euclid_dist"`` makes eager do the same as the file, at any number of rows:


class ByDifferences(nn.Module):
    def forward(self, x, y):
        return torch.cdist(x, y, compute_mode="donot_use_mm_for_euclid_dist")


exact = export("to_onnx", ByDifferences().eval(), samples[0], dynamic_shapes=moving)
verify(exact, ByDifferences(), [samples[0], (few, few), (many, many)]).check()

# %%

offsets = (1, 3, 10, 30, 100, 300, 1000)
base = torch.randn(30, 3)
runs = {
    "cdist, eager": torch.cdist,
    "cdist, file of to_onnx": cdist,
    "product, file of to_onnx": ways["product"]["to_onnx"].artifact,
    "scan, file of dynamo": ways["scan"]["dynamo"].artifact,
}
figure, axes = plt.subplots(figsize=(6.6, 3.6), layout="constrained")
for (label, run), style in zip(runs.items(), ("o-", "s-", "x--", "+--"), strict=True):
    axes.plot(offsets, [error(run, base + offset) for offset in offsets], style, label=label)
axes.set(xscale="log", yscale="log", xlabel="distance from the origin", ylabel="largest error")
axes.legend(frameon=False)
axes.set_title("Far from the origin, torch.cdist and the product lose digits")
plt.show()

# %%
# If no turn of the loop needs another, write it with tensors; subtract before you square; and keep ``scan`` for pairs that do not fit
# into memory. Next: :doc:`a loop in which each turn needs the last </generated/gallery/torch_export/scan>`.
