"""
How do I export a model with keyword arguments and a DynamicCache?
==================================================================

Write ``dynamic_shapes`` by argument name, and register ``DynamicCache`` first. Each tensor of the cache becomes an input; a number or
``None`` is fixed at export.

Write ``dynamic_shapes`` for keyword arguments, and learn what happens to ``None``, to numbers and to ``**kwargs``. Then export a small
Llama with its ``DynamicCache`` to one ONNX model. It accepts a prompt or a single token, with any number of earlier tokens in the cache.
"""

import warnings
from unittest.mock import patch

import torch
from torch import nn
from transformers import DynamicCache, LlamaConfig, LlamaForCausalLM
from transformers.integrations.executorch import register_dynamic_cache_export_support

from exportlab import Sample, compare, expect_failure, export, show, verify

# %%
# The first model has a positional argument and three keyword arguments, two of them optional. (``torch.onnx.export`` warns if two
# dimensions share a name. Here they are meant to, so we hide that warning.)


class Blend(nn.Module):
    def forward(self, x, *, y, mask=None, scale=2.0):
        blended = x + scale * y
        return blended if mask is None else blended * mask


def blend(n, mask=None, scale=3.0):
    return Sample((torch.randn(n, 3),), {"scale": scale, "mask": mask, "y": torch.randn(n, 3)})


# sphinx_gallery_thumbnail_number = -1
warnings.filterwarnings("ignore", message="# The axis name")
torch.manual_seed(0)
model, four = Blend().eval(), blend(4)
rows = {0: "batch"}

# %%
# dynamic_shapes for keyword arguments
# ------------------------------------
# ``dynamic_shapes`` needs an entry for every argument of the call, including those that are not tensors.

entries = {"scale": None, "mask": None, "y": rows}
compared = compare(
    model, [four, blend(7), blend(1), blend(0)], dynamic_shapes={"x": rows, **entries}
)
assert [*compared.outcomes().values()] == ["ok", "ok", "ok", "capture"]
compared

# %%
# None and numbers are fixed at export
# ------------------------------------
# The ONNX model has two inputs, and 3.0 is a constant. ``torch.onnx.export`` also dropped the dimension name, because it has more entries
# than inputs. (``to_onnx`` keeps the name.) The captured program still accepts four arguments. It rejects another number, but it ignores
# a mask where the example had ``None``.

show.summary(compared["dynamo"].artifact)
assert any("axes will not be renamed" in line for line in compared["dynamo"].said)
assert {str(v.shape[0]) for v in compared["to_onnx"].artifact.model.graph.inputs} == {"batch"}
captured = compared["torch.export"].artifact
with expect_failure(AssertionError, match="Guard failed: scale == 3.0"):
    captured(*four.args, **{**four.kwargs, "scale": 5.0})
assert torch.equal(
    captured(*four.args, **{**four.kwargs, "mask": torch.zeros(4, 3)}),
    model(*four.args, **four.kwargs),
)

# %%
# Pass a tensor for each argument that has to remain an input. The inputs are in the order of your call. Write the entries in the same
# order, because ``torch.onnx.export`` assigns names by position. Another order raises an error, but ``to_onnx`` accepts it:

tensors = blend(4, torch.rand(4, 3), torch.tensor(3.0))
named = export(
    "dynamo",
    model,
    tensors.args,
    tensors.kwargs,
    dynamic_shapes={"x": rows, "scale": None, "mask": rows, "y": rows},
)
verify(named, model, [tensors, blend(7, torch.rand(7, 3), torch.tensor(5.0))]).check()
assert named.got().input_names == ("x", "scale", "mask", "y")
shuffled = {"x": rows, "y": rows, "mask": rows, "scale": None}
with expect_failure(IndexError, match="tuple index out of range"):
    export("dynamo", model, tensors.args, tensors.kwargs, dynamic_shapes=shuffled)
own = export("to_onnx", model, tensors.args, tensors.kwargs, dynamic_shapes=shuffled)
assert own.got().input_names == named.got().input_names
show.graph(named, title="Four tensors, four inputs")

# %%
# Arguments in ``**kwargs``
# -------------------------
# An argument in ``**kwargs`` can't have an entry, neither at the top level nor nested (`an open PyTorch bug
# <https://github.com/pytorch/pytorch/issues/150022>`_):


class Anything(Blend):
    def forward(self, x, **kwargs):
        return super().forward(x, **kwargs)


with expect_failure(
    torch._dynamo.exc.UserError, match=r"must be the arg names \['x', 'kwargs'\]", lines=1
):
    export(
        "torch.export",
        Anything().eval(),
        four.args,
        four.kwargs,
        dynamic_shapes={"x": rows, **entries},
    )
with expect_failure(AssertionError, match="Must provide a tree_name"):
    export(
        "torch.export",
        Anything().eval(),
        four.args,
        four.kwargs,
        dynamic_shapes={"x": rows, "kwargs": entries},
    )

# %%
# List the names in the signature, as ``Blend`` does. If you can't change the ``forward``, wrap the model in a module that lists them.
#
# What goes wrong: DynamicCache
# -----------------------------
# The Llama has two layers with random weights. For each layer, the cache contains the keys and values of ``past`` tokens, with two heads
# of size eight.

config = LlamaConfig(
    vocab_size=64,
    hidden_size=32,
    intermediate_size=64,
    num_hidden_layers=2,
    num_attention_heads=4,
    num_key_value_heads=2,
)
llama = LlamaForCausalLM(config).eval()


def step(batch, past, new):
    cache = DynamicCache(
        (torch.randn(batch, 2, past, 8), torch.randn(batch, 2, past, 8)) for _ in range(2)
    )
    ids, mask = torch.randint(64, (batch, new)), torch.ones(batch, past + new, dtype=torch.int64)
    return {"input_ids": ids, "attention_mask": mask, "past_key_values": cache}


with expect_failure(ValueError, match="Unsupported input type", lines=1):
    torch.export.export(llama, (), step(2, 5, 3))

# %%
# Transformers can register the cache as a list of keys and a list of values. Its entry is then two lists with an item per layer. The
# capture succeeds, but the next step of ``torch.onnx.export`` fails. The rebuilt cache starts each layer's keys and values from
# ``torch.tensor([])``. The capture stores four such constants, and ``run_decompositions`` creates new ones that it can't find:

# sphinx_gallery_start_answer
register_dynamic_cache_export_support()
layers = [{0: "batch", 2: "past"}] * 2
shapes = {
    "input_ids": {0: "batch", 1: "new"},
    "attention_mask": {0: "batch", 1: "total"},
    "past_key_values": [layers, layers],
}
# sphinx_gallery_end_answer
captured = export("torch.export", llama, (), step(2, 5, 3), dynamic_shapes=shapes).model
assert sum(name.startswith("lifted_tensor") for name in captured.constants) == 4
with expect_failure(
    torch._export.verifier.SpecViolationError, match="lifted_tensor_4 is not in the constants"
):
    captured.run_decompositions()

# %%
# What works: a cache without constants
# -------------------------------------
# Compute the empty tensor while the captured program is converted. (:doc:`A patch </tutorials/309_patch_a_real_model>` avoids this step.)
# The ONNX model is right at other batch sizes and lengths, for a single token, and for a prompt with an empty cache. It differs only for
# a token that can't attend to any position. Left padding is an example: no later token depends on it, so don't compare its output.


def start(layer, keys, values):
    layer.dtype, layer.device, layer.is_initialized = keys.dtype, keys.device, True
    layer.keys, layer.values = keys.new_empty(0), values.new_empty(0)


outputs = ["logits", "keys_0", "keys_1", "values_0", "values_1"]
with patch("transformers.cache_utils.DynamicLayer.lazy_initialization", start):
    program = export(
        "dynamo", captured, (), step(2, 5, 3), dynamic_shapes=shapes, output_names=outputs
    )
calls = [step(2, 5, 3), step(3, 9, 2), step(1, 1, 1), step(2, 0, 3)]
report = verify(program, llama, calls)
assert [check.values for check in report.failed] == ["integers zero"]  # a mask of zeros
report

# %%
# ``to_onnx`` translates the captured program without a patch:

own = export("to_onnx", llama, (), step(2, 5, 3), dynamic_shapes=shapes, output_names=outputs)
assert own.got() == program.got()
verify(own, llama, calls).check()

# %%
# Each tensor in an argument is an input, named after its path:

inputs = program.got().input_names
arrows = [(f"{a}()", i) for i in inputs for a in shapes if i.startswith(a)]
arrows += [*((i, "file") for i in inputs), *(("file", o) for o in outputs)]
boxes = [
    *(show.Node(f"{a}()", a, "function") for a in shapes),
    show.Node("file", "Llama, ONNX model"),
]
boxes += [show.Node(i, i.replace("values_", "values_\n"), "input") for i in inputs] + [
    show.Node(o, o, "output") for o in outputs
]
show.Drawing(tuple(boxes), tuple(show.Edge(*a) for a in arrows)).draw("Three arguments, six inputs")

# %%
# Next: :doc:`dynamic dimensions <dynamic_shapes>`, or :doc:`export patches </tutorials/309_patch_a_real_model>`.
