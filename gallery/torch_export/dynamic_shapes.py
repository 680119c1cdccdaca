"""
Dim("x"), Dim.AUTO, Dim.DYNAMIC or None: which do I write?
==========================================================

Here you try each way to say that an axis moves, on three models at five sizes, one and zero among them. You get a table of what is
refused, frozen or accepted, the same for ``torch.onnx.export``, which keeps fewer promises, and for ``to_onnx``, and one rule for each.

``to_onnx`` is this site's own exporter, so check what is said of it here on a model of your own.
"""

import matplotlib.pyplot as plt
import torch
from torch import nn
from torch.export import Dim
from torch.fx.experimental import _config

from exportlab import compare, expect_failure, show, to_onnx
from fx2onnx.errors import FrozenDimension

# %%
# Three models that differ in what they do with the number of rows: nothing, branch on it, loop over it. The first is ``nn.ReLU``.


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
# What goes wrong
# ---------------
# You ask for a dynamic axis, the export succeeds, and the axis is static:

program = torch.export.export(loop, (six,), dynamic_shapes=({0: Dim.AUTO},))
with expect_failure(AssertionError, match=r"Guard failed: x.size\(\)\[0\] == 6"):
    program.module()(torch.randn(7, 3))

# %%
# ``Dim.AUTO`` means *dynamic if possible*. ``Dim.DYNAMIC`` insists that the axis moves, and refuses this loop. A named ``Dim`` insists on
# its whole range, from 0 up unless you say more. It refuses the loop, and the branch as well:

with expect_failure(UserError, match=r"your code specialized it to be a constant \(6\)", lines=2):
    torch.export.export(loop, (six,), dynamic_shapes=({0: Dim.DYNAMIC},))
with expect_failure(UserError, match=r"Suggested fixes:\s+batch = Dim\('batch', min=5\)", lines=4):
    torch.export.export(branch, (six,), dynamic_shapes=({0: Dim("batch")},))

# %%
# All of them, on all three models
# --------------------------------
# Export at 6 rows, verify at 20, 3, 1 and 0. Eager takes them all. ``capture`` means refused at export, ``narrow`` refused at the call,
# ``frozen`` that it ran and the numbers differ.

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


def tried(exporter, kinds):
    return {
        (type(model).__name__, kind): by_size(exporter, model, dim)
        for model in (relu, branch, loop)
        for kind, dim in kinds.items()
    }


exported = tried("torch.export", KINDS)
columns = [f"{rows} rows" for rows in SIZES]
show.table(
    [
        {"model": m, "you write": k, **dict(zip(columns, found, strict=True))}
        for (m, k), found in exported.items()
    ]
)

# %%
# No number is wrong here, and what does not work says so. ``Dim.DYNAMIC`` is the one to watch: on the branch it narrows its range and does
# not tell. Ask the program. (The 2 that it reports elsewhere is not enforced: 1 and 0 pass.)

assert not any({"frozen", "wrong"} & set(found) for found in exported.values())
assert set(exported["ReLU", "Dim.DYNAMIC"]) == {"ok"}
for model, lower in ((relu, 2), (branch, 5)):
    program = torch.export.export(model, (six,), dynamic_shapes=({0: Dim.DYNAMIC},))
    assert [r.lower for r in program.range_constraints.values()] == [lower]

# %%
# An example of one row is a trap of its own. torch.export makes an axis constant where the example has size 0 or 1, unless
# ``torch.fx.experimental._config.backed_size_oblivious`` is set, as ``torch.onnx.export`` does:

with expect_failure(ValueError, match="export 0/1 specialized due to hint of 1", lines=2):
    torch.export.export(relu, (six[:1],), dynamic_shapes=({0: Dim.DYNAMIC},))
with _config.patch(backed_size_oblivious=True):
    program = torch.export.export(relu, (six[:1],), dynamic_shapes=({0: Dim.DYNAMIC},))
assert len(program.module()(six)) == 6

# %%
# One name for two axes
# ---------------------
# Axes that share a ``Dim`` have to be equal at every call, even where the model has no need of it. Give each its own, or a hint.


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
# The same words for torch.onnx.export
# ------------------------------------
# It takes a string as well, which is ``Dim.DYNAMIC`` with a name for the file. Three promises are lost on the way:
#
# - An ONNX file has no guards. The branch answers 3 rows with the formula for many.
# - A ``Dim`` that cannot be kept is replaced by the suggested fix, without a word: a narrower range, or a constant, as of the loop here.
# - Under ``Dim.AUTO`` the loop adds six of 20 rows, in a file that calls the axis dynamic.

words = {kind: KINDS[kind] for kind in ("Dim.DYNAMIC", 'Dim("batch")', "Dim.AUTO")}
words = {'"batch"': "batch", **words}
onnx = tried("dynamo", words)
assert all(onnx[model, '"batch"'] == onnx[model, "Dim.DYNAMIC"] for model, _ in onnx)
for kind in ('"batch"', 'Dim("batch")'):
    assert onnx["Branch", kind] == ["ok", "ok", "frozen", "frozen", "ok"]
assert onnx["Loop", 'Dim("batch")'] == ["ok", "narrow", "narrow", "narrow", "narrow"]
assert onnx["Loop", "Dim.AUTO"] == ["ok", "frozen", "narrow", "narrow", "narrow"]
assert set(onnx["Loop", '"batch"']) == {"capture"}

# %%
# ``to_onnx`` runs the models at other sizes, too, and writes both sides of the branch and a ``Loop``. That loop needs one row at least, and
# the report lists that as a limit. With ``Dim.AUTO``, ``torch.export`` decides: the branch for few rows is lost, and the report lists that as well.

own = tried("to_onnx", words)
for kind in ('"batch"', "Dim.DYNAMIC", 'Dim("batch")'):
    assert set(own["ReLU", kind]) == set(own["Branch", kind]) == {"ok"}
    assert own["Loop", kind] == ["ok", "ok", "ok", "ok", "narrow"]
assert own["Branch", "Dim.AUTO"] == ["ok", "ok", "frozen", "frozen", "ok"]
print(*to_onnx(loop, (six,), dynamic_shapes=({0: "batch"},)).report.limits)
print(*to_onnx(branch, (six,), dynamic_shapes=({0: Dim.AUTO},)).report.limits)

# %%
# With ``capture="torch.export"`` it holds what came out against what you asked for, and refuses both:

for model in (branch, loop):
    with expect_failure(FrozenDimension, match='"batch" was asked to be dynamic', lines=1):
        to_onnx(model, (six,), dynamic_shapes=({0: "batch"},), capture="torch.export")

# %%
# To have what the model cannot keep refused, make the promise to torch.export, and hand its program on. (Its file takes other sizes, too.)

program = torch.export.export(relu, (six,), dynamic_shapes=({0: Dim("batch")},))
file = torch.onnx.export(program, dynamic_shapes=({0: "batch"},), dynamo=True, verbose=False)
assert str(file.model.graph.inputs[0].shape[0]) == "batch"

# %%
# Which to write
# --------------
# - ``Dim("batch")``, with ``min`` and ``max`` where you have them: the sizes that you promise. Refused when a guard forbids one of them;
#   an ``if`` on a size of 0 or 1 leaves no guard, as :doc:`lesson 103 </tutorials/103_shapes_that_move>` shows.
# - ``Dim.DYNAMIC``: it has to move, you do not know how far. Read ``range_constraints`` afterwards.
# - ``Dim.AUTO``: to find out what can move at all. Read the shapes afterwards.
# - ``None``: it does not move.
# - ``"batch"``, for both ONNX exporters: it has to move. Then verify at other sizes, since the file will not refuse them.


def paint(axes, found, model):
    kinds = {kind: outcomes for (name, kind), outcomes in found.items() if name == model}
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
all_found = {"torch.export": exported, "torch.onnx.export": onnx, "to_onnx": own}
for line, (exporter, found) in zip(grid, all_found.items(), strict=True):
    for axes, model in zip(line, ("ReLU", "Branch", "Loop"), strict=True):
        paint(axes, found, model)
        axes.set_title(f"{exporter}: {model}", fontsize=10)
figure.supxlabel("rows at the call (exported with 6)", fontsize=9)
plt.show()

# %%
# A named ``Dim`` is a promise, a hint is a wish, and no ONNX file holds you to either, so verify it at other sizes. Next: :doc:`the same by
# tensor or by example <shapes_by_example>`, or the lesson on :doc:`shapes that move </tutorials/103_shapes_that_move>`.
