"""
Two exporters, one model: what differs?
=======================================

The same transformer layer goes through ``torch.onnx.export`` and through ``to_onnx``, with a dynamic batch and a dynamic sequence. You see
what each writes, how far apart the answers are, and how the times compare, measured while this page was made. At the end you can decide
which one to take, and compare them on a model of your own.

``to_onnx`` is this site's own exporter, so check what is said of it here on a model of your own.
"""

from functools import partial

import matplotlib.pyplot as plt
import numpy as np
import onnx_ir as ir
import onnxruntime
import torch
from torch import nn
from torch.nn import functional as F

from exportlab import compare, export, show, to_onnx, verify
from exportlab.measure.timing import Ratio, interleaved

# %%
# The layer is written out, so that all see the same few operations.


class EncoderLayer(nn.Module):
    def __init__(self):
        super().__init__()
        self.after, self.end = nn.LayerNorm(32), nn.LayerNorm(32)
        self.qkv, self.out = nn.Linear(32, 96), nn.Linear(32, 32)
        self.mlp = nn.Sequential(nn.Linear(32, 64), nn.ReLU(), nn.Linear(64, 32))

    def forward(self, x):
        heads = (t.unflatten(-1, (4, 8)) for t in self.qkv(x).chunk(3, -1))
        y = F.scaled_dot_product_attention(*(t.transpose(1, 2) for t in heads))
        x = self.after(x + self.out(y.transpose(1, 2).flatten(2)))
        return self.end(x + self.mlp(x))


torch.manual_seed(0)
model = EncoderLayer().eval()
sizes = ((4, 5), (7, 3), (2, 40), (1, 1), (0, 5), (3, 0))
samples = [(torch.randn(batch, time, 32),) for batch, time in sizes]
moving = ({0: "batch", 1: "time"},)

# %%
# Are both right?
# ---------------
# First of all: exported at four rows of five, run at the other sizes, an empty batch and an empty sequence among them. ``dynamo`` is the
# official exporter, which captures with ``torch.export``. ``to_onnx`` runs this model at a few sizes instead, and calls ``torch.export`` only
# when that does not show enough.

exporters = ("torch.export", "dynamo", "to_onnx")
compared = compare(model, samples, dynamic_shapes=moving, exporters=exporters)
assert to_onnx(model, samples[0], dynamic_shapes=moving).report.capture == "run"
assert compared.outcomes() == {"torch.export": "ok", "dynamo": "narrow", "to_onnx": "ok"}
compared

# %%
# The official file has one size that it cannot do, the empty sequence. It fails there, it does not give other numbers. Without that size
# both are right:

failed = [check.inputs for check in compared["dynamo"].report.failed]
assert failed == ["f32[3, 0, 32]"]
samples.pop()
for name in ("dynamo", "to_onnx"):
    verify(compared[name].artifact, model, samples).check()

# %%
# Another model may have it the other way round. So verify yours, at the sizes that you will meet.
#
# How far apart are they?
# -----------------------
# Both are held against eager above. Here they are held against each other, over all samples:

names = ("dynamo", "to_onnx")
files = {name: compared[name].artifact for name in names}
apart = max(
    (files["dynamo"](x) - files["to_onnx"](x)).abs().max().item() for (x,) in samples if x.numel()
)
assert apart < 1e-5
print(f"largest difference between their outputs: {apart:.1e}")

# %%
# What is in the files?
# ---------------------
# A weight keeps its name when the file has it as ``model.state_dict()`` does; ``to_onnx`` adds ``/T`` to one that it stores transposed.

weights = set(model.state_dict())


def row(name):
    file = files[name]
    stored = file.model.graph.initializers
    kept = weights & {initializer.removesuffix("/T") for initializer in stored}
    return {
        "exporter": name,
        "opset": file.got().opset_version,
        "nodes": file.stats().nodes,
        "kinds of op": len(file.ops()),
        "weights with their names": f"{len(kept)} of {len(weights)}",
        "bytes": f"{file.stats().bytes:,}",
        "of them numbers": f"{sum(value.const_value.nbytes for value in stored.values()):,}",
    }


rows = [row(name) for name in names]
assert rows[1]["weights with their names"] == f"{len(weights)} of {len(weights)}"
assert rows[0]["opset"] == rows[1]["opset"]
show.table(rows)

# %%
# What a file holds beside numbers is nodes and their metadata. The official exporter notes more of it: with each node goes the line of
# your code that it came from.

assert "pkg.torch.onnx.stack_trace" in files["dynamo"].model.graph[0].metadata_props
assert "pkg.torch.onnx.stack_trace" not in files["to_onnx"].model.graph[0].metadata_props

# %%
# Look at both: one layer, the same sizes, each exporter as it comes. Point at a box to see what its file says of it.

show.graphs({"torch.onnx.export": files["dynamo"], "to_onnx": files["to_onnx"]})

# %%
# How long does the export take?
# ------------------------------
# Three rounds, both exporters in each. Every time is divided by one of its own round, so that what else the machine does meets both:


def exporting(name):
    return lambda: partial(export, name, model, samples[0], dynamic_shapes=moving)


times = interleaved({"export": {name: exporting(name) for name in names}}, rounds=3)["export"]
slower = times.ratio("dynamo", "to_onnx")
print(f"torch.onnx.export against to_onnx: {slower}")
assert slower.differs

# %%
# The median, with the lowest and the highest. A single layer says little about a deep model; the :doc:`benchmark of export time
# </generated/benchmarks/export_time>` does.
#
# How long does ONNX Runtime take?
# --------------------------------
# Two sessions on one thread, a few hundred rounds, of five rounds the fastest. Of the ratios we keep the middle 90 %.

options = onnxruntime.SessionOptions()
options.intra_op_num_threads = 1
x = torch.randn(8, 32, 32).numpy()


def running(name):
    file = ir.to_proto(files[name].model).SerializeToString()
    session = onnxruntime.InferenceSession(file, options, providers=["CPUExecutionProvider"])
    call = partial(session.run, None, {session.get_inputs()[0].name: x})
    return lambda: call


timed = interleaved({"run": {name: running(name) for name in names}}, rounds=400, discard=50)["run"]
fastest = {name: np.array(timed.of(name)).reshape(80, 5).min(axis=1) for name in names}
latency = Ratio(tuple(np.quantile(fastest["dynamo"] / fastest["to_onnx"], (0.05, 0.5, 0.95))))
print(f"the official file against that of to_onnx: {latency}")

# %%
# "No difference seen" stands there when the middle 90 % include 1. The matrix products are as many in both files, so what you see comes
# from the nodes around them. The layer is small; measure again at your own sizes.

products = [sum(file.ops()[op] for op in ("MatMul", "Gemm")) for file in files.values()]
assert products[0] == products[1]

# %%
# When to take which
# ------------------
# Take the **official exporter** when your tools or your team expect it, when you need what ``to_onnx`` refuses (:doc:`its limits
# </docs/converter>`), or when a node should know its line of code.
#
# Take ``to_onnx`` when the export itself takes too long, when the file should name the weights as the model does, when a refusal should
# name the axis and the line, when blocks should be functions (:doc:`submodules_to_onnx`), or when the model keeps state
# (:doc:`custom_op_inplace_to_onnx`).
#
# Where both are right, the graphs differ in what surrounds the work: reshaping, and the shapes for it.

counts = {name: file.ops() for name, file in files.items()}
ops = sorted(set().union(*counts.values()), key=lambda op: max(c[op] for c in counts.values()))
places = np.arange(len(ops))
figure, axes = plt.subplots(figsize=(6.4, 4.6), layout="constrained")
for name, shift, color in zip(names, (0.2, -0.2), ("#D55E00", "#0072B2"), strict=True):
    label = f"{name}: {counts[name].total()} nodes"
    axes.barh(places + shift, [counts[name][op] for op in ops], 0.4, color=color, label=label)
axes.set(
    yticks=places, yticklabels=ops, xlabel="nodes", title="What differs is how shapes are handled"
)
axes.legend(loc="lower right")
plt.show()

# %%
# When both files are right at every size, take either; choose by what each exporter does when its file would be wrong. Next: :doc:`how
# to_onnx is built </docs/converter>`.
