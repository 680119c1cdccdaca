"""
How do I rewrite a pattern in an ONNX graph with onnxscript.rewriter?
=====================================================================

Write a class with a ``pattern``, a ``check`` and a ``rewrite``, and apply it with ``rewrite``. Test the check on a graph that the rule
must not change.

A layer norm written by hand becomes ten ONNX nodes. This recipe writes an ``onnxscript.rewriter`` rule that replaces them with one
``LayerNormalization``: the pattern, the condition and the replacement. It shows why the condition matters and measures the speed-up, for
models from ``torch.onnx.export`` and ``to_onnx``.
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
# The model has three norms. Two are layer norms. The first is not, because its mean is over *time*, axis 1.


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
# Each norm has ten nodes, and the linear layer has two.
#
# Write a rule: pattern, check and rewrite
# ----------------------------------------
# ``pattern`` describes the computation. Its arguments match any value, and a name used twice must match the same value. ``check``
# inspects the match and can reject it with a reason. ``rewrite`` builds the replacement.


class FuseLayerNorm(RewriteRuleClassBase):
    # sphinx_gallery_start_answer
    def pattern(self, op, x, axis, epsilon, weight, bias):
        centred = x - op.ReduceMean(x, axis, keepdims=1)
        variance = op.ReduceMean(centred * centred, axis, keepdims=1)
        return centred * op.Reciprocal(op.Sqrt(variance + epsilon)) * weight + bias

    # sphinx_gallery_end_answer

    def check(self, context, x, axis, epsilon, weight, bias):
        if axis.const_value is None or epsilon.const_value is None:
            return MatchResult().fail("axis and epsilon have to be constants")
        last = len(x.shape) - 1
        axes = axis.const_value.numpy().tolist()
        if axes not in ([-1], [last]):
            return MatchResult().fail(f"the mean is over axes {axes}, a layer norm needs the last")
        if not x.shape[-1:] == weight.shape == bias.shape:
            return MatchResult().fail("weight and bias have to be as long as the last axis")
        return MatchResult()

    # sphinx_gallery_start_answer
    def rewrite(self, op, x, axis, epsilon, weight, bias):
        return op.LayerNormalization(
            x, weight, bias, axis=-1, epsilon=epsilon.const_value.numpy().item()
        )

    # sphinx_gallery_end_answer


# %%
# ``rewrite`` changes its argument, so pass a copy. The result is called like the original:


def rewritten(rule, file=program):
    return OnnxArtifact(rewrite(file.model.clone(), [rule]), file.calling, "rewritten")


rule = FuseLayerNorm.rule()
fused = rewritten(rule)
before, after = program.stats(), fused.stats()
assert (before.nodes, after.nodes, after.ops["LayerNormalization"]) == (32, 14, 2)
report = verify(fused, model, samples)
report.check()

# %%
# The model has 14 nodes instead of 32, and is right at sizes that the export never saw. The norm over time has the same ten operators,
# but was not replaced. A ``MatchingTracer`` reports the reason: it records the best match without changing the model.

tracer = MatchingTracer()
rule.apply_to_model(fused.model, tracer=tracer)
(nearest,) = tracer.best_matches_map[rule]
print(nearest.status.name, len(nearest.match_result.nodes), "nodes:", nearest.match_result.reason)
assert (nearest.status.name, len(nearest.match_result.nodes)) == ("CONDITION_FAILED", 10)

# %%
# Apply the rule to the model from to_onnx
# ----------------------------------------
# ``to_onnx`` writes the same ten nodes for a norm over the last axis, but counts that axis from the front. The same rule works, because
# ``check`` accepts both ``last`` and -1:

own = export("to_onnx", model, samples[0], dynamic_shapes=({0: "batch", 1: "time"},))
own_fused = rewritten(rule, own)
assert own_fused.stats().ops["LayerNormalization"] == 2
assert own.stats().nodes - own_fused.stats().nodes == before.nodes - after.nodes == 2 * (10 - 1)
verify(own_fused, model, samples).check()

# %%
# Check what the exporters already do before you write a rule. Both fold a batch norm into the preceding convolution:

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
# What goes wrong: a rule without a condition
# -------------------------------------------
# ``check`` is what protects the norm over time. A rule with the same pattern and replacement but without the condition makes the graph
# smaller:

unconditional = rewritten(RewriteRule(FuseLayerNorm().pattern, FuseLayerNorm().rewrite))
assert unconditional.stats().nodes == 5
report = verify(unconditional, model, samples[:1])
assert report.outcome == "wrong"
report

# %%
# The model is valid, it runs, and its shapes are right. The comparison with eager shows that the mean is over the wrong axis.
#
# Measure the speed-up
# --------------------
# We compare three sessions on one thread: the export, the same file again, and the rewritten model. ``interleaved`` calls each once per
# round in changing order, and discards the first fifty rounds. We keep the fastest of every five rounds. Each ratio compares neighbouring
# calls, so the load of the machine affects both. The ratio of the same file shows the noise.

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
    result = "no difference seen" if low <= 1 <= high else f"{middle:.2f}× the time"
    return f"{name}:\n{result}\n({low:.2f} to {high:.2f})"


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
    title="Two norms fused: one node instead of ten",
)
plt.show()

# %%
# "No difference seen" means that the whiskers include 1. Measure again with your own sizes.
#
# Next: :doc:`which submodule a node comes from <submodules>`.
