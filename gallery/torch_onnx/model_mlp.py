"""
MLP: may I export with a batch of one, and then run one?
========================================================

One row is the easiest example to write, and the one size that models treat as special. Here is a regression that ends in ``squeeze()``,
exported with one row and with two, then run with one, seven and no rows: what each exporter makes of it, and the argument that fixes it.

``to_onnx`` is this site's own exporter, so check what is said of it here on a model of your own.
"""

import matplotlib.pyplot as plt
import torch
from torch import nn

from exportlab import compare, expect_failure, show, verify

# %%
# The model answers each row with one number, and drops the last axis on the way out:


class Regression(nn.Module):
    def __init__(self, *squeezed):
        super().__init__()
        self.layers = nn.Sequential(nn.Linear(4, 16), nn.GELU(), nn.Linear(16, 1))
        self.squeezed = squeezed

    def forward(self, x):
        return self.layers(x).squeeze(*self.squeezed)


torch.manual_seed(0)
everything, last = Regression().eval(), Regression(-1).eval()
one, two = torch.randn(1, 4), torch.randn(2, 4)

# %%
# What goes wrong
# ---------------
# For seven rows there are seven numbers, for one row there is one number without an axis. ``squeeze()`` takes away *every* axis of size 1, and
# the batch is one of them. Whoever loops over the answers fails on the day when a single row arrives:

assert everything(torch.randn(7, 4)).shape == (7,)
with expect_failure(TypeError, match="iteration over a 0-d tensor"):
    list(everything(one))

# %%
# All the ways
# ------------
# Exported with a batch that moves, from one row and from two, then verified at 1, 7 and 0 rows:

ROWS = (1, 7, 0)
unseen = [(torch.randn(rows, 4),) for rows in ROWS]
exporters = ("torch.export", "dynamo", "to_onnx")
batch = ({0: "batch"},)


def outcomes(attempt):
    """At each of `ROWS`; the refusal everywhere, where there is no file."""
    if attempt.report is None:
        return [attempt.outcome] * len(ROWS)
    return [check.outcome for check in attempt.report.checks if check.name == "unseen size"]


models = {"squeeze()": everything, "squeeze(-1)": last}
compared = {
    (name, len(example)): compare(
        model, [(example,), *unseen], dynamic_shapes=batch, exporters=exporters
    )
    for name, model in models.items()
    for example in (one, two)
}
found = {key: {e: outcomes(c[e]) for e in exporters} for key, c in compared.items()}
show.table([{"model": name, **compared[name, 2].outcomes()} for name in models])

# %%
# ``torch.onnx.export`` gives you a file that does as eager does, and declares what is not so: an axis called *batch*, which is gone when
# there is one row. ``to_onnx`` refuses, since no file can promise both:

file = compared["squeeze()", 2]["dynamo"].artifact
assert [str(dim) for dim in file.model.graph.outputs[0].shape] == ["batch"]
assert file(one).shape == ()
print(compared["squeeze()", 2]["to_onnx"].error)

# %%
# What works
# ----------
# Say which axis: ``squeeze(-1)``. One row then has one answer, in both files, and an empty batch has none:

for exporter in ("dynamo", "to_onnx"):
    file = compared["squeeze(-1)", 2][exporter].artifact
    verify(file, last, [(two,), *unseen]).check()
    assert file(one).shape == (1,)

# %%
# An example of one row
# ---------------------
# ``torch.export`` takes a size of 1 in the example for a constant, and refuses to move it. Both ONNX exporters tell it not to. That is well for
# an MLP. Larger models ask for a size of 1 themselves; then the answer for your one row is what stays:
# :doc:`a Llama </tutorials/302_language_model_with_cache>` comes out frozen.

assert found["squeeze(-1)", 1]["torch.export"] == ["capture"] * 3
for exporter in ("dynamo", "to_onnx"):
    assert found["squeeze(-1)", 1][exporter] == found["squeeze(-1)", 2][exporter] == ["ok"] * 3
assert found["squeeze()", 1]["to_onnx"] == ["capture"] * 3

figure, plots = plt.subplots(2, 2, figsize=(7, 4), sharex=True, sharey=True, layout="constrained")
for plot, ((name, rows), by_exporter) in zip(plots.flat, found.items(), strict=True):
    for y, at_rows in enumerate(by_exporter.values()):
        for x, outcome in enumerate(at_rows):
            color = show.OUTCOME_COLORS[outcome]
            plot.add_patch(plt.Rectangle((x, y), 1, 1, fc=color, ec="white", lw=2))
            plot.text(x + 0.5, y + 0.5, outcome, ha="center", va="center", fontsize=8)
    plot.set(xlim=(0, len(ROWS)), ylim=(len(exporters), 0), title=f"{name}, exported with {rows}")
    plot.set_xticks([x + 0.5 for x in range(len(ROWS))], ROWS)
    plot.set_yticks([y + 0.5 for y in range(len(exporters))], exporters)
    plot.tick_params(length=0)
figure.supxlabel("rows at the call", fontsize=9)
figure.suptitle("Right in all three: squeeze(-1), exported with two rows")
plt.show()

# %%
# Export with two rows or more, name the axis that you squeeze, and verify with one row and with none. Next: :doc:`which word for which promise
# </generated/gallery/torch_export/dynamic_shapes>`, or :doc:`sizes of images, in a convnet <model_convnet>`.
