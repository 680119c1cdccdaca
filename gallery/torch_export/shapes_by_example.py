"""
Can I say which axes move without spelling out the whole tree?
==============================================================

``dynamic_shapes`` repeats the tree of your arguments, which is tedious where they are nested. Here you say it in two other ways: by tensor,
with ``ShapesCollection``, and by further examples, with ``AdditionalInputs``. At the end you also know what
``prefer_deferred_runtime_asserts_over_guards`` lets through, and what an ONNX file makes of that.

``to_onnx`` is this site's own exporter, so check what is said of it here on a model of your own.
"""

import torch
from torch import nn
from torch.export import AdditionalInputs, Dim, ShapesCollection

from exportlab import expect_failure, export, show, to_onnx, verify
from exportlab.messages import muffled

# %%
# A model whose first argument is a dict with a list in it:


class Mixed(nn.Module):
    def forward(self, memory, x):
        return x @ memory["weight"] + memory["past"][0]


def arguments(rows):
    return {"weight": torch.ones(3, 5), "past": [torch.randn(rows, 5)]}, torch.randn(rows, 3)


torch.manual_seed(0)
model, UserError = Mixed().eval(), torch._dynamo.exc.UserError
four, seven, one = (arguments(rows) for rows in (4, 7, 1))

# %%
# What goes wrong
# ---------------
# Leave out a leaf, and the tree is not that of the arguments:

with expect_failure(UserError, match="Detected mismatch", lines=2):
    torch.export.export(
        model, four, dynamic_shapes=({"past": [{0: Dim.DYNAMIC}]}, {0: Dim.DYNAMIC})
    )

# %%
# By tensor
# ---------
# A ``ShapesCollection`` is given the tensors of the example, and only those that move. The rest of the tree it fills in itself:

memory, x = four
collection = ShapesCollection()
collection[x] = collection[memory["past"][0]] = {0: Dim.DYNAMIC}
written = collection.dynamic_shapes(model, four)
assert written["memory"] == {"weight": None, "past": [{0: Dim.DYNAMIC}]}
program = torch.export.export(model, four, dynamic_shapes=collection)
assert program.module()(*seven).shape == (7, 5)

# %%
# It knows the tensors by their identity, so a copy is another one:

with expect_failure(ValueError, match="were not found in args", lines=1):
    collection.dynamic_shapes(model, arguments(4))

# %%
# By example
# ----------
# ``AdditionalInputs`` is given whole calls. An axis moves where two of them differ, and every call must go through the program:

further = AdditionalInputs()
for call in (four, seven):
    further.add(call)
with muffled():
    program = torch.export.export(model, four, dynamic_shapes=further)
further.verify(program)
assert program.module()(*one).shape == (1, 5)

# %%
# Two examples that differ in one axis say nothing of the others. What is the same in all of them is static:

narrow = AdditionalInputs()
narrow.add(four)
assert {
    size for shape in narrow.dynamic_shapes(model, four)["memory"]["past"] for size in shape
} == {None}

# %%
# To an ONNX file
# ---------------
# ``torch.onnx.export`` and ``to_onnx`` take either one as it is:

for exporter in ("dynamo", "to_onnx"):
    for shapes in (collection, further):
        verify(
            export(exporter, model, four, dynamic_shapes=shapes), model, [four, seven, one]
        ).check()

# %%
# ``further`` has the same axes, and finds them itself; no axis of it has a name or an end, and axes of one size are not tied. If an axis has a
# name, give the official exporter the tree that a collection makes. Of the object it makes up another name. (Beware: what the model cannot
# keep is refused for the object, and narrowed without a word for the tree.)

named = ShapesCollection()
named[x] = named[memory["past"][0]] = {0: Dim("rows", max=64)}


def name_of_rows(exporter, shapes):
    made = export(exporter, model, four, dynamic_shapes=shapes)
    return str(made.model.graph.inputs[1].shape[0])


assert name_of_rows("dynamo", named) != "rows"
assert name_of_rows("dynamo", named.dynamic_shapes(model, four)) == "rows"
assert name_of_rows("to_onnx", named) == "rows"

# %%
# Asserts in the place of guards
# ------------------------------
# A named ``Dim`` is refused where the model tests it. ``prefer_deferred_runtime_asserts_over_guards=True`` keeps the side that the example
# took where the test is no range, and writes it into the program as an assert:


class Even(nn.Module):
    def forward(self, x):
        return x * 2 if x.shape[0] % 2 == 0 else x * 3


even, six, three = Even().eval(), (torch.randn(6, 3),), (torch.randn(3, 3),)
moving = {"dynamic_shapes": ({0: Dim("batch")},)}
with expect_failure(UserError, match="Not all values of batch", lines=2):
    torch.export.export(even, six, **moving)
deferred = torch.export.export(
    even, six, **moving, prefer_deferred_runtime_asserts_over_guards=True
)
with expect_failure(RuntimeError, match="Runtime assertion failed", lines=1):
    deferred.module()(*three)

# %%
# The program refuses three rows. Neither exporter writes the assert into its file, so both files double what should be tripled:

with muffled():
    files = (torch.onnx.export(deferred, dynamo=True, verbose=False), to_onnx(deferred))
for file in files:
    assert torch.equal(file(*three)[0], 2 * three[0])
    assert torch.equal(even(*three), 3 * three[0])

# %%
# ``to_onnx`` writes both sides where it is given the module, and not a program that has lost one:

both = export("to_onnx", even, six, dynamic_shapes=({0: "batch"},))
verify(both, even, [six, three]).check()
show.graphs({"from the deferred program": files[0].model, "to_onnx, from the module": both.model})

# %%
# Name the tensors that move, or give a second call; and a deferred assert ends where the ONNX file begins. Next: :doc:`which Dim to write
# <dynamic_shapes>`, or the lesson on :doc:`shapes that move </tutorials/103_shapes_that_move>`.
