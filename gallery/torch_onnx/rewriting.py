"""
How do I rewrite a pattern in an ONNX graph?
============================================

A layer norm written by hand becomes ten ONNX nodes, and the exporter leaves it at that. Here you write a rule that makes them one: the
pattern, the condition under which it may be replaced, and the node that takes its place. You will see what the condition saves you from,
what the rule does to the running time, and that it works on the file of ``to_onnx`` too.

``to_onnx`` is this site's own exporter, so check what is said of it here on a model of your own.
"""

from functools import partial

import matplotlib.pyplot as plt
import numpy as np
import onnx_ir as ir
import onnxruntime
import torch
from onnxscript.rewriter import (
    MatchingTracer,
    MatchResult,
    RewriteRule,
    RewriteRuleClassBase,
    rewrite,
)
from torch import nn

from exportlab import compare, export, show, verify
from exportlab.exporters import OnnxArtifact
from exportlab.measure.timing import interleaved

# %%
# The model has three norms. Two are layer norms. The first one is not: its mean is over *time*, axis 1.


class Norm(nn.Module):
    def __init__(self, axis):
        super().__init__()
        self.axis, self.weight, self.bias = (
            axis,
            nn.Parameter(torch.rand(256) + 0.5),
            nn.Parameter(torch.randn(256)),
        )

    def forward(self, x):
        centred = x - x.mean(self.axis, keepdim=True)
        variance = (centred * centred).mean(self.axis, keepdim=True)
        return centred * torch.rsqrt(variance + 1e-5) * self.weight + self.bias


torch.manual_seed(0)
model = nn.Sequential(Norm(axis=1), Norm(axis=-1), nn.Linear(256, 256), Norm(axis=-1)).eval()
samples = [
    (torch.randn(batch, time, 256),) for batch, time in ((4, 6), (7, 3), (1, 1), (0, 6), (2, 0))
]
program = export("dynamo", model, samples[0], dynamic_shapes=({0: "batch", 1: "time"},))
show.summary(program)

# %%
# Ten nodes for each norm, and two for the linear layer.
#
# A rule has three parts
# ----------------------
# ``pattern`` reads like the computation. Its arguments match any value; a name used twice has to be the same value twice.
# ``check`` looks at what was matched and may refuse, with a reason. ``rewrite`` builds the replacement.


class FuseLayerNorm(RewriteRuleClassBase):
    def pattern(self, op, x, axis, epsilon, weight, bias):
        centred = x - op.ReduceMean(x, axis, keepdims=1)
        variance = op.ReduceMean(centred * centred, axis, keepdims=1)
        return centred * op.Reciprocal(op.Sqrt(variance + epsilon)) * weight + bias

    def check(self, context, x, axis, epsilon, weight, bias):
        if axis.const_value is None or epsilon.const_value is None:
            return MatchResult().fail("axis and epsilon have to be constants")
        last = len(x.shape) - 1
        if (axes := axis.const_value.numpy().tolist()) not in ([-1], [last]):
            return MatchResult().fail(f"the mean is over axes {axes}, a layer norm needs the last")
        if not x.shape[-1:] == weight.shape == bias.shape:
            return MatchResult().fail("weight and bias have to be as long as the last axis")
        return MatchResult()

    def rewrite(self, op, x, axis, epsilon, weight, bias):
        return op.LayerNormalization(
            x, weight, bias, axis=-1, epsilon=epsilon.const_value.numpy().item()
        )


# %%
# ``rewrite`` changes the model that it is given, so hand it a copy. The result is called as the export was:


def rewritten(rule, file=program):
    return OnnxArtifact(rewrite(file.model.clone(), [rule]), file.calling, "rewritten")


rule = FuseLayerNorm.rule()
fused = rewritten(rule)
before, after = program.stats(), fused.stats()
assert (before.nodes, after.nodes, after.ops["LayerNormalization"]) == (32, 14, 2)
report = verify(fused, model, samples)
report.check()

# %%
# From 32 nodes to 14, and the answers are right at sizes that the export never saw. The norm over time has the same ten ops and was
# left alone. A ``MatchingTracer`` tells why: it changes nothing, and keeps the match that came furthest.

tracer = MatchingTracer()
rule.apply_to_model(fused.model, tracer=tracer)
(nearest,) = tracer.best_matches_map[rule]
print(nearest.status.name, len(nearest.match_result.nodes), "nodes:", nearest.match_result.reason)
assert (nearest.status.name, len(nearest.match_result.nodes)) == ("CONDITION_FAILED", 10)

# %%
# The file of the other exporter
# ------------------------------
# ``to_onnx`` makes the same ten nodes of a norm over the last axis, and counts that axis from the front. So the same rule serves its file;
# that is why ``check`` takes ``last`` as well as -1:

own = export("to_onnx", model, samples[0], dynamic_shapes=({0: "batch", 1: "time"},))
own_fused = rewritten(rule, own)
assert own_fused.stats().ops["LayerNormalization"] == 2
assert own.stats().nodes - own_fused.stats().nodes == before.nodes - after.nodes == 2 * (10 - 1)
verify(own_fused, model, samples).check()

# %%
# Some patterns need no rule. Before you write one, look what the exporters do by themselves. Both fold a batch norm into the convolution
# before it:

norms = {
    "after a convolution": (nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), torch.rand(2, 3, 8, 8)),
    "after a linear layer": (nn.Linear(3, 4), nn.BatchNorm1d(4), torch.rand(2, 3)),
}
folds = []
for where, (layer, norm, x) in norms.items():
    norm.running_mean.uniform_()
    pair = compare(nn.Sequential(layer, norm).eval(), [(x,)], exporters=("dynamo", "to_onnx"))
    assert set(pair.outcomes().values()) == {"ok"}
    ops = {name: ", ".join(attempt.artifact.ops()) for name, attempt in pair.attempts.items()}
    folds.append({"batch norm": where, **ops})
assert set(folds[0].values()) == {"after a convolution", "Conv"}
show.table(folds)

# %%
# Without the condition
# ---------------------
# Back to the norm over time. Only ``check`` stood in the way. A rule of the same pattern and replacement with no condition makes the graph
# smaller still:

careless = rewritten(RewriteRule(FuseLayerNorm().pattern, FuseLayerNorm().rewrite))
assert careless.stats().nodes == 5
report = verify(careless, model, samples[:1])
assert report.outcome == "wrong"
report

# %%
# The file is valid, it runs, its shapes are right. Only the comparison with eager sees that a mean is over the wrong axis.
#
# What it is worth
# ----------------
# Three sessions on one thread: the export, the same file once more, and the rewritten one. ``interleaved`` calls each once a round and
# lets another begin each time; the first fifty rounds are thrown away. Of five rounds the fastest counts. A ratio is between
# neighbours, so what else the machine does meets both. The same file once more shows how far such a ratio strays by itself.

options = onnxruntime.SessionOptions()
options.intra_op_num_threads = 1
feeds = {"input": torch.randn(1, 16, 256).numpy()}


def maker(artifact):
    file = ir.to_proto(artifact.model).SerializeToString()
    session = onnxruntime.InferenceSession(file, options, providers=["CPUExecutionProvider"])
    return lambda: partial(session.run, None, feeds)


makers = {"export": maker(program), "same file": maker(program), "rewritten": maker(fused)}
timings = interleaved({"latency": makers}, rounds=1000, discard=50)["latency"]
fastest = {name: np.array(timings.of(name)).reshape(200, 5).min(axis=1) for name in makers}
same_file, fused_file = (
    fastest["same file"] / fastest["export"],
    fastest["rewritten"] / fastest["export"],
)


def verdict(name, ratios):
    low, middle, high = np.quantile(ratios, (0.05, 0.5, 0.95))
    seen = "no difference seen" if low <= 1 <= high else f"{middle:.2f} of the time"
    return f"{name}:\n{seen}\n({low:.2f} to {high:.2f})"


labels = [verdict("same file", same_file), verdict("rewritten", fused_file)]
figure, axes = plt.subplots(figsize=(6.4, 2.8), layout="constrained")
axes.boxplot(
    [same_file, fused_file],
    orientation="horizontal",
    whis=(5, 95),
    showfliers=False,
    widths=0.6,
    tick_labels=labels,
)
axes.axvline(1, color="#999999", lw=1, zorder=0)
axes.set(
    xlim=(0, None),
    xlabel="time ÷ time of the export (whiskers hold 90 % of 200 ratios)",
    title="Two norms fused: one node for ten",
)
plt.show()

# %%
# "No difference seen" stands there when the whiskers include 1. Measure again at your own sizes.
#
# A rule is only as good as its condition: try it on a graph that it must leave alone, and verify what comes out. Next: :doc:`which
# submodule does a node come from? <submodules>`
