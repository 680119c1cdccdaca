"""
What are the inputs, outputs and axes of my file called?
========================================================

You call an exported file by the names of its inputs and outputs, and you can choose them, for nested inputs and for axes as well. You will
see which names you get when you do not choose, which names collide, and what a collision does: a refusal, a file that does not load, or an
input that disappears.

``to_onnx`` is this site's own exporter, so check what is said of it here on a model of your own.
"""

import torch
from torch import nn

from exportlab import Sample, compare, expect_failure, export, show, verify
from exportlab.messages import muffled
from fx2onnx.errors import NameCollision

# %%
# One step of a model with a state: four tensors go in, three come out.


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
shapes = {"x": batch, "state": {"hidden": batch, "pair": (batch, batch)}}
exporters = ("dynamo", "to_onnx")

# %%
# What goes wrong first
# ---------------------
# A dictionary in the last place is taken for keyword arguments by the official exporter. Your ``forward`` then lacks an argument:

four = samples[0]
with expect_failure(torch.onnx.OnnxExporterError, match="missing a required argument", lines=1):
    torch.onnx.export(model, (*four.args, four.kwargs["state"]), dynamo=True, verbose=False)

# %%
# Pass it by name, in ``kwargs``, as the samples above do.
#
# What they are called
# --------------------
# An input is called after its argument and the way into it. An output is called after the operation that computes it, which changes when
# the model does:


def names(exporter, **options):
    with muffled():
        file = export(exporter, model, four.args, four.kwargs, dynamic_shapes=shapes, **options)
    return file.got().input_names, file.got().output_names


def row(exporter, found):
    return {"exporter": exporter, "inputs": ", ".join(found[0]), "outputs": ", ".join(found[1])}


default = {exporter: names(exporter) for exporter in exporters}
assert default["dynamo"][0] == ("x", "state_hidden", "state_pair_0", "state_pair_1")
assert default["dynamo"][0] == default["to_onnx"][0]
show.table([row(*found) for found in default.items()])

# %%
# Even the two exporters differ. So name your outputs, and nobody who calls the file has to know how they are computed.
#
# Giving names
# ------------
# ``input_names`` and ``output_names`` are lists in the order of the flattened call and the flattened result. Fewer are taken for the
# first ones:

two = {"input_names": ["tokens"], "output_names": ["out"]}
show.table([row(exporter, names(exporter, **two)) for exporter in exporters])

# %%
# Further names are no names of anything. The official exporter drops them without a word, ``to_onnx`` counts for you:

five = ["x", "hidden", "first", "second", "third"]
assert names("dynamo", input_names=five)[0] == tuple(five[:4])
with expect_failure(NameCollision, match="input_names has 5 names, but the model has 4 inputs"):
    names("to_onnx", input_names=five)

# %%
# What collides
# -------------
# A file has one name for one value, whether input, output, weight or something in between. Some names that one might ask for:

collisions = {
    "two outputs alike": {"output_names": ["out", "out"]},
    "an output like an input": {"output_names": ["x"]},
    "an input like another": {"input_names": ["state_hidden"]},
    "an output like a value inside": {"output_names": ["softmax"]},
    "an output like a weight": {"output_names": ["linear.weight"]},
    "an input like a weight": {"input_names": ["linear.weight"]},
}


def tried(options):
    given = dict.fromkeys(exporters, options)
    return compare(
        model, samples, dynamic_shapes=shapes, exporters=exporters, options=given
    ).outcomes()


outcomes = {title: tried(options) for title, options in collisions.items()}
show.table([{"asked for": title, **found} for title, found in outcomes.items()])

# %%
# ``convert`` is a refusal, by name and before there is a file. The official exporter compares the names that you give with one another,
# and with nothing else: the rest does not load, or not run. ``to_onnx`` refuses what is ambiguous, and where it chose the other name
# itself, it chooses another.

assert [found["to_onnx"] for found in outcomes.values()] == ["convert"] * 3 + ["ok"] * 3
assert outcomes["two outputs alike"]["dynamo"] == "convert"
assert "ok" not in [found["dynamo"] for found in outcomes.values()]
with expect_failure(NameCollision, match="asked for more than once"):
    names("to_onnx", **collisions["an output like an input"])

# %%
# The last of them can be worse. If the input happens to have the shape of the weight, the file loads. An initializer of that name is the
# value of the input then, and ONNX Runtime lists one input fewer:

square = call(3)
with muffled():
    taken = export(
        "dynamo", model, square.args, square.kwargs, **collisions["an input like a weight"]
    )
taken.load()
listed = [given.name for given in taken.session.get_inputs()]
assert listed == ["state_hidden", "state_pair_0", "state_pair_1"]
listed

# %%
# Names of axes
# -------------
# Each string in ``dynamic_shapes`` names an axis, in the structure of the arguments. What follows from them has an expression for a name:


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


found = {exporter: axes(exporter, "rows", "others") for exporter in exporters}
assert found["dynamo"] == found["to_onnx"]
show.table([found["to_onnx"]])

# %%
# Stay away from an ``s`` with a number. Those are the names of torch's own symbols, ``s77`` and ``s17`` here, and the official exporter
# replaces one after the other. With the two exchanged, ``repeat`` is declared as twice the rows of ``y``:

swapped = {exporter: axes(exporter, "s17", "s77") for exporter in exporters}
assert swapped["to_onnx"]["repeat"] == "f32[2*s17, 3]"
assert swapped["dynamo"]["repeat"] == "f32[2*s77, 3]"
show.table([{"exporter": exporter, **found} for exporter, found in swapped.items()])

# %%
# The file computes the right thing all the same; only what it says of itself is wrong, to whoever plans memory by it.
#
# The file to hand over
# ---------------------
# Named, and right at sizes that the export never saw. ``verify`` also holds the names against what was asked:

asked = {
    "input_names": ["x", "hidden", "first", "second"],
    "output_names": ["out", "next_hidden", "next_pair"],
}
for exporter in exporters:
    with muffled():
        file = export(exporter, model, four.args, four.kwargs, dynamic_shapes=shapes, **asked)
    report = verify(file, model, samples).check()
    assert {"input names", "output names"} <= {check.name for check in report.checks}
show.graph(file, title="Names of your choice")

# %%
# Name every output and use no name twice: whoever calls your file relies on these names. Next: :doc:`arguments by name, and caches
# </generated/gallery/torch_export/kwargs_and_caches>`.
