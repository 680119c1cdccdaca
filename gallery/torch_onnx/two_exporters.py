"""
torch.onnx.export or to_onnx: how do they differ?
=================================================

By default, use ``torch.onnx.export``, which is part of PyTorch. Their graphs differ in how they handle shapes, so verify the model of
either at your sizes.

We export the same transformer layer with ``torch.onnx.export`` and with ``to_onnx``, with a dynamic batch size and sequence length. This
recipe compares the results, the ONNX graphs, the export time and the latency, and lists when to use which. We maintain ``to_onnx``, so
repeat the comparison with your own model.
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
# The layer is written out, so that both exporters see the same operations.


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
dynamic = ({0: "batch", 1: "time"},)

# %%
# Verify both models
# ------------------
# Export at four rows of five, and run the other sizes, including an empty batch and an empty sequence. ``torch.onnx.export`` ("dynamo")
# captures the model with ``torch.export``. ``to_onnx`` runs this model at a few sizes instead, and uses ``torch.export`` if the runs are
# not enough.

exporters = ("torch.export", "dynamo", "to_onnx")
compared = compare(model, samples, dynamic_shapes=dynamic, exporters=exporters)
assert to_onnx(model, samples[0], dynamic_shapes=dynamic).report.capture == "run"
assert compared.outcomes() == {"torch.export": "ok", "dynamo": "narrow", "to_onnx": "ok"}
compared

# %%
# The model from ``torch.onnx.export`` is ``narrow``: it raises an error for one of the sizes, the empty sequence. Both models are right at
# the other sizes:

failed = [check.inputs for check in compared["dynamo"].report.failed]
assert failed == ["f32[3, 0, 32]"]
samples.pop()
for name in ("dynamo", "to_onnx"):
    verify(compared[name].artifact, model, samples).check()
# sphinx_gallery_start_ignore
# sphinx_gallery_start_answer
official = torch.onnx.export(model, samples[0], dynamic_shapes=dynamic, dynamo=True, verbose=False)
own = to_onnx(model, samples[0], dynamic_shapes=dynamic)
for program in (official, own):
    verify(program, model, samples).check()
# sphinx_gallery_end_answer
# sphinx_gallery_end_ignore

# %%
# The result can be the other way round for another model, so verify yours at the sizes that you need.
#
# Compare the results
# -------------------
# Both were compared with eager above. Now compare them with each other, for all samples:

names = ("dynamo", "to_onnx")
files = {name: compared[name].artifact for name in names}
apart = max(
    (files["dynamo"](x) - files["to_onnx"](x)).abs().max().item() for (x,) in samples if x.numel()
)
assert apart < 1e-5
print(f"largest difference between their outputs: {apart:.1e}")

# %%
# Compare the contents
# --------------------
# A weight counts as named if it has the name that it has in ``model.state_dict()``. ``to_onnx`` adds ``/T`` to the name of a weight that
# it stores transposed.

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
        "bytes of weights": f"{sum(value.const_value.nbytes for value in stored.values()):,}",
    }


rows = [row(name) for name in names]
assert rows[1]["weights with their names"] == f"{len(weights)} of {len(weights)}"
assert rows[0]["opset"] == rows[1]["opset"]
show.table(rows)

# %%
# The remaining bytes are nodes and their metadata. ``torch.onnx.export`` writes more metadata, including the source line of each node.

assert "pkg.torch.onnx.stack_trace" in files["dynamo"].model.graph[0].metadata_props
assert "pkg.torch.onnx.stack_trace" not in files["to_onnx"].model.graph[0].metadata_props

# %%
# The graphs show the same layer, exported with default options. Point at a node to see its metadata.

show.graphs({"torch.onnx.export": files["dynamo"], "to_onnx": files["to_onnx"]})

# %%
# Where both are right, the graphs differ in how they compute shapes and reshape tensors.

counts = {name: file.ops() for name, file in files.items()}
ops = sorted(set().union(*counts.values()), key=lambda op: max(c[op] for c in counts.values()))
positions = np.arange(len(ops))
figure, axes = plt.subplots(figsize=(6.4, 4.6), layout="constrained")
for name, shift, color in zip(names, (0.2, -0.2), ("#D55E00", "#0072B2"), strict=True):
    label = f"{name}: {counts[name].total()} nodes"
    axes.barh(positions + shift, [counts[name][op] for op in ops], 0.4, color=color, label=label)
axes.set(
    yticks=positions,
    yticklabels=ops,
    xlabel="nodes",
    title="The graphs differ in how they handle shapes",
)
axes.legend(loc="lower right")
plt.show()

# %%
# Compare the export time
# -----------------------
# Each of three rounds runs both exporters. Each ratio compares times from the same round, so the load of the machine affects both:


def exporting(name):
    return lambda: partial(export, name, model, samples[0], dynamic_shapes=dynamic)


times = interleaved({"export": {name: exporting(name) for name in names}}, rounds=3)["export"]
slower = times.ratio("dynamo", "to_onnx")
print(f"export time, torch.onnx.export ÷ to_onnx: {slower}")
assert slower.differs

# %%
# The output is the median with the lowest and the highest ratio. One layer is not representative of a deep model: see the :doc:`benchmark
# of export time </generated/benchmarks/export_time>`.
#
# Compare the latency in ONNX Runtime
# -----------------------------------
# We run two sessions on one thread for a few hundred rounds, keep the fastest of every five rounds, and report the middle 90 % of the
# ratios.

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
print(f"latency, torch.onnx.export ÷ to_onnx: {latency}")

# %%
# "No difference seen" means that the middle 90 % include 1. Both models have the same number of matrix products, so a difference comes
# from the other nodes. The layer is small, so measure again with your own sizes.

products = [sum(file.ops()[op] for op in ("MatMul", "Gemm")) for file in files.values()]
assert products[0] == products[1]

# %%
# When to use which
# -----------------
# By default, use ``torch.onnx.export``. Switch to ``to_onnx`` only if :doc:`one of these conditions applies </docs/choosing>`.
#
# ``torch.onnx.export`` is part of PyTorch, other tools expect it, its nodes have source lines, and it supports models that :doc:`to_onnx
# refuses </docs/converter>`. ``to_onnx`` exports this layer faster, accepts the empty sequence, and keeps the weight names of the PyTorch
# model. It can also keep blocks as functions (:doc:`submodules_to_onnx`) and export models with state
# (:doc:`custom_op_inplace_to_onnx`).

# %%
# Next: :doc:`how to_onnx works </docs/converter>`.
