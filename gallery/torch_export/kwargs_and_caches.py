"""
How do I export a model with keyword arguments and a cache?
===========================================================

You will pass ``dynamic_shapes`` by name, see what becomes of ``None``, of numbers and of ``**kwargs``, and export a small Llama with its
``DynamicCache``: one file that takes a prompt or a single token, with any number of earlier tokens in the cache.

``to_onnx`` is this site's own exporter, so check what is said of it here on a model of your own.
"""

import warnings
from unittest.mock import patch

import torch
from torch import nn
from transformers import DynamicCache, LlamaConfig, LlamaForCausalLM
from transformers.integrations.executorch import register_dynamic_cache_export_support

from exportlab import Sample, compare, expect_failure, export, show, verify

# %%
# The first model takes one argument by place and three by name, two of which need not be given. (The official exporter warns of every name
# that two axes share. Here they are meant to.)


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
# Arguments by name
# -----------------
# ``dynamic_shapes`` has an entry for every argument of the call, those that are no tensors too.

entries = {"scale": None, "mask": None, "y": rows}
compared = compare(
    model, [four, blend(7), blend(1), blend(0)], dynamic_shapes={"x": rows, **entries}
)
assert [*compared.outcomes().values()] == ["ok", "ok", "ok", "capture"]
compared

# %%
# None and numbers vanish
# -----------------------
# The file has two inputs, and 3.0 is a weight. The axis lost its name too: the official exporter counts entries and inputs, and gives up on
# names where they are not as many. (``to_onnx`` goes by the tensors and keeps the name.) The captured program still takes four arguments;
# it refuses another number, but where there was ``None``, it ignores a mask without a word.

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
# So give a tensor for whatever is to stay an input. Inputs stand in the order of your call; write the entries in that order, since the
# official exporter hands out the names of axes by position. In another order, it looks for the batch of a scalar; ``to_onnx`` does not
# mind:

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
# The ``**kwargs`` trap
# ---------------------
# An argument that only ``**kwargs`` takes cannot have an entry, neither beside the others nor one level down (`an open bug
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
# ``Blend`` is the way out: it spells the names. Where the ``forward`` is not yours, do so in a module around it.
#
# A cache is not a tensor
# -----------------------
# Two layers with random weights. For each, the cache holds the keys and the values of ``past`` tokens, in two heads of eight.

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
# Transformers registers it as a list of keys and a list of values, so its entry holds two lists, with one item per layer. That is enough
# to capture, and not to go on. Whenever the cache is put together again, each layer starts its keys and values from ``torch.tensor([])``;
# capture keeps those four constants, the next step of the official exporter makes new ones, and misses them.

register_dynamic_cache_export_support()
layers = [{0: "batch", 2: "past"}] * 2
shapes = {
    "input_ids": {0: "batch", 1: "new"},
    "attention_mask": {0: "batch", 1: "total"},
    "past_key_values": [layers, layers],
}
captured = export("torch.export", llama, (), step(2, 5, 3), dynamic_shapes=shapes).model
assert sum(name.startswith("lifted_tensor") for name in captured.constants) == 4
with expect_failure(
    torch._export.verifier.SpecViolationError, match="lifted_tensor_4 is not in the constants"
):
    captured.run_decompositions()

# %%
# What works: a cache that starts without a constant
# --------------------------------------------------
# Let the empty tensor be computed while the captured program is converted (:doc:`a patch </tutorials/309_patch_a_real_model>` does without).
# The file is right at other batches and lengths, for one token after one, and for a prompt with an empty cache. One thing is not: a token that
# may attend to nothing. Padding in front is such a place, and no later token sees it, but do not compare the file's answer there:


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
# ``to_onnx`` translates the captured program as it is, and needs no such patch:

own = export("to_onnx", llama, (), step(2, 5, 3), dynamic_shapes=shapes, output_names=outputs)
assert own.got() == program.got()
verify(own, llama, calls).check()

# %%
# Each tensor in an argument is an input, named after the way to it:

inputs = program.got().input_names
arrows = [(f"{a}()", i) for i in inputs for a in shapes if i.startswith(a)]
arrows += [*((i, "file") for i in inputs), *(("file", o) for o in outputs)]
boxes = [
    *(show.Node(f"{a}()", a, "function") for a in shapes),
    show.Node("file", "Llama, one file"),
]
boxes += [show.Node(i, i.replace("values_", "values_\n"), "input") for i in inputs] + [
    show.Node(o, o, "output") for o in outputs
]
show.Drawing(tuple(boxes), tuple(show.Edge(*a) for a in arrows)).draw("Three arguments, six inputs")

# %%
# Only tensors become inputs of the file: a number or ``None`` is fixed at export, and a cache becomes one input for each tensor in it.
# Next: :doc:`sizes that move <dynamic_shapes>`, or :doc:`a patch for this, and for others </tutorials/309_patch_a_real_model>`.
