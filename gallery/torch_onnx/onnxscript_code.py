"""
How do I read a model as onnxscript code, change it, and get the model back?
============================================================================

``proto2python`` prints an exported file as a Python function. Run that function, and you have a file again. You will see the round trip, a
model that comes back wrong without an error, the options of the printer that do not work, and an edit that is verified.
"""

import importlib.util
import itertools
import re
import sys
import tempfile
from pathlib import Path

import onnx_ir as ir
import torch
from onnxscript import proto2python
from torch import nn

from exportlab import export, show, verify
from exportlab.exporters import OnnxArtifact

# %%
# A model with a branch. It is exported twice, by the official exporter and by ``to_onnx``:


class Gate(nn.Module):
    def __init__(self, activation):
        super().__init__()
        self.first, self.second = nn.Linear(4, 8), nn.Linear(8, 3)
        self.activation = activation

    def forward(self, x):
        y = self.activation(self.first(x))
        return torch.cond(y.sum() > 20, self.second, lambda y: -self.second(y), (y,))


torch.manual_seed(0)
model = Gate(nn.ReLU()).eval()
samples = [(scale * torch.randn(rows, 4),) for rows, scale in ((3, 3), (7, 3), (1, 0.1), (0, 1))]
assert {bool(model.activation(model.first(x)).sum() > 20) for (x,) in samples} == {True, False}
batch = ({0: "batch"},)
files = {
    exporter: export(exporter, model, samples[0], dynamic_shapes=batch)
    for exporter in ("dynamo", "to_onnx")
}

# %%
# Read
# ----
# Nodes are calls, attributes are keywords, and the ``If`` is an ``if``. The weights stand in the code as constants, cut short here:


def print_code(code):
    body = code[code.index("@script") :].rstrip()
    print("\n".join(f"{line[:95]} …" if len(line) > 97 else line for line in body.splitlines()))


code = proto2python(ir.to_proto(files["dynamo"].model))
print_code(code)

# %%
# Run
# ---
# ``@script`` reads the source of what it decorates, so the code has to be a file. ``exec`` alone is refused.


def run(code):
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "printed.py")
        path.write_text(code)
        spec = importlib.util.spec_from_file_location("printed", path)
        module = sys.modules["printed"] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
    return ir.from_proto(module.main_graph.to_model_proto())


def artifact(model, file):
    return OnnxArtifact(model, file.calling, "printed")


for file in files.values():
    back = artifact(run(proto2python(ir.to_proto(file.model))), file)
    verify(back, model, samples).check()
    assert all(torch.equal(back(*sample), file(*sample)) for sample in samples)

# %%
# The same answers, to the last bit, with both sides of the branch among the samples.
#
# What goes wrong
# ---------------
# A name in ONNX may be any text. In Python, ``first.weight`` becomes ``first_weight``. If there is a weight of that name already, the
# later one takes the place of both:


class Twice(nn.Module):
    def __init__(self):
        super().__init__()
        self.first, self.first_weight = nn.Linear(4, 4), nn.Parameter(torch.randn(4, 4))

    def forward(self, x):
        return self.first(x) @ self.first_weight


twice = Twice().eval()
two_names = export("dynamo", twice, samples[0], dynamic_shapes=batch)
verify(two_names, twice, samples).check()
report = verify(
    artifact(run(proto2python(ir.to_proto(two_names.model))), two_names), twice, samples
)
assert report.outcome == "wrong"
report

# %%
# Of four options that promise shorter code, three fail on this file, though not in silence:


def came_back(**options):
    try:
        run(proto2python(ir.to_proto(two_names.model), **options))
    except Exception as error:  # noqa: BLE001 - what is raised is the content of the table
        return f"{type(error).__name__}: {error}".splitlines()[0]
    return "a model"


options = ("use_operators", "rename", "inline_const", "skip_initializers")
found = {option: came_back(**{option: True}) for option in options}
assert [option for option, said in found.items() if said == "a model"] == ["use_operators"]
show.table([{"option": option, "what came back": said} for option, said in found.items()])

# %%
# ``rename`` and ``inline_const`` go by the new name in one place and by the old one in another; any dot in a name is enough.
# ``skip_initializers`` is the one that sees the collision. ``use_operators`` works: ``y + z`` for ``Add(y, z)``.
#
# The way: weights as arguments, names that Python can have
# ----------------------------------------------------------
# Before you print, let ``onnx_ir`` turn the weights into inputs and make every name a Python name of its own. Afterwards, put the weights
# back under the names that they had:


def in_python(name, taken):
    plain = re.sub(r"\W", "_", name)
    numbered = (f"{plain}_{count}" for count in itertools.count(1))
    return next(name for name in itertools.chain([plain], numbered) if name not in taken)


def printable(model):
    """The code of a model without its weights; and, by their new names, the weights with their old ones."""
    graph, weights, taken = (model := model.clone()).graph, {}, set()
    graph.inputs.extend(graph.initializers.values())
    made = (value for node in graph.all_nodes() for value in node.outputs)
    for value in [*graph.inputs, *made]:
        old, value.name = value.name, in_python(value.name, taken)
        taken.add(value.name)
        if value.is_initializer():
            weights[value.name] = old, value.const_value
    graph.initializers.clear()
    return proto2python(ir.to_proto(model), use_operators=True), weights


def complete(model, weights):
    given = [value for value in model.graph.inputs if value.name in weights]
    for value in given:
        model.graph.inputs.remove(value)
        value.name, value.const_value = weights[value.name]
        model.graph.register_initializer(value)
    return model


code, weights = printable(files["dynamo"].model)
print_code(code)

# %%
# Now the code is short, and what comes back is the model that it was: the same nodes, the same weights, the same answers. The two names
# stay two.


def content(model):
    weights = {name: value.const_value.numpy() for name, value in model.graph.initializers.items()}
    nodes = [(node.op_type, len(node.inputs)) for node in model.graph.all_nodes()]
    return nodes, {name: (array.shape, array.tobytes()) for name, array in weights.items()}


for file, module in ((files["dynamo"], model), (files["to_onnx"], model), (two_names, twice)):
    back = complete(run(printable(file.model)[0]), printable(file.model)[1])
    assert content(back) == content(file.model)
    verify(artifact(back, file), module, samples).check()

# %%
# Change it
# ---------
# Any edit of the text will do, a new line as well. Here the activation is limited to 2. The result is held against a module that has the
# same weights and that limit, at sizes that no export saw:

limited = Gate(nn.Hardtanh(0, 2)).eval()
limited.load_state_dict(model.state_dict())
for file in files.values():
    code, weights = printable(file.model)
    edited = code.replace("opset20.Relu(linear)", "opset20.Min(opset20.Relu(linear), 2.0)")
    assert edited != code
    changed = artifact(complete(run(edited), weights), file)
    assert verify(changed, model, samples).outcome == "wrong"
    verify(changed, limited, samples).check()

# %%
# There are two new nodes, ``Min`` and the ``CastLike`` that gives your 2.0 the type of its neighbour:

show.graph(changed, title="Edited as text")

# %%
# Use printed code for reading and for small edits, and verify what comes back like any other export. Next: :doc:`many edits at once, by a
# rule <rewriting>`, or the lesson on :doc:`models without torch </tutorials/206_onnx_by_hand>`.
