"""
Which submodule does an ONNX node come from (nn_module_stack)?
==============================================================

Read ``pkg.torch.onnx.name_scopes`` from the metadata of the node. The ONNX model contains the names of your modules, but not their
boundaries.

A PyTorch model is a tree of modules, but its ONNX graph is a flat list of nodes. This recipe reads the submodule of each node from its
metadata, and finds the original names of the weights. It also restores modules with ``torch.export.unflatten``, and keeps them as ONNX
functions.
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
# The model has two equal blocks and a head. All weights are random, so no two are equal.


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
dynamic = ({0: torch.export.Dim.DYNAMIC, 1: torch.export.Dim.DYNAMIC},)

# %%
# Read nn_module_stack in the captured graph
# ------------------------------------------
# ``torch.export`` records operations, not modules. But each operation has an ``nn_module_stack``, which lists the modules that called it,
# outermost first. The table shows the first block:

captured = torch.export.export(model, samples[0], dynamic_shapes=dynamic)


def innermost(node):
    path, kind = list(node.meta["nn_module_stack"].values())[-1]
    return {"module": path, "class": kind.split(".")[-1]}


calls = [node for node in captured.graph.nodes if node.op == "call_function"]
visits = [{**module, "ops": len(list(ops))} for module, ops in groupby(calls, innermost)]
assert [visit["ops"] for visit in visits if visit["class"] == "MultiheadAttention"] == [27, 25]
assert visits[0]["module"] not in dict(model.named_modules())
show.table(visits[1:8])

# %%
# (``visits[0]`` doesn't belong to a module: it reads the sizes of the input before the model is called.)
#
# Read name_scopes in the ONNX model
# ----------------------------------
# ``torch.onnx.export`` writes the stack into the metadata of each ONNX node, where you can read it from the file:

# sphinx_gallery_start_answer
program = torch.onnx.export(captured, dynamo=True, verbose=False)
# sphinx_gallery_end_answer
verify(program, model, samples).check()
with tempfile.TemporaryDirectory() as folder:
    program.save(f"{folder}/model.onnx")
    file = ir.load(f"{folder}/model.onnx")


# sphinx_gallery_start_answer
def scopes(node):
    return ast.literal_eval(node.metadata_props["pkg.torch.onnx.name_scopes"])


# sphinx_gallery_end_answer


scopes(next(node for node in file.graph if node.op_type == "Gelu"))

# %%
# The last entry is the captured operation, and the entry before it is the submodule. Count the nodes of both attention modules:

first, second = (
    [node for node in file.graph if f"{name}.attention" in scopes(node)]
    for name in ("first", "second")
)
assert (len(first), len(second)) == (44, 38)

# %%
# The modules are equal but have different node counts. Nodes that both need are computed once, and belong to the first module:

shared = [
    node.op_type
    for node in first
    if {user for value in node.outputs for user in value.consumers()} & set(second)
]
assert shared == ["Concat"] * 4
shared

# %%
# These nodes assemble shapes. You can't cut out the nodes of a submodule as a separate model, because they may use results of another
# submodule.
#
# Names of the weights
# --------------------
# A weight keeps its name, unless the optimiser folded an operation into it. It is then called ``val_…``, and its metadata contains the
# original name:

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
# Each is the weight of a linear operation, transposed during the export.
#
# A module that is in the tree under two names has nodes under both names. Its weights are stored once, under the last name. (The option
# ``export_modules_as_functions`` is accepted but has no effect.)

layer = nn.Linear(8, 8)
options = {"dynamic_shapes": dynamic, "export_modules_as_functions": True}
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
# Restore modules with torch.export.unflatten
# -------------------------------------------
# ``unflatten`` rebuilds the tree from the captured graph, with the weights. You can run the whole model at seven rows, and also a
# submodule with one input and one output tensor:

restored, (seven,) = torch.export.unflatten(captured), samples[1]
assert torch.equal(restored(seven), model(seven))
assert torch.equal(restored.second.mlp(seven), model.second.mlp(seven))

# %%
# A block doesn't run alone. All values that it uses from outside are now arguments, and its attention uses sizes that were computed
# outside:

with expect_failure(RuntimeError, match="Expected positional argument", lines=1):
    restored.first(seven)

# %%
# Keep modules as ONNX functions with to_onnx
# -------------------------------------------
# ``to_onnx`` writes the same metadata. Each class in ``functions`` becomes an ONNX function, and each of its modules becomes a call with
# the weights as arguments.

blocks = to_onnx(model, samples[0], dynamic_shapes=dynamic, functions=(Block,))
verify(blocks, model, samples).check()
function_calls = [node for node in blocks.model.graph if node.op_type.startswith("Block")]
assert [scopes(node)[-1] for node in function_calls] == ["first", "second"]
show.table([{"module": scopes(n)[-1], "function": n.op_type} for n in function_calls])

# %%
# :doc:`submodules_to_onnx` shows which blocks share a function.
#
# Count the nodes of each submodule
# ---------------------------------
# Many nodes of the flat model handle shapes or the layout of data. The metadata shows which submodule they belong to.

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
# Next: :doc:`rewrite a pattern in the graph <rewriting>`.
