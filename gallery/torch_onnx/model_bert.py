"""
BERT to ONNX: why does padding change my output?
================================================

Without ``attention_mask`` as an input, the exported model reads padding as text. Export with the mask, and test one text alone and padded.

Texts of different lengths share a batch by padding, and the attention mask marks the padding. An ONNX model without the mask input reads
padding as text, and comparing it with eager doesn't reveal that. This recipe exports BERT with a dynamic batch size and sequence length.
It also covers the order of its arguments, and rows that contain only padding.
"""

import matplotlib.pyplot as plt
import torch

from exportlab import compare, verify
from exportlab.messages import muffled

with muffled():  # it says that it has no progress bar
    from transformers import BertConfig, BertModel

# %%
# The model is a BERT with two layers and random weights. The helper creates a padded batch, where token 0 is padding.

torch.manual_seed(0)
sizes = {"hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2}
config = BertConfig(
    **sizes, num_attention_heads=4, vocab_size=64, max_position_embeddings=32, initializer_range=0.3
)
model = BertModel(config).eval()


def texts(*lengths, padded_to=None):
    """Texts of these lengths, padded at the end, and their mask."""
    positions = torch.arange(padded_to or max(lengths))
    mask = (positions < torch.tensor(lengths)[:, None]).long()
    return {"input_ids": torch.randint(1, 64, mask.shape) * mask, "attention_mask": mask}


samples = [texts(7, 4), texts(10, 1, 6), texts(5), texts(1), texts(32, 2, 32, 9)]
# sphinx_gallery_start_answer
both = {0: "batch", 1: "sequence"}
# sphinx_gallery_end_answer

# %%
# What goes wrong: exporting without attention_mask
# -------------------------------------------------
# BERT runs with ``input_ids`` alone, so it can be exported with them alone:

ids_only = [(sample["input_ids"],) for sample in samples]
exporters = ("dynamo", "to_onnx")
compared = compare(model, ids_only, dynamic_shapes=(both,), exporters=exporters)
assert set(compared.outcomes().values()) == {"ok"}
compared

# %%
# The exported model matches eager without a mask. Now run one text twice, alone and with three tokens of padding:

text = texts(5)["input_ids"]
padded = torch.nn.functional.pad(text, (0, 3))
without_mask = compared["dynamo"].artifact
alone, among = (without_mask(ids)["pooler_output"] for ids in (text, padded))
assert (alone - among).abs().max() > 0.1

# %%
# The output for the same text depends on the longest text in its batch.
#
# Why verify reports ok
# ---------------------
# Without a mask, BERT uses a mask of ones. That is right for a single text or texts of equal length, the usual test inputs. Comparing
# with eager doesn't help, because eager makes the same error.
#
# Export attention_mask as a dynamic input
# ----------------------------------------
# Pass the mask by name. Both inputs have the same two dynamic dimensions. If you leave out those of the mask, both exporters refuse the
# model:

half = {"input_ids": both, "attention_mask": None}
refused = compare(model, samples[:1], dynamic_shapes=half, exporters=exporters)
assert set(refused.outcomes().values()) == {"capture"}
refused

# %%
# With dynamic dimensions for both, we verify sizes that the export never saw, including one token and a batch of one. The section on rows
# that contain only padding explains why ``torch.onnx.export`` ("dynamo") is *wrong* here:

# sphinx_gallery_start_answer
axes = {"input_ids": both, "attention_mask": both}
compared = compare(model, samples, dynamic_shapes=axes, exporters=exporters)
# sphinx_gallery_end_answer
assert compared.outcomes() == {"dynamo": "wrong", "to_onnx": "ok"}
failed = compared["dynamo"].report.failed
assert [check.values for check in failed] == ["integers at their least", "integers zero"]
compared

# %%
# Pass the inputs by name
# -----------------------
# A BERT tokenizer returns ``input_ids``, ``token_type_ids``, ``attention_mask``, but the model expects the mask as its second argument.
# If you pass ``tuple(encoded.values())``, the two are swapped:

encoded = {
    "input_ids": padded,
    "token_type_ids": torch.zeros_like(padded),
    "attention_mask": (padded > 0).long(),
}
with torch.inference_mode():
    by_name, by_position = model(**encoded), model(*encoded.values())
assert (by_name.pooler_output - by_position.pooler_output).abs().max() > 0.1

# %%
# All three have the same shape and dtype, so BERT doesn't raise an error. Export with ``kwargs``, and call the ONNX model by name.
#
# Rows that contain only padding
# ------------------------------
# The model from ``torch.onnx.export`` is right at every size above. ``verify`` reports *wrong* because of a mask of zeros, which it tries
# itself. Some servers add such rows to fill a batch. For such a row, attention returns zeros in eager, and the mean of all tokens in the
# model from ``torch.onnx.export``. In the report below, this row is ``frozen`` (wrong at another size), although the size isn't the cause:

padding_only = texts(6, 0)
reports = {
    name: verify(compared[name].artifact, model, [samples[0], padding_only]) for name in exporters
}
assert {name: report.outcome for name, report in reports.items()} == {
    "dynamo": "wrong",
    "to_onnx": "ok",
}
assert [check.outcome for check in reports["dynamo"].checks[:2]] == ["ok", "frozen"]
attended = []
attention = model.encoder.layer[0].attention.self
with attention.register_forward_hook(lambda *call: attended.append(call[-1][0])):
    model(**padding_only)
assert attended[0][0].any()
assert not attended[0][1].any()
reports["dynamo"]

# %%
# The output of such a row is meaningless, but a mean over the batch includes it. Drop such rows.
#
# Measure the effect of padding
# -----------------------------
# The plot shows how far the output is from that of the text alone, for different amounts of padding.


def padding_error(answer):
    """Return the difference at each amount of padding; `answer` is a function of the tokens."""
    longer = [torch.nn.functional.pad(text, (0, padding)) for padding in range(28)]
    return [(answer(ids) - answer(text)).abs().max().item() for ids in longer]


def masked(artifact):
    return lambda ids: artifact(input_ids=ids, attention_mask=(ids > 0).long())["pooler_output"]


errors = {
    "tokens alone": padding_error(lambda ids: without_mask(ids)["pooler_output"]),
    "tokens and mask, torch.onnx.export": padding_error(masked(compared["dynamo"].artifact)),
    "tokens and mask, to_onnx": padding_error(masked(compared["to_onnx"].artifact)),
}
assert min(errors["tokens alone"][1:]) > 1e-2
assert all(max(differences) < 1e-4 for name, differences in errors.items() if "mask" in name)

figure, plot = plt.subplots(figsize=(6.4, 3), layout="constrained")
for (name, differences), style in zip(errors.items(), ("o-", "s-", "x--"), strict=True):
    plot.plot(differences, style, ms=4, label=name)
plot.set(xlabel="tokens of padding", ylabel="largest difference\nfrom the text alone")
plot.set_title("Without the mask, padding changes the output")
plot.legend(frameon=False)
plot.spines[["top", "right"]].set_visible(False)
plt.show()

# %%
# Next: :doc:`ViT for other image sizes <model_vit>`, or :doc:`deploy a transformer </tutorials/301_transformer_whole_road>`.
