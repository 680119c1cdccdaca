"""
Llama to ONNX: which position_ids do I pass with a KV cache?
============================================================

Count positions by the mask in each call. This is also right for padded batches and for models with absolute position embeddings.

A text generator calls the ONNX model with tokens, a mask, positions and the cache of the previous call. Wrong positions don't raise an
error, but change the output. This recipe exports a Llama to one ONNX model for the prompt and for further tokens. It sets the usual cache
names, and compares five ways to count positions in a padded batch.
"""

import matplotlib.pyplot as plt
import torch
from torch import nn

from exportlab import compare, show
from exportlab.messages import muffled

with muffled():  # it says that it has no progress bar
    from transformers import DynamicCache, LlamaConfig, LlamaForCausalLM

# %%
# The Llama has two layers and random weights. The wrapper converts the cache object to a pair of tensors per layer. Each has four
# dimensions: batch, heads, tokens and size.

LAYERS, HEADS, SIZE, WORDS = 2, 2, 8, 64
sizes = {"hidden_size": 32, "intermediate_size": 48, "num_attention_heads": 4}
config = LlamaConfig(
    **sizes,
    num_hidden_layers=LAYERS,
    num_key_value_heads=HEADS,
    vocab_size=WORDS,
    initializer_range=0.3,
)


class Decoder(nn.Module):
    def __init__(self, llama):
        super().__init__()
        self.llama = llama

    def forward(self, input_ids, attention_mask, position_ids, past):
        cache = DynamicCache(past)
        output = self.llama(input_ids, attention_mask, position_ids, past_key_values=cache)
        return output.logits, [(layer.keys, layer.values) for layer in cache.layers]


torch.manual_seed(0)
model = Decoder(LlamaForCausalLM(config)).eval()

# %%
# Dynamic shapes for tokens, mask and cache
# -----------------------------------------
# Three sizes are dynamic. The mask covers the past and the new tokens, and the positions cover only the new ones:


def cache(batch, past):
    shape = (batch, HEADS, past, SIZE)
    return [(torch.randn(shape), torch.randn(shape)) for _ in range(LAYERS)]


def call(batch, past, new):
    mask = torch.ones(batch, past + new, dtype=torch.int64)
    positions = torch.arange(past, past + new).expand(batch, -1)
    return torch.randint(WORDS, (batch, new)), mask, positions, cache(batch, past)


pair = ({0: "batch", 2: "past"},) * 2
shapes = ({0: "batch", 1: "new"}, {0: "batch", 1: "past+new"}, {0: "batch", 1: "new"})
samples = [call(2, 5, 3), call(1, 0, 8), call(3, 9, 1), call(1, 1, 1)]
exporters = ("dynamo", "to_onnx")

# %%
# Both exporters would name the cache ``past_0_0`` by default, but text generation programs expect other names. Give the names in the
# order of the flattened arguments and results:

PAST = [f"past_key_values.{i}.{kind}" for i in range(LAYERS) for kind in ("key", "value")]
named = {
    "input_names": ["input_ids", "attention_mask", "position_ids", *PAST],
    "output_names": ["logits", *(name.replace("past_key_values", "present") for name in PAST)],
}
options = dict.fromkeys(exporters, named)
compared = compare(
    model, samples, dynamic_shapes=(*shapes, [pair] * LAYERS), exporters=exporters, options=options
)
assert compared.outcomes() == {"dynamo": "wrong", "to_onnx": "ok"}
assert [check.values for check in compared["dynamo"].report.failed] == ["integers zero"]
files = {exporter: compared[exporter].artifact for exporter in exporters}
show.summary(files["to_onnx"])

# %%
# The samples include a prompt without a past, one token after nine, and several texts, and all are right. The model from
# ``torch.onnx.export`` ("dynamo") is wrong for a mask of zeros: a token that can't attend to any position. A left-padding token is an
# example, and no later token depends on it.
#
# What goes wrong: positions that change between calls
# ----------------------------------------------------
# A text of six tokens is processed in two calls, of five tokens and one. It has left padding in a batch. Positions can be counted by the
# mask or by the index in the row, or restart at 0 in each call. The scores after the last token should match those of the text without
# padding:

text = torch.randint(WORDS, (1, 6))
with torch.inference_mode():
    expected = model.llama(text).logits[:, -1]


# sphinx_gallery_start_answer
def by_mask(mask, new):
    return (mask.cumsum(1) - 1).clamp(min=0)[:, -new:]


# sphinx_gallery_end_answer


COUNTS = {
    "mask": by_mask,
    "index": lambda mask, new: torch.arange(mask.shape[1])[None, -new:],
    "from 0": lambda mask, new: torch.arange(new)[None],
}


def score_error(run, padding, first, then):
    """Return how far the scores are from those of the text alone."""
    ids = nn.functional.pad(text, (padding, 0))
    mask = (torch.arange(ids.shape[1]) >= padding).long()[None]
    _, past = run(
        ids[:, :-1], mask[:, :-1], COUNTS[first](mask[:, :-1], 4 + padding + 1), cache(1, 0)
    )
    scores, _ = run(ids[:, -1:], mask, COUNTS[then](mask, 1), past)
    return (scores[:, -1] - expected).abs().max().item()


WAYS = [
    ("mask", "mask"),
    ("index", "index"),
    ("mask", "index"),
    ("index", "mask"),
    ("mask", "from 0"),
]
PADDINGS = range(5)
errors = {
    exporter: [[score_error(file, padding, *way) for padding in PADDINGS] for way in WAYS]
    for exporter, file in files.items()
}

# %%
# Counting by the mask is right, and so is counting by the index, because Llama's rotary embedding depends only on the distance between
# tokens. It is wrong to change the method between the prompt and the next token (except without padding), or to restart at 0. Both ONNX
# models show this:

for rows in errors.values():
    assert max(rows[0] + rows[1]) < 1e-3
    assert rows[2][0] < 1e-3 > rows[3][0]
    assert min(rows[2][1:] + rows[3][1:] + rows[4]) > 0.1

figure, axes = plt.subplots(figsize=(6.4, 3), layout="constrained")
rows = torch.tensor(errors["to_onnx"])
axes.imshow(rows.clamp(min=1e-6).log10(), cmap="cividis", aspect="auto")
for y, row in enumerate(rows.tolist()):
    for x, difference in enumerate(row):
        color = "black" if difference > 1e-2 else "white"
        axes.text(x, y, f"{difference:.0e}", ha="center", va="center", fontsize=8, color=color)
axes.set_yticks(range(len(WAYS)), [f"{first}, then {then}" for first, then in WAYS])
axes.set_xticks(PADDINGS, PADDINGS)
axes.set(xlabel="tokens of padding (in the cells: difference from the text alone)")
axes.set_title("Right if both calls count positions the same way")
plt.show()

# %%
# Next: :doc:`text generation with a cache </tutorials/302_language_model_with_cache>`, or :doc:`batch norm folding <model_convnet>`.
