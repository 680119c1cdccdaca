"""
How do I set input_names, output_names and axis names in torch.onnx.export?
===========================================================================

Pass ``input_names`` and ``output_names`` in the order of the flattened inputs and outputs, and the axis names as strings in
``dynamic_shapes``.

Choose the names by which an ONNX model is called, including those of nested inputs and dynamic dimensions. This recipe shows the default
names and which names collide. A collision can raise an error, write a model that doesn't load, or remove an input.
"""

import torch
from torch import nn

from exportlab import Sample, compare, expect_failure, export, show, verify
from exportlab.messages import muffled
from fx2onnx.errors import NameCollision

# %%
# The model computes one step with a state. It has four input tensors and three output tensors.


class Step(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(3, 3)

    def forward(self, x, state):
        hidden = self.linear(x) + state["hidden"]
        first, second = state["pair"]
        return {"out": hidden.softmax(-1).flip(-1), "state": [hidden * 2, first + second * hidden]}


def call(rows):
    a, b, c, d = torch.randn(4, rows, 3)
    return Sample((a,), {"state": {"hidden": b, "pair": (c, d)}})


torch.manual_seed(0)
model = Step().eval()
samples = [call(rows) for rows in (4, 7, 1, 0)]
batch = {0: "batch"}
# sphinx_gallery_start_answer
shapes = {"x": batch, "state": {"hidden": batch, "pair": (batch, batch)}}
# sphinx_gallery_end_answer
exporters = ("dynamo", "to_onnx")

# %%
# What goes wrong: a dict as the last argument
# --------------------------------------------
# ``torch.onnx.export`` treats a dict in the last position as keyword arguments. An argument of ``forward`` is then missing:

four = samples[0]
with expect_failure(torch.onnx.OnnxExporterError, match="missing a required argument", lines=1):
    torch.onnx.export(model, (*four.args, four.kwargs["state"]), dynamo=True, verbose=False)

# %%
# Pass it by name in ``kwargs``, as the samples above do.
#
# Default names
# -------------
# An input is named after its argument and its path in the argument. An output is named after the operation that computes it, which
# changes if the model changes:


def names(exporter, **options):
    with muffled():
        file = export(exporter, model, four.args, four.kwargs, dynamic_shapes=shapes, **options)
    return file.got().input_names, file.got().output_names


def row(exporter, result):
    return {"exporter": exporter, "inputs": ", ".join(result[0]), "outputs": ", ".join(result[1])}


default = {exporter: names(exporter) for exporter in exporters}
assert default["dynamo"][0] == ("x", "state_hidden", "state_pair_0", "state_pair_1")
assert default["dynamo"][0] == default["to_onnx"][0]
show.table([row(*result) for result in default.items()])

# %%
# The output names also differ between the exporters. Set them, so that callers don't depend on the implementation.
#
# Set input_names and output_names
# --------------------------------
# Both are lists in the order of the flattened arguments and results. A shorter list names the first ones:

two = {"input_names": ["tokens"], "output_names": ["out"]}
show.table([row(exporter, names(exporter, **two)) for exporter in exporters])

# %%
# ``torch.onnx.export`` ("dynamo") ignores names beyond the number of inputs. ``to_onnx`` raises an error:

five = ["x", "hidden", "first", "second", "third"]
assert names("dynamo", input_names=five)[0] == tuple(five[:4])
with expect_failure(NameCollision, match="input_names has 5 names, but the model has 4 inputs"):
    names("to_onnx", input_names=five)

# %%
# Name collisions
# ---------------
# Inputs, outputs, weights and intermediate values share one namespace in an ONNX model. We try six collisions:

collisions = {
    "two outputs alike": {"output_names": ["out", "out"]},
    "an output like an input": {"output_names": ["x"]},
    "an input like another": {"input_names": ["state_hidden"]},
    "an output like a value inside": {"output_names": ["softmax"]},
    "an output like a weight": {"output_names": ["linear.weight"]},
    "an input like a weight": {"input_names": ["linear.weight"]},
}


def outcomes_of(options):
    settings = dict.fromkeys(exporters, options)
    return compare(
        model, samples, dynamic_shapes=shapes, exporters=exporters, options=settings
    ).outcomes()


outcomes = {title: outcomes_of(options) for title, options in collisions.items()}
show.table([{"collision": title, **result} for title, result in outcomes.items()])

# %%
# ``convert`` means that the exporter raised an error. ``torch.onnx.export`` only compares the names that you pass with each other, so the
# other models don't load or don't run. ``to_onnx`` raises an error if the names are ambiguous. If the conflicting name is one that it
# chose itself, it chooses another.

assert [result["to_onnx"] for result in outcomes.values()] == ["convert"] * 3 + ["ok"] * 3
assert outcomes["two outputs alike"]["dynamo"] == "convert"
assert "ok" not in [result["dynamo"] for result in outcomes.values()]
with expect_failure(NameCollision, match="used more than once"):
    names("to_onnx", **collisions["an output like an input"])

# %%
# The last collision can have a worse effect. If the input has the same shape as the weight, the model loads. The weight is then used as
# the value of the input, and ONNX Runtime lists one input fewer:

square = call(3)
with muffled():
    collided = export(
        "dynamo", model, square.args, square.kwargs, **collisions["an input like a weight"]
    )
collided.load()
listed = [value.name for value in collided.session.get_inputs()]
assert listed == ["state_hidden", "state_pair_0", "state_pair_1"]
listed

# %%
# Names of dynamic dimensions
# ---------------------------
# Each string in ``dynamic_shapes`` names a dimension, in the structure of the arguments. A dimension that depends on it is named by an
# expression:


class Pairs(nn.Module):
    def forward(self, x, y):
        return x @ y.T, x.repeat(2, 1)


pairs = [(torch.randn(m, 3), torch.randn(n, 3)) for m, n in ((4, 5), (7, 2), (1, 1))]


def axes(exporter, *chosen):
    named = tuple({0: name} for name in chosen)
    with muffled():
        file = export(exporter, Pairs().eval(), pairs[0], dynamic_shapes=named)
    verify(file, Pairs(), pairs).check()
    main = file.model.graph
    return {v.name: show.text.value_annotation(v) for v in (*main.inputs, *main.outputs)}


result = {exporter: axes(exporter, "rows", "others") for exporter in exporters}
assert result["dynamo"] == result["to_onnx"]
show.table([result["to_onnx"]])

# %%
# Don't use ``s`` followed by a number. PyTorch uses such names for its own symbols (``s77`` and ``s17`` here), and ``torch.onnx.export``
# replaces them one after the other. If you exchange the two, it declares the output of ``repeat`` as twice the rows of ``y``:

swapped = {exporter: axes(exporter, "s17", "s77") for exporter in exporters}
assert swapped["to_onnx"]["repeat"] == "f32[2*s17, 3]"
assert swapped["dynamo"]["repeat"] == "f32[2*s77, 3]"
show.table([{"exporter": exporter, **result} for exporter, result in swapped.items()])

# %%
# The model still computes the right result. But its declared shape is wrong, which misleads code that allocates memory from it.
#
# Export with your names and verify
# ---------------------------------
# The model has your names and is right at sizes that the export never saw. ``verify`` also compares the names with those that you
# requested:

# sphinx_gallery_start_answer
chosen_names = {
    "input_names": ["x", "hidden", "first", "second"],
    "output_names": ["out", "next_hidden", "next_pair"],
}
# sphinx_gallery_end_answer
# sphinx_gallery_start_ignore
# sphinx_gallery_start_answer
torch.onnx.export(
    model, four.args, kwargs=dict(four.kwargs), dynamic_shapes=shapes, dynamo=True, **chosen_names
)
# sphinx_gallery_end_answer
# sphinx_gallery_end_ignore
for exporter in exporters:
    with muffled():
        file = export(
            exporter, model, four.args, four.kwargs, dynamic_shapes=shapes, **chosen_names
        )
    report = verify(file, model, samples).check()
    assert {"input names", "output names"} <= {check.name for check in report.checks}
show.graph(file, title="Names of your choice")

# %%
# Next: :doc:`keyword arguments and caches </generated/gallery/torch_export/kwargs_and_caches>`.
