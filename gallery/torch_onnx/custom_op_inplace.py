"""
How do I export a custom operator that changes its input in place?
==================================================================

Here a custom operator clips a tensor in place and returns nothing. You will see one exporter refuse it with a puzzling message, another
drop it in silence, and three ways to get a right file: a change in the model, in the captured graph, or in the operator. With ``to_onnx``
you need none of the three, just a translation.
``to_onnx`` is this site's own exporter, so check what is said of it here on a model of your own.
"""

# sphinx_gallery_thumbnail_number = -1
import numpy as np
import torch
from onnxscript import opset18
from torch import nn

from exportlab import compare, expect_failure, export, show, verify

# %%
# The operator, and a model that calls it between two steps.


@torch.library.custom_op("lab_inplace::clip_", mutates_args={"x"})
def clip_(x: torch.Tensor, limit: float) -> None:
    np.clip(x.numpy(), -limit, limit, out=x.numpy())


class Clipped(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(4, 3)

    def forward(self, x):
        y = self.linear(x)
        clip_(y, 0.5)
        return y * 2


torch.manual_seed(0)
model = Clipped().eval()
rows = [(torch.randn(n, 4),) for n in (4, 7, 1, 0)]
batch = ({0: "batch"},)

# %%
# What goes wrong
# ---------------
# Only ``torch.export`` gets through:

compared = compare(model, rows, dynamic_shapes=batch)
assert compared.outcomes() == {
    "torch.export": "ok",
    "to_onnx": "convert",
    "dynamo": "convert",
    "torchscript": "wrong",
}
assert isinstance(compared["dynamo"].error.__cause__.__cause__, KeyError)
assert set(compared["torchscript"].artifact.stats().ops) == {"Gemm", "Constant", "Mul"}
compared

# %%
# ``to_onnx`` asks for a translation. ``dynamo`` ends in a ``KeyError`` whose key is a method. ``torchscript`` writes a file without the
# clipping, because nothing reads what the operator returns. That file is wrong, and nothing said so.
#
# Why
# ---
# Capture keeps the call as it is. The line after it reads ``linear``, not a result of ``clip_``:

captured = torch.export.export(model, rows[0], dynamic_shapes=({0: torch.export.Dim("batch")},))
show.program(captured)

# %%
# An ONNX value cannot be changed, so the exporter first decomposes the graph into one that changes nothing. There the call becomes
# ``auto_functionalized_v2``, which copies the tensor, runs the operator on the copy, and returns the copy:

decomposed = captured.run_decompositions({})
show.program(decomposed)

# %%
# Its first argument is the operator. The exporter looks for a value of that name in the graph, hence the odd key. A translation of
# ``clip_`` changes nothing for it. For ``to_onnx`` it is enough, because that one translates the graph as it was captured:


def to_clip(x, limit: float):
    return opset18.Clip(x, -limit, limit)


table = {"custom_translation_table": {torch.ops.lab_inplace.clip_.default: to_clip}}
both = {"to_onnx": table, "dynamo": table}
compared = compare(model, rows, dynamic_shapes=batch, exporters=tuple(both), options=both)
assert compared.outcomes() == {"to_onnx": "ok", "dynamo": "convert"}
assert isinstance(compared["dynamo"].error.__cause__.__cause__, KeyError)
compared

# %%
# So with ``to_onnx`` you are done: :doc:`say what the new value is <custom_op_inplace_to_onnx>`. The rest of this page is for the official
# exporter.
#
# What works: another call in the model
# -------------------------------------
# Give the operator a twin that returns its result. Translate the twin, and call it instead:


@torch.library.custom_op("lab_inplace::clip", mutates_args=())
def clip(x: torch.Tensor, limit: float) -> torch.Tensor:
    return torch.from_numpy(np.clip(x.numpy(), -limit, limit))


clip.register_fake(lambda x, limit: torch.empty_like(x))


class ClippedByTwin(Clipped):
    def forward(self, x):
        return clip(self.linear(x), 0.5) * 2


by_twin = ClippedByTwin().eval()
by_twin.load_state_dict(model.state_dict())
table = {"custom_translation_table": {torch.ops.lab_inplace.clip.default: to_clip}}
program = torch.onnx.export(
    by_twin, rows[0], dynamic_shapes=batch, dynamo=True, verbose=False, **table
)
verify(program, model, rows).check()

# %%
# What works: another call in the graph
# -------------------------------------
# The model may not be yours to change. In the decomposed graph, every later line already reads the result of the call, so the call can
# be swapped for the twin. But the twin gets the whole tensor. Where only a view of it was to change, that would be wrong, and silently
# so: refuse.


def with_twins(program, twins):
    assert not any(op._schema.returns for op in twins), "only for operators that return nothing"
    program = program.run_decompositions({})
    for node in program.graph.find_nodes(
        op="call_function", target=torch.ops.higher_order.auto_functionalized_v2
    ):
        settings = dict(node.kwargs)
        (tensor,) = settings.pop("_all_bases")
        settings.pop("_x_base_index")
        if any(name.startswith("_x_") for name in settings):
            raise ValueError(
                f"{node.args[0]} changes a view of '{tensor}', not all of it: call its twin in the model instead"
            )
        for result in list(node.users):
            result.target, result.args, result.kwargs = twins[node.args[0]], (tensor,), settings
        program.graph.erase_node(node)
    program.graph_module.recompile()
    return program


twins = {torch.ops.lab_inplace.clip_.default: torch.ops.lab_inplace.clip.default}
swapped = torch.onnx.export(
    with_twins(captured, twins), dynamic_shapes=batch, dynamo=True, verbose=False, **table
)
assert [node.op_type for node in swapped.model.graph] == ["Gemm", "Clip", "Mul"]
verify(swapped, model, rows).check()

# %%
# ``torch.onnx.export`` takes a program as it takes a module. And this is what happens to a model that clips two of its three columns:


class TwoColumns(Clipped):
    def forward(self, x):
        y = self.linear(x)
        clip_(y[:, :2], 0.5)
        return y * 2


torch.manual_seed(0)
two_columns = TwoColumns().eval()
with expect_failure(ValueError, match="changes a view of 'linear'"):
    with_twins(torch.export.export(two_columns, rows[0]), twins)

# %%
# ``to_onnx`` sees two columns clipped, and puts them back into the tensor that they are a view of:

told = {"custom_translation_table": {torch.ops.lab_inplace.clip_.default: to_clip}}
own = export("to_onnx", two_columns, rows[0], dynamic_shapes=batch, **told)
verify(own, two_columns, rows).check()

# %%
# What works for views too: tell the operator
# -------------------------------------------
# Decomposition asks an operator for a rule of its own before it wraps it. This rule says: compute the twin, and let ``x`` be the result
# from now on. PyTorch then writes views back into what they are views of, and ``torch.onnx.export`` takes both models as they are. The
# table is that of the two columns:


@torch.ops.lab_inplace.clip_.default.py_functionalize_impl
def _(context, x, limit):
    with context.redispatch_to_next():
        result = clip(context.unwrap_tensors(x), limit)
    context.replace(x, result)
    context.commit_update(x)
    context.sync(x)


for module in (model, two_columns):
    compared = compare(
        module,
        rows,
        dynamic_shapes=batch,
        exporters=("torch.export", "dynamo"),
        options={"dynamo": table},
    )
    assert set(compared.outcomes().values()) == {"ok"}
compared

# %%
# ``torch.cond`` is taught by the same hook. It lives in ``torch._ops``, a private module, so pin your version of torch.
#
# Before and after: the wrapped call, and the ``Clip`` in its place.

show.graphs({"decomposed": decomposed, "exported": swapped})

# %%
# An ONNX file computes new values and changes none in place: for every operator that changes its input, say what the new value is. How to
# translate an operator with more to it than one ``Clip``: :doc:`custom_op_function`.
