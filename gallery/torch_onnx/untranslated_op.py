"""
How do I export an unsupported operator with custom_translation_table?
======================================================================

Add the translation of the missing operator to ``custom_translation_table``, as a function of a few lines.

If the exporter stops with *no translation* for an operator, add the translation yourself in a few lines. This recipe writes it for
``to_onnx`` alone, and in ``onnxscript`` for both ``to_onnx`` and ``torch.onnx.export``. It also shows how to find the source of every
other translation in the report.
"""

import torch
from onnxscript import opset18
from torch import nn

from exportlab import compare, expect_failure, show, to_onnx, verify
from fx2onnx.errors import UnsupportedOps

# %%
# The model processes frames of eight samples. It limits their norm, applies a window, and treats each frame as two 2 × 2 matrices. It
# computes the singular values of the matrices and the eigenvalues of their lower triangles, and applies a linear layer.


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
# What goes wrong: an operator without a translation
# --------------------------------------------------
# ``torch.export`` captures the model, but the ONNX exporters don't support two of its operators:

without_table = compare(model, samples, dynamic_shapes=batch)
assert without_table.outcomes() == {
    "torch.export": "ok",
    "to_onnx": "convert",
    "dynamo": "convert",
    "torchscript": "convert",
}
without_table

# %%
# ``torch.onnx.export`` reports the operator at which it stopped. ``to_onnx`` lists all unsupported operators that it found, with your
# source lines:

message = str(without_table["to_onnx"].error)
assert "linalg_svdvals" in message
assert "linalg_eigvalsh" in message
assert "eig" not in str(without_table["dynamo"].error)
print(message)

# %%
# Write a translation for to_onnx
# -------------------------------
# Both operators have a closed form for 2 × 2 matrices: half the sum and half the difference of two lengths, and half the trace plus and
# minus half a length. A translation accepts the graph under construction and the operator's arguments. It appends nodes by their ONNX
# names and returns the result.


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
# ``x`` is a value of the graph. The formulas are only valid for 2 × 2 matrices, and the exporter doesn't check that. The keys of the
# table are overloads, as in the error message:

svdvals = torch.ops.aten.linalg_svdvals.default
eigvalsh = torch.ops.aten.linalg_eigvalsh.default
table = {svdvals: singular_values, eigvalsh: eigenvalues}
program = to_onnx(model, samples[0], dynamic_shapes=batch, custom_translation_table=table)
verify(program, model, samples).check()

# %%
# The model is right at 7, 1 and 0 frames, which the export never saw. ``verify`` also detects a wrong translation, for example the wrong
# function for an operator:

mistaken = table | {eigvalsh: singular_values}
wrong = to_onnx(model, samples[0], dynamic_shapes=batch, custom_translation_table=mistaken)
report = verify(wrong, model, samples)
assert report.outcome == "wrong"
report

# %%
# Write the translation in onnxscript
# -----------------------------------
# This version has no ``g``. Values support Python operators, and functions such as ``opset18.Clip(…)`` append the other nodes.
# ``torch.onnx.export`` accepts only this kind of function. ``to_onnx`` recognises the kind by the first parameter, so you can use the
# same table for both:


def length_in_onnxscript(p, q):
    return opset18.Sqrt(p * p + q * q)


# sphinx_gallery_start_answer
def singular_in_onnxscript(x):
    a, b, c, d = opset18.Split(opset18.Reshape(x, [-1, 4]), axis=1, num_outputs=4)
    p, q = length_in_onnxscript(a + d, c - b), length_in_onnxscript(a - d, b + c)
    values = opset18.Concat(p + q, opset18.Abs(p - q), axis=1) * 0.5
    return opset18.Reshape(values, opset18.Shape(x, end=-1))


# sphinx_gallery_end_answer


def eigen_in_onnxscript(x):
    a, _, c, d = opset18.Split(opset18.Reshape(x, [-1, 4]), axis=1, num_outputs=4)
    gap = length_in_onnxscript(a - d, c + c)
    values = opset18.Concat(a + d - gap, a + d + gap, axis=1) * 0.5
    return opset18.Reshape(values, opset18.Shape(x, end=-1))


# sphinx_gallery_start_answer
both = {
    "custom_translation_table": {svdvals: singular_in_onnxscript, eigvalsh: eigen_in_onnxscript}
}
# sphinx_gallery_end_answer
with_table = compare(
    model,
    samples,
    dynamic_shapes=batch,
    exporters=("to_onnx", "dynamo"),
    options={"to_onnx": both, "dynamo": both},
)
assert set(with_table.outcomes().values()) == {"ok"}
with_table

# %%
# Find the source of each translation
# -----------------------------------
# ``report.sources`` counts the operators by source: ``custom``, ``own`` (the translations of ``to_onnx``), ``torchlib`` (those of
# ``torch.onnx.export``), or ``decomposed`` into other operators. ``report.fallbacks`` lists the operators of the last two:

assert program.report.sources["custom"] == 2
assert {"decomposed"} == set(program.report.fallbacks.values())
show.table(
    [{"source": source, "operators": count} for source, count in program.report.sources.items()]
)

# %%

show.table([{"operator": op, "source": source} for op, source in program.report.fallbacks.items()])

# %%
# Look at these first if a model is slow or large. With ``fallback=False``, ``to_onnx`` doesn't use these sources, and such operators
# raise errors like the first two:

with expect_failure(UnsupportedOps, match="fallback=False", lines=5):
    to_onnx(model, samples[0], dynamic_shapes=batch, custom_translation_table=table, fallback=False)

# %%
# ``fallback=False`` has no effect if no operator needs these sources. This model uses only the two operators:


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
show.graph(strict, title="Two custom translations")

# %%
# Next: :doc:`how translations work </docs/converter>`, or :doc:`an operator that changes its input in place <custom_op_inplace>`.
