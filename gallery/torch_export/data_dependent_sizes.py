"""
How do I export sizes that depend on the data?
==============================================

How many rows a mask selects, or what ``item()`` returns, is known when the model runs, not before. Such sizes can be exported, as long as
nobody asks about them in an ``if``. You will see which questions stop the export, say ``torch._check`` instead, and get ONNX files that are
right for other counts, zero among them.

``to_onnx`` is this site's own exporter, so check what is said of it here on a model of your own.
"""

import torch
from torch import nn
from torch.fx.experimental.symbolic_shapes import GuardOnDataDependentSymNode

from exportlab import compare, expect_failure, show, verify

# %%
# The model takes the first ``n`` rows, keeps those whose sum is positive, and averages what a layer makes of them. It guards itself twice:
# against an ``n`` that is too large, and against nothing being left.


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
# What goes wrong
# ---------------
# Nothing is wrong with ``item()``. The ``if`` that follows it is what stops the export:

with expect_failure(GuardOnDataDependentSymNode, match="u0 < 0", lines=1):
    torch.export.export(model, example, dynamic_shapes=dynamic)

# %%
# Why
# ---
# The number of rows of ``x`` has a value during the capture, that of the example, by which an ``if`` can be decided. ``u0`` has none: an
# *unbacked* symbol, for there are no data. It may stand in shapes and in arithmetic, and nothing can be decided by it.
#
# A promise instead of a question
# -------------------------------
# An ``if`` that only raises is no branch, it is a promise. ``torch._check`` makes it: to the capture, which may rely on it, and to whoever
# runs the program, who is refused when it is broken.


class Checked(Average):
    def first(self, x, n):
        count = n.item()
        torch._check(count >= 0)
        torch._check(count <= x.shape[0])
        return x[:count]


with expect_failure(GuardOnDataDependentSymNode, match=r"Eq\(u1, 0\)", lines=1):
    torch.export.export(Checked().eval(), example, dynamic_shapes=dynamic)

# %%
# One further. ``u1`` is what the mask selects, and now the branch is a true one. Divide by the count, and by 1 where there is none, so
# that both answers come out of the same operations:


class Counted(Checked):
    def mean(self, kept):
        total = self.linear(kept).sum(0)
        return total / torch.full((), kept.shape[0]).clamp(min=1)


counted = Counted().eval()
counted.load_state_dict(model.state_dict())
program = torch.export.export(counted, example, dynamic_shapes=dynamic)
show.program(program)

# %%
# ``_assert_scalar`` is a promise that was kept: yours, and those that torch adds. Below the graph stand the ranges that it concluded.
#
# What works: other counts, and none
# ----------------------------------
# All rows, no row selected, no row asked for, one row, no rows at all:

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
# The model that cannot be exported says what the answers have to be. ONNX has ``Compress`` or ``NonZero`` for this, with results of any
# length:

exporters = ("torch.export", "to_onnx", "dynamo")
compared = compare(counted, samples, dynamic_shapes=batch, exporters=exporters)
assert set(compared.outcomes().values()) == {"ok"}
assert compared["to_onnx"].artifact.ops()["Compress"] == 1
assert compared["dynamo"].artifact.ops()["NonZero"] == 1
for exporter in exporters:
    verify(compared[exporter].artifact, model, samples).check()
compared

# %%
# What a file forgets
# -------------------
# An ONNX file has no assertions. Ask for nine rows of six: the model raises, the program raises, and the files give what they have.

x, nine = example[0], torch.tensor(9)


def answer(run):
    try:
        return f"{len(run(x, nine)[1])} rows kept"
    except (RuntimeError, ValueError) as refused:
        return f"refused: {str(refused).splitlines()[0]}"


runs = {"the model": model} | {name: compared[name].artifact for name in exporters}
answers = {name: answer(run) for name, run in runs.items()}
assert [text.startswith("refused") for text in answers.values()] == [True, True, False, False]
show.table([{"run": name, "nine of six rows": text} for name, text in answers.items()])

# %%
# So check the arguments before you call a file. In both, ``u0`` and ``u1`` are lengths that only a run can tell; point at a box to see them:

files = {"torch.onnx.export": compared["dynamo"].artifact, "to_onnx": compared["to_onnx"].artifact}
show.graphs(files)

# %%
# Compute with a size that the data decide, state its limits with ``torch._check``, and never branch on it. Next: where the branch has to
# stay, :doc:`torch.cond </generated/gallery/torch_onnx/cond>`.
