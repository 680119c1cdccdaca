"""
Where did my submodules go?
===========================

A model is a tree of modules; its ONNX file is one flat list of nodes. Here you find what is left of the tree: the submodule that
each node came from, the names of the weights, a way to get modules back from a captured graph, and one to keep them in the file.
"""

import ast
import tempfile
from collections import Counter, OrderedDict
from itertools import groupby

import matplotlib.pyplot as plt
import onnx_ir as ir
import torch
from torch import nn

from exportlab import expect_failure, show, to_onnx, verify

# %%
# Two equal blocks and a head. The weights are drawn at random, so that no two are equal, as after training.


class Block(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm = nn.LayerNorm(8)
        self.attention = nn.MultiheadAttention(8, 2, batch_first=True)
        self.mlp = nn.Sequential(nn.Linear(8, 16), nn.GELU(), nn.Linear(16, 8))

    def forward(self, x):
        y = self.norm(x)
        x = x + self.attention(y, y, y, need_weights=False)[0]
        return x + self.mlp(x)


torch.manual_seed(0)
model = nn.Sequential(OrderedDict(first=Block(), second=Block(), head=nn.Linear(8, 3))).eval()
for weight in model.parameters():
    nn.init.normal_(weight, std=0.3)
samples = [(torch.randn(batch, time, 8),) for batch, time in ((4, 5), (7, 3), (1, 1), (0, 5))]
moving = ({0: torch.export.Dim.DYNAMIC, 1: torch.export.Dim.DYNAMIC},)

# %%
# In the captured graph
# ---------------------
# Capture calls ``forward`` and records ops, not modules. But each op remembers the modules it was called in, outermost first, in
# ``nn_module_stack``. Here is what became of the first block:

captured = torch.export.export(model, samples[0], dynamic_shapes=moving)


def innermost(node):
    path, kind = list(node.meta["nn_module_stack"].values())[-1]
    return {"module": path, "class": kind.split(".")[-1]}


calls = [node for node in captured.graph.nodes if node.op == "call_function"]
visits = [{**module, "ops": len(list(ops))} for module, ops in groupby(calls, innermost)]
assert [visit["ops"] for visit in visits if visit["class"] == "MultiheadAttention"] == [27, 25]
assert visits[0]["module"] not in dict(model.named_modules())
show.table(visits[1:8])

# %%
# (``visits[0]`` belongs to no module: capture asks for the sizes of the input before it calls the model.)
#
# In the ONNX file
# ----------------
# The exporter writes the stack into the metadata of each ONNX node, and whoever has the file can read it there:

program = torch.onnx.export(captured, dynamo=True, verbose=False)
verify(program, model, samples).check()
with tempfile.TemporaryDirectory() as folder:
    program.save(f"{folder}/model.onnx")
    file = ir.load(f"{folder}/model.onnx")


def scopes(node):
    return ast.literal_eval(node.metadata_props["pkg.torch.onnx.name_scopes"])


scopes(next(node for node in file.graph if node.op_type == "Gelu"))

# %%
# The last entry is the captured op, the one before it the submodule. Now count the nodes of the two attentions:

first, second = (
    [node for node in file.graph if f"{name}.attention" in scopes(node)]
    for name in ("first", "second")
)
assert (len(first), len(second)) == (44, 38)

# %%
# Equal modules, unequal counts. What both need is computed once, and the node stays with the one that came first:

shared = [
    node.op_type
    for node in first
    if {user for value in node.outputs for user in value.consumers()} & set(second)
]
assert shared == ["Concat"] * 4
shared

# %%
# These put shapes together. So the nodes of one submodule are not a file of their own: they may use what another one computed.
#
# The names of the weights
# ------------------------
# A weight keeps its name, unless the optimiser folded an op into it. Then it is called ``val_…``, and its metadata has the name:

ORIGIN = "pkg.onnxscript.optimizer.folded_from"
weights = model.state_dict()
stored = file.graph.initializers.values()
folded = {
    name: v
    for v in stored
    for name in ast.literal_eval(v.metadata_props.get(ORIGIN, "[]"))
    if name in weights
}
assert {v.name for v in stored} & weights.keys() == weights.keys() - folded.keys()
assert all(
    torch.equal(torch.tensor(v.const_value.numpy()), weights[name].T) for name, v in folded.items()
)
show.table(
    [{"weight": name, "in the file": v.name, "shape": str(v.shape)} for name, v in folded.items()]
)

# %%
# Each is the weight of a linear op, transposed once and for all.
#
# A module that stands in the tree under two names leaves nodes under both, and one copy of its weights, under the last name. (The
# option ``export_modules_as_functions``, which once kept modules apart, is taken and does nothing.)

layer = nn.Linear(8, 8)
options = {"dynamic_shapes": moving, "export_modules_as_functions": True}
twice = torch.onnx.export(
    nn.Sequential(layer, nn.ReLU(), layer).eval(), samples[0], dynamo=True, verbose=False, **options
)
assert not twice.model.functions
assert [scopes(node)[-2] for node in twice.model.graph] == ["0", "0", "1", "2", "2"]
assert [v.metadata_props.get(ORIGIN, v.name) for v in twice.model.graph.initializers.values()] == [
    "2.bias",
    "['2.weight']",
]

# %%
# Modules again
# -------------
# ``unflatten`` builds the tree anew from the captured graph, weights included. The whole runs at seven rows, and so does a part that
# takes and gives one tensor:

restored, (seven,) = torch.export.unflatten(captured), samples[1]
assert torch.equal(restored(seven), model(seven))
assert torch.equal(restored.second.mlp(seven), model.second.mlp(seven))

# %%
# A block does not. Whatever crosses its border is an argument now, and the attention in it uses sizes that were taken outside:

with expect_failure(RuntimeError, match="Expected positional argument", lines=1):
    restored.first(seven)

# %%
# Borders in the file
# -------------------
# ``to_onnx`` writes the same metadata. It can also keep the borders: each class in ``functions`` becomes an ONNX function, each of its
# modules one call, with the weights as arguments.

blocks = to_onnx(model, samples[0], dynamic_shapes=moving, functions=(Block,))
verify(blocks, model, samples).check()
bordered = [node for node in blocks.model.graph if node.op_type.startswith("Block")]
assert [scopes(node)[-1] for node in bordered] == ["first", "second"]
show.table([{"module": scopes(n)[-1], "function": n.op_type} for n in bordered])

# %%
# :doc:`submodules_to_onnx` goes on from there: equal blocks, captured once.
#
# Who has the nodes?
# ------------------
# Back to the flat file. Many of its nodes handle shapes or move data. The metadata says for whom.

MOVES = {"Concat", "Gather", "Reshape", "Shape", "Slice", "Squeeze", "Transpose", "Unsqueeze"}


def part(node):
    path = scopes(node)[-2]
    return "sizes of the input" if path.startswith("_") else ".".join(path.split(".")[:2])


parts = list(dict.fromkeys(map(part, file.graph)))
counts = Counter((part(node), node.op_type in MOVES) for node in file.graph)
computes, moves = ([counts[name, kind] for name in parts] for kind in (False, True))

figure, axes = plt.subplots(figsize=(6.4, 3.6), layout="constrained")
axes.barh(parts, computes, color="#0072B2", label="computes")
axes.barh(parts, moves, left=computes, color="#E69F00", label="handles shapes, moves data")
axes.set(
    xlabel="ONNX nodes", title=f"{sum(moves)} of {len(file.graph)} nodes only move data or sizes"
)
axes.invert_yaxis()
axes.legend()
plt.show()

# %%
# The file keeps the names of your modules but not their boundaries, unless you ask for functions. Next: :doc:`rewriting a pattern in the
# graph <rewriting>`.
