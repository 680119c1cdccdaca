"""
BERT: why does padding change my answers?
=========================================

Texts of different lengths share a batch by padding, and the attention mask says what is padding. If your file lacks the mask, it reads the
padding as text, and no check of the export sees it. Here is a BERT whose batch and length move and whose answers do not, the order of
arguments that you must not rely on, and the row that only one exporter gets right.

``to_onnx`` is this site's own exporter, so check what is said of it here on a model of your own.
"""

import matplotlib.pyplot as plt
import torch

from exportlab import compare, verify
from exportlab.messages import muffled

with muffled():  # it says that it has no progress bar
    from transformers import BertConfig, BertModel

# %%
# A BERT of two layers with random weights, and a batch of texts: token 0 is padding.

torch.manual_seed(0)
sizes = {"hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2}
config = BertConfig(
    **sizes, num_attention_heads=4, vocab_size=64, max_position_embeddings=32, initializer_range=0.3
)
model = BertModel(config).eval()


def texts(*lengths, padded_to=None):
    """Texts of these lengths, padded at the end, and their mask."""
    places = torch.arange(padded_to or max(lengths))
    mask = (places < torch.tensor(lengths)[:, None]).long()
    return {"input_ids": torch.randint(1, 64, mask.shape) * mask, "attention_mask": mask}


samples = [texts(7, 4), texts(10, 1, 6), texts(5), texts(1), texts(32, 2, 32, 9)]
both = {0: "batch", 1: "sequence"}

# %%
# What goes wrong
# ---------------
# The tokens alone are enough to run a BERT, so they are enough to export one:

ids_only = [(sample["input_ids"],) for sample in samples]
exporters = ("dynamo", "to_onnx")
compared = compare(model, ids_only, dynamic_shapes=(both,), exporters=exporters)
assert set(compared.outcomes().values()) == {"ok"}
compared

# %%
# All is well: the file does what the model does without a mask. Now take one text, alone and with three tokens of padding:

text = texts(5)["input_ids"]
padded = torch.nn.functional.pad(text, (0, 3))
careless = compared["dynamo"].artifact
alone, among = (careless(ids)["pooler_output"] for ids in (text, padded))
assert (alone - among).abs().max() > 0.1

# %%
# Another answer for the same text, decided by the longest text that happens to be in its batch.
#
# Why nothing complained
# ----------------------
# Without a mask, the model takes one of all ones. That is right for a single text and for texts of one length, which is what most people
# test with. Comparing with eager does not help, since eager is wrong in the same way.
#
# The mask is an input, and it moves along
# ----------------------------------------
# Pass it by name. Both inputs have the same two axes. If you leave out those of the mask, both exporters refuse:

half = {"input_ids": both, "attention_mask": None}
refused = compare(model, samples[:1], dynamic_shapes=half, exporters=exporters)
assert set(refused.outcomes().values()) == {"capture"}
refused

# %%
# With axes for each, at sizes that the export never saw, one token and a batch of one among them:

axes = {"input_ids": both, "attention_mask": both}
compared = compare(model, samples, dynamic_shapes=axes, exporters=exporters)
assert compared.outcomes() == {"dynamo": "wrong", "to_onnx": "ok"}
failed = compared["dynamo"].report.failed
assert [check.values for check in failed] == ["integers at their least", "integers zero"]
compared

# %%
# Not by position
# ---------------
# A tokenizer of BERT returns ``input_ids``, ``token_type_ids``, ``attention_mask``. The model takes the mask second. If you pass
# ``tuple(encoded.values())``, each is taken for the other:

encoded = {
    "input_ids": padded,
    "token_type_ids": torch.zeros_like(padded),
    "attention_mask": (padded > 0).long(),
}
with torch.inference_mode():
    by_name, by_position = model(**encoded), model(*encoded.values())
assert (by_name.pooler_output - by_position.pooler_output).abs().max() > 0.1

# %%
# No error, since all three have the same shape and dtype. Export with ``kwargs``, and a file fed by name can only be right.
#
# Where the two exporters differ
# ------------------------------
# The official file is right at every size above, and ``verify`` calls it wrong for a mask of zeros, which it tries by itself. That is a row
# of nothing but padding, as some servers add to fill a batch. For such a row, attention returns zeros in eager, and the mean of all tokens in
# the official file:

nothing = texts(6, 0)
reports = {
    name: verify(compared[name].artifact, model, [samples[0], nothing]) for name in exporters
}
assert {name: report.outcome for name, report in reports.items()} == {
    "dynamo": "wrong",
    "to_onnx": "ok",
}
assert [check.outcome for check in reports["dynamo"].checks[:2]] == ["ok", "frozen"]
attended = []
attention = model.encoder.layer[0].attention.self
with attention.register_forward_hook(lambda *call: attended.append(call[-1][0])):
    model(**nothing)
assert attended[0][0].any()
assert not attended[0][1].any()
reports["dynamo"]

# %%
# That row means nothing to anybody, but a mean over the batch will take it in. Drop such rows.
#
# One text, more and more padding
# -------------------------------
# How far is the answer from that of the text alone?


def strayed(answer):
    """The difference at each amount of padding; `answer` takes tokens."""
    longer = [torch.nn.functional.pad(text, (0, padding)) for padding in range(28)]
    return [(answer(ids) - answer(text)).abs().max().item() for ids in longer]


def masked(artifact):
    return lambda ids: artifact(input_ids=ids, attention_mask=(ids > 0).long())["pooler_output"]


found = {
    "tokens alone": strayed(lambda ids: careless(ids)["pooler_output"]),
    "tokens and mask, torch.onnx.export": strayed(masked(compared["dynamo"].artifact)),
    "tokens and mask, to_onnx": strayed(masked(compared["to_onnx"].artifact)),
}
assert min(found["tokens alone"][1:]) > 1e-2
assert all(max(differences) < 1e-4 for name, differences in found.items() if "mask" in name)

figure, plot = plt.subplots(figsize=(6.4, 3), layout="constrained")
for (name, differences), style in zip(found.items(), ("o-", "s-", "x--"), strict=True):
    plot.plot(differences, style, ms=4, label=name)
plot.set(xlabel="tokens of padding", ylabel="largest difference\nfrom the text alone")
plot.set_title("Without the mask, padding changes the answer")
plot.legend(frameon=False)
plot.spines[["top", "right"]].set_visible(False)
plt.show()

# %%
# Test your own file with one text, once alone and once padded: both must give the same answer. Next: :doc:`images of another size, in a
# ViT <model_vit>`, or :doc:`the whole road of a transformer </tutorials/301_transformer_whole_road>`.
