"""
How do I export repeated blocks as ONNX functions with to_onnx?
===============================================================

Pass the class of your blocks in ``functions`` and read ``report.not_shared``. The model then contains equal blocks once.

Export each repeated block of a transformer as a call of one ONNX function. This recipe uses the ``functions`` argument of ``to_onnx``,
reads in the report which blocks don't share a function and why, and inlines the functions again.
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

# %%
# The model has blocks of attention and an MLP, between two linear layers. All weights are random, so no two blocks have equal ones.


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
dynamic = ({0: "batch", 1: "time"},)

# %%
# Export with functions=(Block,)
# ------------------------------
# ``torch.onnx.export`` writes a flat list of nodes, and so does ``to_onnx`` by default. Pass classes in ``functions``, or ``True`` for
# all submodules whose class is not part of PyTorch.

official = torch.onnx.export(model, samples[0], dynamic_shapes=dynamic, dynamo=True, verbose=False)
flat = to_onnx(model, samples[0], dynamic_shapes=dynamic)
# sphinx_gallery_start_answer
program = to_onnx(model, samples[0], dynamic_shapes=dynamic, functions=(Block,))
# sphinx_gallery_end_answer

# %%
# Compare the number of nodes in the main graphs and in the functions:


def row(name, exported):
    functions = exported.model.functions.values()
    defined = ", ".join(f"{function.name} ({len(function)} nodes)" for function in functions)
    return {"export": name, "nodes in the graph": len(exported.model.graph), "functions": defined}


rows = [
    row("torch.onnx.export", official),
    row("to_onnx", flat),
    row("to_onnx, functions", program),
]
assert [bool(r["functions"]) for r in rows] == [False, False, True]
show.table(rows)

# %%
# The four blocks are four calls of one function:

assert program.report.functions == {"Block": 4}
show.graph(program, title="Four calls of one function")

# %%
# The model is right at sizes that the export never saw, and matches the flat model:

# sphinx_gallery_start_answer
verify(program, model, samples).check()
# sphinx_gallery_end_answer
torch.testing.assert_close(program(*samples[1]), flat(*samples[1]))

# %%
# Blocks that differ only in weights share a function
# ---------------------------------------------------
# The weights are arguments of the function, so blocks share it if only their weights differ. The report lists the block that the function
# was made from:

# sphinx_gallery_start_answer
report = program.report
# sphinx_gallery_end_answer
assert report.shared == {f"blocks.{i}": "blocks.0" for i in (1, 2, 3)}
assert report.not_shared == {}
report.shared

# %%
# Blocks that can't share a function
# ----------------------------------
# To share a function, two calls need a module of the same class, the same operators and constants, and inputs and weights of the same
# shapes. Here one block has another strength, one has a hook, and all have a different note.

altered = copy.deepcopy(model)
for number, block in enumerate(altered.blocks):
    block.note = f"I am number {number}"
altered.blocks[1].strength = 3.0
altered.blocks[2].register_forward_hook(lambda module, args, result: result + 1)
mixed = to_onnx(altered, samples[0], dynamic_shapes=dynamic, functions=(Block,))
verify(mixed, altered, samples).check()
assert mixed.report.shared == {"blocks.2": "blocks.0", "blocks.3": "blocks.0"}
show.table([{"block": path, "why alone": why} for path, why in mixed.report.not_shared.items()])

# %%
# The reason is the first operator that differs, with its line. The block with another strength calls a second function. The note doesn't
# matter, because ``forward`` doesn't read it. The ``+ 1`` of the hook is a node after the call, so this block shares the function:

assert mixed.report.functions == {"Block": 3, "Block_2": 1}
mixed.report.functions

# %%
# Inline the functions
# --------------------
# Some tools don't support functions. The inliner of ``onnx`` replaces each call with the function's body:

inlined = ir.from_proto(inliner.inline_local_functions(program.model_proto))
expanded, plain = (Counter(node.op_type for node in m.graph) for m in (inlined, flat.model))
assert not inlined.functions
assert plain <= expanded
verify(torch.onnx.ONNXProgram(inlined, program.exported_program), model, samples).check()

# %%
# The inlined model has all operators of the flat export, at least as often, and the results are right.
#
# Nodes by depth
# --------------
# Each further block adds its nodes to the flat model. With functions it adds one call, whatever the block contains:

depths = (1, 2, 4, 8)
nodes = {"flat": [], "functions=(Block,)": []}
for depth in depths:
    stack = Stack(depth).eval()
    for name, functions in zip(nodes, ((), (Block,)), strict=True):
        graphs = to_onnx(stack, samples[0], dynamic_shapes=dynamic, functions=functions).model
        inside = sum(len(function) for function in graphs.functions.values())
        nodes[name].append(len(graphs.graph) + inside)

figure, axes = plt.subplots(figsize=(6.4, 3.4), layout="constrained")
for (name, counts), color in zip(nodes.items(), ("#D55E00", "#0072B2"), strict=True):
    axes.plot(depths, counts, color=color, marker="o", label=name)
per_block = [(counts[-1] - counts[0]) // (depths[-1] - depths[0]) for counts in nodes.values()]
axes.set(xlabel="blocks", xticks=depths, ylim=(0, None), ylabel="nodes in the model")
axes.set_title(f"Nodes per further block: flat {per_block[0]}, with functions {per_block[1]}")
axes.legend()
plt.show()
assert per_block[1] == 1

# %%
# The function is counted once. ONNX Runtime inlines functions when it loads a model.
#
# Next: :doc:`rewrite a pattern in the graph <rewriting>`.
