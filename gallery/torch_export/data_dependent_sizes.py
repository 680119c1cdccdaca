"""
How do I export data-dependent sizes with torch._check?
=======================================================

Use the size in shapes and arithmetic, and state its limits with ``torch._check``. Don't branch on it: use a tensor operation such as
``clamp`` instead.

Export a model whose sizes depend on its data, such as the number of rows that a mask selects or the result of ``item()``.
``torch.export`` supports these sizes if your code doesn't branch on them. This recipe replaces the branches with ``torch._check`` and
tensor operations, and runs the ONNX models with other counts, including zero.
"""

import torch
from torch import nn
from torch.fx.experimental.symbolic_shapes import GuardOnDataDependentSymNode

from exportlab import compare, expect_failure, show, verify

# %%
# The model uses the first ``n`` rows, keeps those with a positive sum, applies a layer, and averages the result. It has a check for an
# invalid ``n``, and a branch for an empty selection.


class Average(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(3, 2)

    def first(self, x, n):
        count = n.item()
        if count < 0 or count > x.shape[0]:
            raise ValueError(f"{count} of {x.shape[0]} rows")
        return x[:count]

    def mean(self, kept):
        if kept.shape[0] == 0:
            return torch.zeros(2)
        return self.linear(kept).mean(0)

    def forward(self, x, n):
        rows = self.first(x, n)
        kept = rows[rows.sum(1) > 0]
        return self.mean(kept), kept


def call(rows, n, sign=None):
    x = torch.randn(rows, 3)
    return (x if sign is None else sign * x.abs(), torch.tensor(n))


torch.manual_seed(0)
model = Average().eval()
example = call(6, 4)
batch = ({0: "batch"}, None)
dynamic = ({0: torch.export.Dim.DYNAMIC}, None)

# %%
# What goes wrong: an if after item()
# -----------------------------------
# ``torch.export`` accepts ``item()``, but refuses the ``if`` that follows it:

with expect_failure(GuardOnDataDependentSymNode, match="u0 < 0", lines=1):
    torch.export.export(model, example, dynamic_shapes=dynamic)

# %%
# Why: unbacked symbols
# ---------------------
# During capture, the number of rows of ``x`` has a value, that of the example, so it can decide an ``if``. ``u0`` has no value, because
# the data is not available: it is an *unbacked* symbol. You can use it in shapes and arithmetic, but not in a branch.
#
# Replace the if with torch._check
# --------------------------------
# An ``if`` that only raises an error is not a branch. Express it with ``torch._check``: the capture relies on the condition, and the
# exported program raises an error if it is false.


class Checked(Average):
    def first(self, x, n):
        # sphinx_gallery_start_answer
        count = n.item()
        torch._check(count >= 0)
        torch._check(count <= x.shape[0])
        return x[:count]
        # sphinx_gallery_end_answer


with expect_failure(GuardOnDataDependentSymNode, match=r"Eq\(u1, 0\)", lines=1):
    torch.export.export(Checked().eval(), example, dynamic_shapes=dynamic)

# %%
# One error is left. ``u1`` is the number of selected rows, and this ``if`` is a real branch. Divide by the count, or by 1 if the count is
# zero, so that the same operations compute both results:


class Counted(Checked):
    def mean(self, kept):
        total = self.linear(kept).sum(0)
        return total / torch.full((), kept.shape[0]).clamp(min=1)


counted = Counted().eval()
counted.load_state_dict(model.state_dict())
program = torch.export.export(counted, example, dynamic_shapes=dynamic)
show.program(program)

# %%
# Each ``_assert_scalar`` is a checked condition, either yours or one that PyTorch added. The ranges that PyTorch derived are below the
# graph.
#
# Run the ONNX models with other counts
# -------------------------------------
# The samples contain all rows, no selected row, ``n`` = 0, one row, and no rows:

samples = [
    example,
    call(9, 9, sign=1),
    call(7, 5, sign=-1),
    call(6, 0),
    call(1, 1, sign=1),
    call(0, 0),
]


def row(x, n):
    mean, kept = model(x, n)
    shown = ", ".join(f"{value:.3f}" for value in mean.tolist())
    return {"rows": len(x), "n": n.item(), "kept": len(kept), "mean": shown}


show.table([row(*sample) for sample in samples])

# %%
# The original model defines the expected results. ONNX uses ``Compress`` or ``NonZero`` for the selection, and both produce outputs of
# variable length:

exporters = ("torch.export", "to_onnx", "dynamo")
compared = compare(counted, samples, dynamic_shapes=batch, exporters=exporters)
assert set(compared.outcomes().values()) == {"ok"}
assert compared["to_onnx"].artifact.ops()["Compress"] == 1
assert compared["dynamo"].artifact.ops()["NonZero"] == 1
for exporter in exporters:
    verify(compared[exporter].artifact, model, samples).check()
compared

# %%
# ONNX models have no assertions
# ------------------------------
# An ONNX model doesn't contain the checks. For nine of six rows, the model and the exported program raise an error, but the ONNX models
# use the six rows that exist:

x, nine = example[0], torch.tensor(9)


def answer(run):
    try:
        return f"{len(run(x, nine)[1])} rows kept"
    except (RuntimeError, ValueError) as error:
        return f"refused: {str(error).splitlines()[0]}"


runs = {"the model": model} | {name: compared[name].artifact for name in exporters}
answers = {name: answer(run) for name, run in runs.items()}
assert [text.startswith("refused") for text in answers.values()] == [True, True, False, False]
show.table([{"run": name, "nine of six rows": text} for name, text in answers.items()])

# %%
# Check the arguments before you call an ONNX model. In both graphs, ``u0`` and ``u1`` are lengths that are only known at run time. Point
# at a node to see them:

files = {"torch.onnx.export": compared["dynamo"].artifact, "to_onnx": compared["to_onnx"].artifact}
show.graphs(files)

# %%
# Next: :doc:`torch.cond </generated/gallery/torch_onnx/cond>`, if you have to keep the branch.
