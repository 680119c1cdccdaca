"""
How do I export a custom operator that changes its input in place?
==================================================================

Translate it to an operator that returns the new value, because an ONNX model can't change a value in place.

Export a custom operator that writes into its input and returns nothing. ``torch.onnx.export`` stops with a ``KeyError``, and the legacy
exporter drops the operator. This recipe shows three ways to fix it: change the model, the captured graph, or the operator. ``to_onnx``
only needs a translation.
"""

# sphinx_gallery_thumbnail_number = -1
import numpy as np
import torch
from onnxscript import opset18
from torch import nn

from exportlab import compare, expect_failure, export, show, verify

# %%
# The operator clips a tensor in place. The model calls it between two steps.


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
# What goes wrong: a mutating operator
# ------------------------------------
# ``torch.export`` captures the model, but the other exporters fail or are wrong:

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
# ``to_onnx`` fails because it has no translation for the operator. ``torch.onnx.export`` ("dynamo") stops with a ``KeyError`` whose key is
# a method. The legacy exporter ("torchscript") writes a wrong model: it drops the clipping, because nothing uses the operator's output.
#
# Why: auto_functionalized_v2
# ---------------------------
# ``torch.export`` keeps the call unchanged. The line after it uses ``linear``, not a result of ``clip_``:

captured = torch.export.export(model, rows[0], dynamic_shapes=({0: torch.export.Dim("batch")},))
show.program(captured)

# %%
# ONNX values are immutable, so ``torch.onnx.export`` first decomposes the graph to remove mutations. The call becomes
# ``auto_functionalized_v2``, which copies the tensor, runs the operator on the copy, and returns the copy:

decomposed = captured.run_decompositions({})
show.program(decomposed)

# %%
# The first argument of ``auto_functionalized_v2`` is the operator. The exporter looks for a graph value with that name, which explains
# the key in the error. A translation of ``clip_`` doesn't help ``torch.onnx.export``. It is enough for ``to_onnx``, which translates the
# graph before the decomposition:


def to_clip(x, limit: float):
    return opset18.Clip(x, -limit, limit)


table = {"custom_translation_table": {torch.ops.lab_inplace.clip_.default: to_clip}}
both = {"to_onnx": table, "dynamo": table}
compared = compare(model, rows, dynamic_shapes=batch, exporters=tuple(both), options=both)
assert compared.outcomes() == {"to_onnx": "ok", "dynamo": "convert"}
assert isinstance(compared["dynamo"].error.__cause__.__cause__, KeyError)
compared

# %%
# With ``to_onnx``, the translation :doc:`returns the new value <custom_op_inplace_to_onnx>`, and you are done. The rest of this page is
# about ``torch.onnx.export``.
#
# Call a functional operator in the model
# ---------------------------------------
# Add a functional version of the operator that returns its result. Translate this version, and call it in the model:


# sphinx_gallery_start_answer
@torch.library.custom_op("lab_inplace::clip", mutates_args=())
def clip(x: torch.Tensor, limit: float) -> torch.Tensor:
    return torch.from_numpy(np.clip(x.numpy(), -limit, limit))


# sphinx_gallery_end_answer


# sphinx_gallery_start_answer
clip.register_fake(lambda x, limit: torch.empty_like(x))
# sphinx_gallery_end_answer


class ClippedByTwin(Clipped):
    def forward(self, x):
        return clip(self.linear(x), 0.5) * 2


by_twin = ClippedByTwin().eval()
by_twin.load_state_dict(model.state_dict())
# sphinx_gallery_start_answer
table = {"custom_translation_table": {torch.ops.lab_inplace.clip.default: to_clip}}
program = torch.onnx.export(
    by_twin, rows[0], dynamic_shapes=batch, dynamo=True, verbose=False, **table
)
# sphinx_gallery_end_answer
verify(program, model, rows).check()

# %%
# Replace the call in the graph
# -----------------------------
# If you can't change the model, change the decomposed graph. Its later lines already use the result of the call, so you can replace the
# call with the functional operator. This is only correct if the operator changes the whole tensor, so the code refuses a view.


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
# ``torch.onnx.export`` accepts a program instead of a module. The code refuses a model that clips two of its three columns:


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
# ``to_onnx`` clips the two columns and writes them back into the full tensor:

options = {"custom_translation_table": {torch.ops.lab_inplace.clip_.default: to_clip}}
own = export("to_onnx", two_columns, rows[0], dynamic_shapes=batch, **options)
verify(own, two_columns, rows).check()

# %%
# Register a functionalization rule
# ---------------------------------
# This way also supports views. Decomposition uses an operator's own rule, if it has one, instead of wrapping the operator. This rule
# computes the functional operator and replaces ``x`` with the result. PyTorch then writes views back into their base tensors, and
# ``torch.onnx.export`` exports both models unchanged, with the same table:


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
# ``torch.cond`` uses the same hook. It is in ``torch._ops``, a private module, so pin your PyTorch version.
#
# The graphs show the wrapped call, and the ``Clip`` that replaces it.

show.graphs({"decomposed": decomposed, "exported": swapped})

# %%
# Next: :doc:`how to translate an operator with several nodes <custom_op_function>`.
