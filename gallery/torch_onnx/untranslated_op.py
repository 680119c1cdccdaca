"""
My model has an operator that nobody translated: what now?
==========================================================

The exporter says *no translation* and stops. After this page you can read that error, add the translation yourself in a few lines, for
``to_onnx`` alone or in ``onnxscript`` for both exporters, and tell from a report where every other translation came from.

``to_onnx`` is this site's own exporter, so check what is said of it here on a model of your own.
"""

import torch
from onnxscript import opset18
from torch import nn

from exportlab import compare, expect_failure, show, to_onnx, verify
from fx2onnx.errors import UnsupportedOps

# %%
# The model takes frames of eight samples. It limits their norm, fades both ends, reads each as two matrices of two by two, takes the
# singular values of those and the eigenvalues of their lower halves, and weighs what comes out.


class Frames(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(8, 2)

    def forward(self, x):
        x = torch.renorm(x, 2, 0, 1.0) * torch.hann_window(8)
        x = x.unflatten(1, (2, 2, 2))
        both = torch.linalg.svdvals(x), torch.linalg.eigvalsh(x)
        return self.linear(torch.cat(both, 1).flatten(1))


torch.manual_seed(0)
model = Frames().eval()
samples = [(torch.randn(n, 8),) for n in (4, 7, 1, 0)]
batch = ({0: "batch"},)

# %%
# What goes wrong
# ---------------
# No exporter knows what to write:

untold = compare(model, samples, dynamic_shapes=batch)
assert untold.outcomes() == {
    "torch.export": "ok",
    "to_onnx": "convert",
    "dynamo": "convert",
    "torchscript": "convert",
}
untold

# %%
# The official exporter names the operator at which it stopped. ``to_onnx`` does not stop at the first one. It lists those it found, each
# with your line:

message = str(untold["to_onnx"].error)
assert "linalg_svdvals" in message
assert "linalg_eigvalsh" in message
assert "eig" not in str(untold["dynamo"].error)
print(message)

# %%
# What works: say it in ONNX
# --------------------------
# Two by two, both have a formula: half the sum and half the difference of two lengths, and half the trace plus and minus half a length.
# A translation takes the graph under construction and what the operator takes. It appends nodes by their ONNX names and returns the
# result.


def entries(g, x):
    return g.Split(g.Reshape(x, [-1, 4]), axis=1, num_outputs=4, outputs=4)


def length(g, p, q):
    return g.Sqrt(g.Add(g.Mul(p, p), g.Mul(q, q)))


def halves(g, x, first, second):
    return g.Reshape(g.Mul(g.Concat(first, second, axis=1), 0.5), g.Shape(x, end=-1))


def singular_values(g, x):
    a, b, c, d = entries(g, x)
    p, q = length(g, g.Add(a, d), g.Sub(c, b)), length(g, g.Sub(a, d), g.Add(b, c))
    return halves(g, x, g.Add(p, q), g.Abs(g.Sub(p, q)))


def eigenvalues(g, x):
    a, _, c, d = entries(g, x)
    trace, gap = g.Add(a, d), length(g, g.Sub(a, d), g.Mul(c, 2))
    return halves(g, x, g.Sub(trace, gap), g.Add(trace, gap))


# %%
# ``x`` is a value of the graph. The formulas are right for two by two and for nothing else: that is yours to know. The keys of the table
# are overloads, as the error spells them:

svdvals = torch.ops.aten.linalg_svdvals.default
eigvalsh = torch.ops.aten.linalg_eigvalsh.default
table = {svdvals: singular_values, eigvalsh: eigenvalues}
program = to_onnx(model, samples[0], dynamic_shapes=batch, custom_translation_table=table)
verify(program, model, samples).check()

# %%
# Right at 7, 1 and 0 frames, which the export never saw. Would a mistake be found? Take the one for the other:

mistaken = table | {eigvalsh: singular_values}
wrong = to_onnx(model, samples[0], dynamic_shapes=batch, custom_translation_table=mistaken)
report = verify(wrong, model, samples)
assert report.outcome == "wrong"
report

# %%
# The same in onnxscript
# ----------------------
# There is no ``g``; values have Python operators instead, and ``opset18.Clip(…)`` and the like append the other nodes. The first
# parameter tells ``to_onnx`` which kind it got. The official exporter takes this kind alone, so write it when you need both:


def length_in_onnxscript(p, q):
    return opset18.Sqrt(p * p + q * q)


def singular_in_onnxscript(x):
    a, b, c, d = opset18.Split(opset18.Reshape(x, [-1, 4]), axis=1, num_outputs=4)
    p, q = length_in_onnxscript(a + d, c - b), length_in_onnxscript(a - d, b + c)
    values = opset18.Concat(p + q, opset18.Abs(p - q), axis=1) * 0.5
    return opset18.Reshape(values, opset18.Shape(x, end=-1))


def eigen_in_onnxscript(x):
    a, _, c, d = opset18.Split(opset18.Reshape(x, [-1, 4]), axis=1, num_outputs=4)
    gap = length_in_onnxscript(a - d, c + c)
    values = opset18.Concat(a + d - gap, a + d + gap, axis=1) * 0.5
    return opset18.Reshape(values, opset18.Shape(x, end=-1))


both = {
    "custom_translation_table": {svdvals: singular_in_onnxscript, eigvalsh: eigen_in_onnxscript}
}
told = compare(
    model,
    samples,
    dynamic_shapes=batch,
    exporters=("to_onnx", "dynamo"),
    options={"to_onnx": both, "dynamo": both},
)
assert set(told.outcomes().values()) == {"ok"}
told

# %%
# Who translated the rest?
# ------------------------
# ``report.sources`` counts the operators by who translated them: you, ``to_onnx`` itself, ``torchlib`` (the translations of the official
# exporter, which has none for these), or nobody, so that the operator was decomposed into others. ``report.fallbacks`` names the operators of
# the last two:

assert program.report.sources["custom"] == 2
assert {"decomposed"} == set(program.report.fallbacks.values())
show.table(
    [{"source": source, "operators": count} for source, count in program.report.sources.items()]
)

# %%

show.table(
    [{"operator": op, "taken from": source} for op, source in program.report.fallbacks.items()]
)

# %%
# Those are what to look at first when a file is slow or long. With ``fallback=False`` nothing is taken from there, and they become errors
# like the first two. Ask for it where you want to know, or to have said yourself, what each operator becomes:

with expect_failure(UnsupportedOps, match="fallback=False", lines=5):
    to_onnx(model, samples[0], dynamic_shapes=batch, custom_translation_table=table, fallback=False)

# %%
# It changes nothing where nothing was borrowed. The two operators alone, without frames and windows:


class Values(nn.Module):
    def forward(self, x):
        return torch.linalg.svdvals(x), torch.linalg.eigvalsh(x)


matrices = [(torch.randn(n, 2, 2),) for n in (4, 7, 1, 0)]
strict = to_onnx(
    Values(),
    matrices[0],
    dynamic_shapes=batch,
    custom_translation_table=table,
    fallback=False,
)
assert set(strict.report.sources) == {"custom"}
verify(strict, Values(), matrices).check()
show.graph(strict, title="Two operators, as you said them")

# %%
# An operator without a translation is a function of a few lines that you have not written yet. :doc:`How a translation reads
# </docs/converter>` is part of the converter's own page. Next: :doc:`an operator that changes its input in place <custom_op_inplace>`.
