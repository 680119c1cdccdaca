"""
Can I export with batch size 1 and run other batch sizes?
=========================================================

Yes with both ONNX exporters, if the model doesn't treat the size 1 differently: write ``squeeze(-1)``, not ``squeeze()``. It is safer to
export with two rows or more.

This recipe exports a regression that ends in ``squeeze()`` with a batch of one and of two, and runs it with one, seven and no rows. It
compares what each exporter does with the size 1, and shows how ``squeeze(-1)`` fixes the model.
"""

import matplotlib.pyplot as plt
import torch
from torch import nn

from exportlab import compare, expect_failure, show, verify

# %%
# The model returns one number per row, and removes the last dimension with ``squeeze``:


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
# What goes wrong: squeeze() removes the batch dimension
# ------------------------------------------------------
# The model returns seven numbers for seven rows, but a scalar for one row. ``squeeze()`` removes *every* dimension of size 1, including
# the batch. Code that iterates over the results fails for a single row:

assert everything(torch.randn(7, 4)).shape == (7,)
with expect_failure(TypeError, match="iteration over a 0-d tensor"):
    list(everything(one))

# %%
# Compare the exporters
# ---------------------
# We export with a dynamic batch, from one row and from two, and verify at 1, 7 and 0 rows:

ROWS = (1, 7, 0)
unseen = [(torch.randn(rows, 4),) for rows in ROWS]
exporters = ("torch.export", "dynamo", "to_onnx")
batch = ({0: "batch"},)


def outcomes(attempt):
    """Return the outcome at each of `ROWS`, or the error for all of them if the export failed."""
    if attempt.report is None:
        return [attempt.outcome] * len(ROWS)
    return [check.outcome for check in attempt.report.checks if check.name == "unseen size"]


models = {"squeeze()": everything, "squeeze(-1)": last}
# sphinx_gallery_start_ignore
# sphinx_gallery_start_answer
scores = last.layers(two).squeeze(-1)  # and not squeeze()
program = torch.onnx.export(last, (two,), dynamic_shapes=batch, dynamo=True, verbose=False)
verify(program, last, [(two,), *unseen]).check()
# sphinx_gallery_end_answer
# sphinx_gallery_end_ignore
compared = {
    (name, len(example)): compare(
        model, [(example,), *unseen], dynamic_shapes=batch, exporters=exporters
    )
    for name, model in models.items()
    for example in (one, two)
}
results = {key: {e: outcomes(c[e]) for e in exporters} for key, c in compared.items()}
show.table([{"model": name, **compared[name, 2].outcomes()} for name in models])

# %%
# The model from ``torch.onnx.export`` behaves like eager, but declares an output dimension *batch* that doesn't exist for one row.
# ``to_onnx`` refuses the model for that reason:

file = compared["squeeze()", 2]["dynamo"].artifact
assert [str(dim) for dim in file.model.graph.outputs[0].shape] == ["batch"]
assert file(one).shape == ()
print(compared["squeeze()", 2]["to_onnx"].error)

# %%
# What works: squeeze(-1)
# -----------------------
# Name the dimension with ``squeeze(-1)``. One row then has one result, and an empty batch has none, in both ONNX models:

for exporter in ("dynamo", "to_onnx"):
    file = compared["squeeze(-1)", 2][exporter].artifact
    verify(file, last, [(two,), *unseen]).check()
    assert file(one).shape == (1,)

# %%
# Export with an example of one row
# ---------------------------------
# ``torch.export`` makes a dimension static if the example has size 1, and refuses to make it dynamic. Both ONNX exporters turn this off,
# which works for an MLP. Larger models may test for a size of 1 themselves, and then the branch for one row is specialised: this happens
# in :doc:`a Llama </tutorials/302_language_model_with_cache>`.

assert results["squeeze(-1)", 1]["torch.export"] == ["capture"] * 3
for exporter in ("dynamo", "to_onnx"):
    assert results["squeeze(-1)", 1][exporter] == results["squeeze(-1)", 2][exporter] == ["ok"] * 3
assert results["squeeze()", 1]["to_onnx"] == ["capture"] * 3

figure, plots = plt.subplots(2, 2, figsize=(7, 4), sharex=True, sharey=True, layout="constrained")
for plot, ((name, rows), by_exporter) in zip(plots.flat, results.items(), strict=True):
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
figure.suptitle("squeeze(-1), exported with two rows, is right in all three")
plt.show()

# %%
# Next: :doc:`Dim, Dim.AUTO or Dim.DYNAMIC </generated/gallery/torch_export/dynamic_shapes>`, or :doc:`dynamic image sizes in a CNN
# <model_convnet>`.
