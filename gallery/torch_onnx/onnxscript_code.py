"""
How do I convert an ONNX model to onnxscript code with proto2python?
====================================================================

Print the model with ``proto2python``, write the code into a file, and import it. Use it for reading and small edits, and verify the
result.

``proto2python`` prints an ONNX model as a Python function, and running that function returns a model. This recipe makes the round trip
and shows a model that comes back wrong and printer options that fail. It then edits the code and verifies the result.
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
# The model has a branch. We export it with ``torch.onnx.export`` and with ``to_onnx``:


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
# Print the model as code
# -----------------------
# Nodes become calls, attributes become keyword arguments, and the ``If`` becomes an ``if``. The weights are constants in the code,
# truncated here:


def print_code(code):
    body = code[code.index("@script") :].rstrip()
    print("\n".join(f"{line[:95]} …" if len(line) > 97 else line for line in body.splitlines()))


# sphinx_gallery_start_answer
code = proto2python(ir.to_proto(files["dynamo"].model))
# sphinx_gallery_end_answer
print_code(code)

# %%
# Run the code
# ------------
# ``@script`` reads the source of the function, so the code must be in a file. It doesn't work with ``exec``.


def run(code):
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "printed.py")
        path.write_text(code)
        # sphinx_gallery_start_answer
        spec = importlib.util.spec_from_file_location("printed", path)
        module = sys.modules["printed"] = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        # sphinx_gallery_end_answer
    # sphinx_gallery_start_answer
    return ir.from_proto(module.main_graph.to_model_proto())
    # sphinx_gallery_end_answer


def artifact(model, file):
    return OnnxArtifact(model, file.calling, "printed")


for file in files.values():
    back = artifact(run(proto2python(ir.to_proto(file.model))), file)
    verify(back, model, samples).check()
    assert all(torch.equal(back(*sample), file(*sample)) for sample in samples)

# %%
# The results are bit-identical, and the samples cover both branches.
#
# What goes wrong: names that are equal in Python
# -----------------------------------------------
# An ONNX name can be any text. In Python, ``first.weight`` becomes ``first_weight``. If another weight has that name, the later one
# replaces both:


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
# Four options promise shorter code. Three of them raise an error for this model:


def round_trip(**options):
    try:
        run(proto2python(ir.to_proto(two_names.model), **options))
    except Exception as error:  # noqa: BLE001 - what is raised is the content of the table
        return f"{type(error).__name__}: {error}".splitlines()[0]
    return "a model"


options = ("use_operators", "rename", "inline_const", "skip_initializers")
results = {option: round_trip(**{option: True}) for option in options}
assert [option for option, result in results.items() if result == "a model"] == ["use_operators"]
show.table([{"option": option, "result": result} for option, result in results.items()])

# %%
# ``rename`` and ``inline_const`` mix the new name with the old one, for any name with a dot. ``skip_initializers`` detects the collision.
# ``use_operators`` works: it prints ``y + z`` for ``Add(y, z)``.
#
# What works: weights as inputs and unique names
# ----------------------------------------------
# Before you print the model, use ``onnx_ir`` to turn the weights into inputs and give every value a unique Python name. Afterwards,
# restore the weights and their original names:


def in_python(name, taken):
    plain = re.sub(r"\W", "_", name)
    numbered = (f"{plain}_{count}" for count in itertools.count(1))
    return next(name for name in itertools.chain([plain], numbered) if name not in taken)


def printable(model):
    """Return the code of a model without its weights, and the weights with their old names, by new name."""
    model = model.clone()
    graph, weights, taken = model.graph, {}, set()
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
# The code is now short. The round trip preserves the nodes, the weights and the results, and the two names stay separate.


def content(model):
    weights = {name: value.const_value.numpy() for name, value in model.graph.initializers.items()}
    nodes = [(node.op_type, len(node.inputs)) for node in model.graph.all_nodes()]
    return nodes, {name: (array.shape, array.tobytes()) for name, array in weights.items()}


for file, module in ((files["dynamo"], model), (files["to_onnx"], model), (two_names, twice)):
    back = complete(run(printable(file.model)[0]), printable(file.model)[1])
    assert content(back) == content(file.model)
    verify(artifact(back, file), module, samples).check()

# %%
# Edit the code
# -------------
# You can change any part of the code. Here we limit the activation to 2. We compare the result with a module that has the same weights
# and this limit, at sizes that no export saw:

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
# The graph has two new nodes: ``Min``, and the ``CastLike`` that converts 2.0 to the type of the other operand.

show.graph(changed, title="Edited as text")

# %%
# Next: :doc:`rewrite rules for many edits <rewriting>`, or the lesson on :doc:`ONNX models without PyTorch </tutorials/206_onnx_by_hand>`.
