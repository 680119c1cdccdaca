"""
How do I set dynamic shapes with ShapesCollection or AdditionalInputs?
======================================================================

Mark dynamic tensors with ``ShapesCollection``, or add example calls with ``AdditionalInputs``. Pass either as ``dynamic_shapes``.

Mark dynamic dimensions without repeating the nested structure of your arguments in ``dynamic_shapes``. ``ShapesCollection`` marks them
tensor by tensor, and ``AdditionalInputs`` infers them from further example calls. The last section explains what
``prefer_deferred_runtime_asserts_over_guards`` does, and what an ONNX export makes of its asserts.
"""

import torch
from torch import nn
from torch.export import AdditionalInputs, Dim, ShapesCollection

from exportlab import expect_failure, export, show, to_onnx, verify
from exportlab.messages import muffled

# %%
# The first argument of the model is a dict that contains a list:


class Mixed(nn.Module):
    def forward(self, memory, x):
        return x @ memory["weight"] + memory["past"][0]


def arguments(rows):
    return {"weight": torch.ones(3, 5), "past": [torch.randn(rows, 5)]}, torch.randn(rows, 3)


torch.manual_seed(0)
model, UserError = Mixed().eval(), torch._dynamo.exc.UserError
four, seven, one = (arguments(rows) for rows in (4, 7, 1))

# %%
# What goes wrong: dynamic_shapes with a missing entry
# ----------------------------------------------------
# If you leave out a tensor, the structure of ``dynamic_shapes`` doesn't match the arguments:

with expect_failure(UserError, match="Detected mismatch", lines=2):
    torch.export.export(
        model, four, dynamic_shapes=({"past": [{0: Dim.DYNAMIC}]}, {0: Dim.DYNAMIC})
    )

# %%
# Mark tensors with ShapesCollection
# ----------------------------------
# Assign shapes only to the example tensors that have dynamic dimensions. ``ShapesCollection`` fills in the rest of the structure:

memory, x = four
# sphinx_gallery_start_answer
collection = ShapesCollection()
collection[x] = collection[memory["past"][0]] = {0: Dim.DYNAMIC}
# sphinx_gallery_end_answer
tree = collection.dynamic_shapes(model, four)
assert tree["memory"] == {"weight": None, "past": [{0: Dim.DYNAMIC}]}
# sphinx_gallery_start_answer
program = torch.export.export(model, four, dynamic_shapes=collection)
# sphinx_gallery_end_answer
assert program.module()(*seven).shape == (7, 5)

# %%
# It identifies tensors by identity, so it doesn't recognise copies:

with expect_failure(ValueError, match="were not found in args", lines=1):
    collection.dynamic_shapes(model, arguments(4))

# %%
# Infer dynamic dimensions with AdditionalInputs
# ----------------------------------------------
# Add complete calls to ``AdditionalInputs``. A dimension becomes dynamic if two calls differ in it. ``verify`` checks that the program
# accepts every call:

# sphinx_gallery_start_answer
further = AdditionalInputs()
for call in (four, seven):
    further.add(call)
# sphinx_gallery_end_answer
with muffled():
    program = torch.export.export(model, four, dynamic_shapes=further)
further.verify(program)
assert program.module()(*one).shape == (1, 5)

# %%
# A dimension that is the same in all calls stays static:

narrow = AdditionalInputs()
narrow.add(four)
assert {
    size for shape in narrow.dynamic_shapes(model, four)["memory"]["past"] for size in shape
} == {None}

# %%
# Pass them to torch.onnx.export
# ------------------------------
# ``torch.onnx.export`` and ``to_onnx`` accept both objects:

for exporter in ("dynamo", "to_onnx"):
    for shapes in (collection, further):
        verify(
            export(exporter, model, four, dynamic_shapes=shapes), model, [four, seven, one]
        ).check()

# %%
# ``AdditionalInputs`` can't give a dimension a name or a maximum, or make two dimensions equal. ``ShapesCollection`` can, but
# ``torch.onnx.export`` renames the dimensions of the object. To keep your names, pass the tree that ``dynamic_shapes()`` returns. But if
# the model doesn't support the range, the tree is narrowed without a warning, while the object raises an error.

named = ShapesCollection()
named[x] = named[memory["past"][0]] = {0: Dim("rows", max=64)}


def name_of_rows(exporter, shapes):
    made = export(exporter, model, four, dynamic_shapes=shapes)
    return str(made.model.graph.inputs[1].shape[0])


assert name_of_rows("dynamo", named) != "rows"
assert name_of_rows("dynamo", named.dynamic_shapes(model, four)) == "rows"
assert name_of_rows("to_onnx", named) == "rows"

# %%
# Use runtime asserts instead of guards
# -------------------------------------
# ``torch.export`` refuses a named ``Dim`` if the model tests it. ``prefer_deferred_runtime_asserts_over_guards=True`` accepts a test that
# is not a range: the program keeps the branch of the example and asserts the test:


class Even(nn.Module):
    def forward(self, x):
        return x * 2 if x.shape[0] % 2 == 0 else x * 3


even, six, three = Even().eval(), (torch.randn(6, 3),), (torch.randn(3, 3),)
options = {"dynamic_shapes": ({0: Dim("batch")},)}
with expect_failure(UserError, match="Not all values of batch", lines=2):
    torch.export.export(even, six, **options)
deferred = torch.export.export(
    even, six, **options, prefer_deferred_runtime_asserts_over_guards=True
)
with expect_failure(RuntimeError, match="Runtime assertion failed", lines=1):
    deferred.module()(*three)

# %%
# The program rejects three rows. ``torch.onnx.export`` and ``to_onnx`` don't export the assert, so both ONNX models double an input that
# should be tripled:

with muffled():
    files = (torch.onnx.export(deferred, dynamo=True, verbose=False), to_onnx(deferred))
for file in files:
    assert torch.equal(file(*three)[0], 2 * three[0])
    assert torch.equal(even(*three), 3 * three[0])

# %%
# Export from the module instead, because the program has already lost a branch. ``to_onnx`` then writes both branches:

both = export("to_onnx", even, six, dynamic_shapes=({0: "batch"},))
verify(both, even, [six, three]).check()
show.graphs({"from the deferred program": files[0].model, "to_onnx, from the module": both.model})

# %%
# Next: :doc:`which Dim to use <dynamic_shapes>`, or the lesson on :doc:`dynamic shapes </tutorials/103_shapes_that_move>`.
