"""
Can repeated blocks be captured once, and be one function in the file?
======================================================================

A transformer repeats one block many times, and its file spells out every copy. After this page you can export a class of submodules as one
ONNX function that is captured once. You can also tell from the report which blocks were left out and why, and undo it.
"""

# sphinx_gallery_thumbnail_number = -1
import copy
from collections import Counter

import matplotlib.pyplot as plt
import onnx_ir as ir
import torch
from onnx import inliner
from torch import nn
from torch.nn import functional as F

from exportlab import show, to_onnx, verify
from exportlab.measure.timing import interleaved

# %%
# The model: blocks of attention and an MLP, between two linear layers. All weights are drawn at random, so no two blocks hold equal ones.


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.before, self.between = nn.LayerNorm(16), nn.LayerNorm(16)
        self.qkv, self.out = nn.Linear(16, 48), nn.Linear(16, 16)
        self.mlp = nn.Sequential(nn.Linear(16, 32), nn.GELU(), nn.Linear(32, 16))
        self.strength, self.note = 1.0, ""

    def forward(self, x):
        heads = (t.unflatten(-1, (2, 8)) for t in self.qkv(self.before(x)).chunk(3, -1))
        y = F.scaled_dot_product_attention(*(t.transpose(1, 2) for t in heads))
        x = x + self.out(y.transpose(1, 2).flatten(2))
        return x + self.mlp(self.between(x)) * self.strength


class Stack(nn.Module):
    def __init__(self, depth):
        super().__init__()
        self.stem, self.head = nn.Linear(16, 16), nn.Linear(16, 3)
        self.blocks = nn.Sequential(*(Block() for _ in range(depth)))

    def forward(self, x):
        return self.head(self.blocks(self.stem(x)))


torch.manual_seed(0)
model = Stack(4).eval()
samples = [(torch.randn(batch, time, 16),) for batch, time in ((4, 5), (7, 3), (1, 1), (0, 5))]
moving = ({0: "batch", 1: "time"},)

# %%
# The flat way
# ------------
# The official exporter writes one list of nodes; so does ``to_onnx`` unless it is told otherwise. Then tell it: ``functions`` takes
# classes, or ``True`` for every submodule that does not come with torch.

official = torch.onnx.export(model, samples[0], dynamic_shapes=moving, dynamo=True, verbose=False)
flat = to_onnx(model, samples[0], dynamic_shapes=moving)
program = to_onnx(model, samples[0], dynamic_shapes=moving, functions=(Block,))

# %%
# How long are the main graphs, and how long the functions?


def row(name, exported):
    functions = exported.model.functions.values()
    defined = ", ".join(f"{function.name} ({len(function)} nodes)" for function in functions)
    return {"export": name, "nodes in the graph": len(exported.model.graph), "functions": defined}


rows = [row("official", official), row("to_onnx", flat), row("to_onnx, functions", program)]
assert [bool(r["functions"]) for r in rows] == [False, False, True]
show.table(rows)

# %%
# The four blocks are four calls of one function:

assert program.report.functions == {"Block": 4}
show.graph(program, title="Four calls of one function")

# %%
# Right at sizes that the export never saw, and its numbers are those of the flat file:

verify(program, model, samples).check()
torch.testing.assert_close(program(*samples[1]), flat(*samples[1]))

# %%
# Captured once
# -------------
# The weights are arguments of the function. So a block whose weights alone differ need not be looked at again, and was not: the report
# says on whose capture it stands.

report = program.report
assert report.shared == {f"blocks.{i}": "blocks.0" for i in (1, 2, 3)}
assert report.not_shared == {}
report.shared

# %%
# A block that differs
# --------------------
# Sharing needs a proof: the same class and code, weights of the same shapes, arguments of the same kind, no hook, and equal values of
# the attributes that ``forward`` was seen to read. Here one block is stronger, one has a hook, and two have only another note.

altered = copy.deepcopy(model)
for number, block in enumerate(altered.blocks):
    block.note = f"I am number {number}"
altered.blocks[1].strength = 3.0
altered.blocks[2].register_forward_hook(lambda module, args, result: result + 1)
mixed = to_onnx(altered, samples[0], dynamic_shapes=moving, functions=(Block,))
verify(mixed, altered, samples).check()
assert mixed.report.shared == {"blocks.3": "blocks.0"}
show.table([{"block": path, "why alone": why} for path, why in mixed.report.not_shared.items()])

# %%
# Both were exported right, each from a capture of its own; the hook's ``+ 1`` is in the file. The note does not count, since no
# ``forward`` reads it. The block with the hook is no call at all, and the stronger one calls a second function:

assert mixed.report.functions == {"Block": 2, "Block_2": 1}
mixed.report.functions

# %%
# Back to a flat file
# -------------------
# Some tools do not look into functions. The inliner that comes with ``onnx`` puts each body in the place of its calls:

inlined = ir.from_proto(inliner.inline_local_functions(program.model_proto))
expanded, plain = (Counter(node.op_type for node in m.graph) for m in (inlined, flat.model))
assert not inlined.functions
assert plain <= expanded
verify(torch.onnx.ONNXProgram(inlined, program.exported_program), model, samples).check()

# %%
# Every op of the flat export is there again, at least as often, and the answers are right.
#
# How the time grows with depth
# -----------------------------
# Three rounds, each with every depth and both ways. A time is divided by the time of the same way at one block, in the same round:

depths = (1, 3, 6)
ways = {"flat": (), "functions=(Block,)": (Block,)}


def maker(depth, functions):
    def make():
        stack = Stack(depth).eval()
        return lambda: to_onnx(stack, samples[0], dynamic_shapes=moving, functions=functions)

    return make


groups = {depth: {name: maker(depth, kinds) for name, kinds in ways.items()} for depth in depths}
times = interleaved(groups, rounds=3, discard=0)
figure, axes = plt.subplots(figsize=(6.4, 3.4), layout="constrained")
for name, color in zip(ways, ("#D55E00", "#0072B2"), strict=True):
    grown = [times[depth].growth(name, times[1]) for depth in depths]
    middle = [ratio.median for ratio in grown]
    spread = [[r.median - r.low for r in grown], [r.high - r.median for r in grown]]
    axes.errorbar(depths, middle, spread, color=color, marker="o", capsize=4, label=name)
flat_growth, shared_growth = (times[6].growth(name, times[1]) for name in ways)
assert shared_growth.median < flat_growth.median
axes.set(xlabel="blocks", xticks=depths, ylim=(0, None), ylabel="time ÷ time at one block")
axes.set_title(f"Six blocks against one\nflat: {flat_growth}; functions: {shared_growth}")
axes.legend()
plt.show()

# %%
# The points are medians; a bar goes from the lowest of the three to the highest. The flat export captures each block. The other one
# captures the first, whatever the depth.
#
# Name the class of your blocks, read ``report.not_shared``, and a deep model costs little more than one block. Next:
# :doc:`rewriting a pattern in the graph <rewriting>`.
