"""
Dim("x"), Dim.AUTO, Dim.DYNAMIC or None: which dynamic_shapes should I use?
===========================================================================

Use a named ``Dim`` for the sizes that you need: the export fails if a guard excludes one of them. Verify the ONNX model at other
sizes, because it has no guards.

This recipe compares all ways to declare a dynamic dimension, on three models at five sizes, including one and zero. You see which ones
``torch.export``, ``torch.onnx.export`` and ``to_onnx`` refuse, specialise or accept, and when to use each.
"""

import matplotlib.pyplot as plt
import torch
from torch import nn
from torch.export import Dim
from torch.fx.experimental import _config

from exportlab import compare, expect_failure, show, to_onnx
from fx2onnx.errors import FrozenDimension

# %%
# The three models differ in how they use the number of rows. The first, ``nn.ReLU``, ignores it. The second branches on it, and the third
# loops over it.


class Branch(nn.Module):
    def forward(self, x):
        return torch.relu(x) if x.shape[0] > 4 else -x


class Loop(nn.Module):
    def forward(self, x):
        return sum(row for row in x) + torch.zeros(3)


torch.manual_seed(0)
relu, branch, loop = (model.eval() for model in (nn.ReLU(), Branch(), Loop()))
six, UserError = torch.randn(6, 3), torch._dynamo.exc.UserError

# %%
# What goes wrong: Dim.AUTO accepts a static dimension
# ----------------------------------------------------
# You request a dynamic dimension and the export succeeds, but the dimension is static:

program = torch.export.export(loop, (six,), dynamic_shapes=({0: Dim.AUTO},))
with expect_failure(AssertionError, match=r"Guard failed: x.size\(\)\[0\] == 6"):
    program.module()(torch.randn(7, 3))

# %%
# ``Dim.AUTO`` means *dynamic if possible*. ``Dim.DYNAMIC`` requires a dynamic dimension, so it refuses the loop. A named ``Dim`` requires
# its whole range, from 0 by default, so it refuses the loop and the branch:

with expect_failure(UserError, match=r"your code specialized it to be a constant \(6\)", lines=2):
    torch.export.export(loop, (six,), dynamic_shapes=({0: Dim.DYNAMIC},))
with expect_failure(UserError, match=r"Suggested fixes:\s+batch = Dim\('batch', min=5\)", lines=4):
    torch.export.export(branch, (six,), dynamic_shapes=({0: Dim("batch")},))

# %%
# Compare them with torch.export
# ------------------------------
# We export at 6 rows and verify at 20, 3, 1 and 0. Eager supports all these sizes. ``capture`` means that the export was refused, and
# ``narrow`` that the call was. ``frozen`` means that the result differs because a size or branch was specialised.

SIZES = (6, 20, 3, 1, 0)
KINDS = {
    'Dim("batch")': Dim("batch"),
    'Dim("batch", min=3, max=16)': Dim("batch", min=3, max=16),
    "Dim.DYNAMIC": Dim.DYNAMIC,
    "Dim.AUTO": Dim.AUTO,
    "None": None,
}


def by_size(exporter, model, dim):
    samples = [(six,), *((torch.randn(rows, 3),) for rows in SIZES[1:])]
    attempt = compare(model, samples, dynamic_shapes=({0: dim},), exporters=(exporter,))[exporter]
    if attempt.report is None:
        return [attempt.outcome] * len(SIZES)
    at_sizes = ("export inputs", "unseen size")
    return [check.outcome for check in attempt.report.checks if check.name in at_sizes]


def try_all(exporter, kinds):
    return {
        (type(model).__name__, kind): by_size(exporter, model, dim)
        for model in (relu, branch, loop)
        for kind, dim in kinds.items()
    }


exported = try_all("torch.export", KINDS)
columns = [f"{rows} rows" for rows in SIZES]
show.table(
    [
        {"model": m, "dynamic_shapes": k, **dict(zip(columns, results, strict=True))}
        for (m, k), results in exported.items()
    ]
)

# %%
# No result is wrong here, because unsupported sizes raise an error. But ``Dim.DYNAMIC`` narrows the range of the branch model without
# reporting it, so check ``range_constraints``. (The lower bound of 2 for the first model is not enforced: 1 and 0 pass.)

assert not any({"frozen", "wrong"} & set(results) for results in exported.values())
assert set(exported["ReLU", "Dim.DYNAMIC"]) == {"ok"}
for model, lower in ((relu, 2), (branch, 5)):
    program = torch.export.export(model, (six,), dynamic_shapes=({0: Dim.DYNAMIC},))
    assert [r.lower for r in program.range_constraints.values()] == [lower]

# %%
# ``torch.export`` makes a dimension static if its size in the example is 0 or 1. ``torch.onnx.export`` avoids this by setting
# ``torch.fx.experimental._config.backed_size_oblivious``:

with expect_failure(ValueError, match="export 0/1 specialized due to hint of 1", lines=2):
    torch.export.export(relu, (six[:1],), dynamic_shapes=({0: Dim.DYNAMIC},))
with _config.patch(backed_size_oblivious=True):
    program = torch.export.export(relu, (six[:1],), dynamic_shapes=({0: Dim.DYNAMIC},))
assert len(program.module()(six)) == 6

# %%
# Dimensions that share a Dim
# ---------------------------
# Dimensions with the same ``Dim`` must be equal in every call, even if the model doesn't need it. Use a separate ``Dim`` for each, or
# ``Dim.DYNAMIC``.


class Concat(nn.Module):
    def forward(self, x, y):
        return torch.cat([x, y])


concat, pair, uneven = Concat().eval(), (six, six + 1), (six, six[:5])
x, y = {0: Dim("x")}, {0: Dim("y")}
shared = torch.export.export(concat, pair, dynamic_shapes=(x, x))
with expect_failure(AssertionError, match=r"Guard failed: y.size\(\)\[0\] == x.size\(\)\[0\]"):
    shared.module()(*uneven)
for free in ((x, y), ({0: Dim.DYNAMIC}, {0: Dim.DYNAMIC})):
    assert torch.export.export(concat, pair, dynamic_shapes=free).module()(*uneven).shape == (11, 3)

# %%
# Compare them with torch.onnx.export
# -----------------------------------
# ``torch.onnx.export`` also accepts a string, which is a ``Dim.DYNAMIC`` with a name in the ONNX model. It differs in three ways:
#
# - An ONNX model has no guards. The branch model computes 3 rows with the formula for many rows.
# - If the model doesn't support a ``Dim``, the exporter uses the suggested fix without a warning: a narrower range, or a constant.
# - With ``Dim.AUTO``, the loop model adds six of 20 rows, although the ONNX model declares the dimension as dynamic.

words = {kind: KINDS[kind] for kind in ("Dim.DYNAMIC", 'Dim("batch")', "Dim.AUTO")}
words = {'"batch"': "batch", **words}
onnx = try_all("dynamo", words)
assert all(onnx[model, '"batch"'] == onnx[model, "Dim.DYNAMIC"] for model, _ in onnx)
for kind in ('"batch"', 'Dim("batch")'):
    assert onnx["Branch", kind] == ["ok", "ok", "frozen", "frozen", "ok"]
assert onnx["Loop", 'Dim("batch")'] == ["ok", "narrow", "narrow", "narrow", "narrow"]
assert onnx["Loop", "Dim.AUTO"] == ["ok", "frozen", "narrow", "narrow", "narrow"]
assert set(onnx["Loop", '"batch"']) == {"capture"}

# %%
# ``to_onnx`` also runs the models at other sizes, and writes both branches and a ``Loop``. The loop needs at least one row, which
# ``report.limits`` lists. It uses ``torch.export`` for ``Dim.AUTO``: the branch for few rows is lost, which ``report.limits`` also lists.

own = try_all("to_onnx", words)
for kind in ('"batch"', "Dim.DYNAMIC", 'Dim("batch")'):
    assert set(own["ReLU", kind]) == set(own["Branch", kind]) == {"ok"}
    assert own["Loop", kind] == ["ok", "ok", "ok", "ok", "narrow"]
assert own["Branch", "Dim.AUTO"] == ["ok", "ok", "frozen", "frozen", "ok"]
print(*to_onnx(loop, (six,), dynamic_shapes=({0: "batch"},)).report.limits)
print(*to_onnx(branch, (six,), dynamic_shapes=({0: Dim.AUTO},)).report.limits)

# %%
# The outcomes of the three exporters, by the number of rows at the call:


def paint(axes, results, model):
    kinds = {kind: outcomes for (name, kind), outcomes in results.items() if name == model}
    for y, outcomes in enumerate(kinds.values()):
        for x, outcome in enumerate(outcomes):
            axes.add_patch(
                plt.Rectangle((x, y), 1, 1, fc=show.OUTCOME_COLORS[outcome], ec="white", lw=2)
            )
            axes.text(x + 0.5, y + 0.5, outcome, ha="center", va="center", fontsize=8)
    axes.set(xlim=(0, len(SIZES)), ylim=(len(kinds), 0))
    axes.set_xticks([x + 0.5 for x in range(len(SIZES))], SIZES)
    axes.set_yticks(
        [y + 0.5 for y in range(len(kinds))], kinds if model == "ReLU" else [""] * len(kinds)
    )
    axes.tick_params(length=0)


figure, grid = plt.subplots(3, 3, figsize=(10, 7.4), height_ratios=(5, 4, 4), layout="constrained")
all_results = {"torch.export": exported, "torch.onnx.export": onnx, "to_onnx": own}
for line, (exporter, results) in zip(grid, all_results.items(), strict=True):
    for axes, model in zip(line, ("ReLU", "Branch", "Loop"), strict=True):
        paint(axes, results, model)
        axes.set_title(f"{exporter}: {model}", fontsize=10)
figure.supxlabel("rows at the call (exported with 6)", fontsize=9)
plt.show()

# %%
# With ``capture="torch.export"``, ``to_onnx`` compares the result with your request and refuses both models:

for model in (branch, loop):
    with expect_failure(FrozenDimension, match='"batch" was asked to be dynamic', lines=1):
        to_onnx(model, (six,), dynamic_shapes=({0: "batch"},), capture="torch.export")

# %%
# For an error instead, capture with ``torch.export`` and a named ``Dim``, and convert the program, as PyTorch's documentation advises:

# sphinx_gallery_start_answer
program = torch.export.export(relu, (six,), dynamic_shapes=({0: Dim("batch")},))
file = torch.onnx.export(program, dynamic_shapes=({0: "batch"},), dynamo=True, verbose=False)
# sphinx_gallery_end_answer
assert str(file.model.graph.inputs[0].shape[0]) == "batch"

# %%
# Which one to use
# ----------------
# - ``Dim("batch")``, with ``min`` and ``max`` if you know them: you need exactly these sizes. The export fails if a guard excludes one of
#   them. An ``if`` on a size of 0 or 1 leaves no guard, as :doc:`lesson 103 </tutorials/103_shapes_that_move>` shows.
# - ``Dim.DYNAMIC``: the dimension must be dynamic, but you don't know its range. Read ``range_constraints`` afterwards.
# - ``Dim.AUTO``: you want to find out which dimensions can be dynamic. Read the shapes afterwards.
# - ``None``: the dimension is static.
# - ``"batch"``, for both ONNX exporters: the dimension must be dynamic. Verify other sizes: the ONNX model doesn't reject them.

# %%
# Next: :doc:`ShapesCollection <shapes_by_example>`, or the lesson on :doc:`dynamic shapes </tutorials/103_shapes_that_move>`.
