"""
Llama: which positions do new tokens get?
=========================================

A program that generates text calls the file with tokens, a mask, positions and the cache of the previous call. Wrong positions raise
nothing and spoil the text. Here is a Llama in one file, for the prompt and for each further token, the names that such programs look for,
and every way to count positions in a padded batch, with what it does to the answer.

``to_onnx`` is this site's own exporter, so check what is said of it here on a model of your own.
"""

import matplotlib.pyplot as plt
import torch
from torch import nn

from exportlab import compare, show
from exportlab.messages import muffled

with muffled():  # it says that it has no progress bar
    from transformers import DynamicCache, LlamaConfig, LlamaForCausalLM

# %%
# A Llama of two layers with random weights. The cache is an object, so it is taken apart at the border: a pair of tensors for each layer, with
# four axes, batch, heads, tokens and size.

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
        found = self.llama(input_ids, attention_mask, position_ids, past_key_values=cache)
        return found.logits, [(layer.keys, layer.values) for layer in cache.layers]


torch.manual_seed(0)
model = Decoder(LlamaForCausalLM(config)).eval()

# %%
# One file, called as it is known
# -------------------------------
# Three sizes move. The mask covers the past as well as what is new, and the positions only what is new:


def cache(batch, past):
    shape = (batch, HEADS, past, SIZE)
    return [(torch.randn(shape), torch.randn(shape)) for _ in range(LAYERS)]


def call(batch, past, new):
    mask = torch.ones(batch, past + new, dtype=torch.int64)
    places = torch.arange(past, past + new).expand(batch, -1)
    return torch.randint(WORDS, (batch, new)), mask, places, cache(batch, past)


pair = ({0: "batch", 2: "past"},) * 2
moves = ({0: "batch", 1: "new"}, {0: "batch", 1: "past+new"}, {0: "batch", 1: "new"})
samples = [call(2, 5, 3), call(1, 0, 8), call(3, 9, 1), call(1, 1, 1)]
exporters = ("dynamo", "to_onnx")

# %%
# By themselves, both exporters would call the cache ``past_0_0``, which no program looks for. Give the names in the order of the flattened
# arguments and results:

PAST = [f"past_key_values.{i}.{kind}" for i in range(LAYERS) for kind in ("key", "value")]
named = {
    "input_names": ["input_ids", "attention_mask", "position_ids", *PAST],
    "output_names": ["logits", *(name.replace("past_key_values", "present") for name in PAST)],
}
options = dict.fromkeys(exporters, named)
compared = compare(
    model, samples, dynamic_shapes=(*moves, [pair] * LAYERS), exporters=exporters, options=options
)
assert compared.outcomes() == {"dynamo": "wrong", "to_onnx": "ok"}
assert [check.values for check in compared["dynamo"].report.failed] == ["integers zero"]
files = {exporter: compared[exporter].artifact for exporter in exporters}
show.summary(files["to_onnx"])

# %%
# A prompt without a past, one token after nine, several texts: all right. The official file is wrong for a mask of zeros, that is, for a
# token that may attend to nothing. Padding in front is such a place, and no later token sees it.
#
# What goes wrong
# ---------------
# A text of six tokens, read in two calls, five and one. In a batch it has padding in front. Two ways to count positions go by the mask or by
# the place in the row; a third begins at 0 in each call. Whatever the padding, the scores after the last token should be those of the text
# alone:

text = torch.randint(WORDS, (1, 6))
with torch.inference_mode():
    expected = model.llama(text).logits[:, -1]

COUNTS = {
    "mask": lambda mask, new: (mask.cumsum(1) - 1).clamp(min=0)[:, -new:],
    "place": lambda mask, new: torch.arange(mask.shape[1])[None, -new:],
    "from 0": lambda mask, new: torch.arange(new)[None],
}


def strayed(run, padding, first, then):
    """How far the scores are from those of the text alone."""
    ids = nn.functional.pad(text, (padding, 0))
    mask = (torch.arange(ids.shape[1]) >= padding).long()[None]
    _, past = run(
        ids[:, :-1], mask[:, :-1], COUNTS[first](mask[:, :-1], 4 + padding + 1), cache(1, 0)
    )
    scores, _ = run(ids[:, -1:], mask, COUNTS[then](mask, 1), past)
    return (scores[:, -1] - expected).abs().max().item()


WAYS = [
    ("mask", "mask"),
    ("place", "place"),
    ("mask", "place"),
    ("place", "mask"),
    ("mask", "from 0"),
]
PADDINGS = range(5)
found = {
    exporter: [[strayed(file, padding, *way) for padding in PADDINGS] for way in WAYS]
    for exporter, file in files.items()
}

# %%
# Counting by the mask is right, and so is counting by the place. Llama turns queries and keys by their positions, and only the distance of two
# tokens matters. What is not right is to change from one to the other between prompt and token, unless nothing is padded, and to begin
# again at 0. Both files say the same:

for rows in found.values():
    assert max(rows[0] + rows[1]) < 1e-3
    assert rows[2][0] < 1e-3 > rows[3][0]
    assert min(rows[2][1:] + rows[3][1:] + rows[4]) > 0.1

figure, axes = plt.subplots(figsize=(6.4, 3), layout="constrained")
rows = torch.tensor(found["to_onnx"])
axes.imshow(rows.clamp(min=1e-6).log10(), cmap="cividis", aspect="auto")
for y, row in enumerate(rows.tolist()):
    for x, difference in enumerate(row):
        color = "black" if difference > 1e-2 else "white"
        axes.text(x, y, f"{difference:.0e}", ha="center", va="center", fontsize=8, color=color)
axes.set_yticks(range(len(WAYS)), [f"{first}, then {then}" for first, then in WAYS])
axes.set_xticks(PADDINGS, PADDINGS)
axes.set(xlabel="tokens of padding (in the cells: difference from the text alone)")
axes.set_title("Right where both calls count positions the same way")
plt.show()

# %%
# Count positions by the mask in every call: that is also right for models that add a vector for each position. Next: :doc:`generating
# with the file </tutorials/302_language_model_with_cache>`, or :doc:`a batch norm that folds <model_convnet>`.
