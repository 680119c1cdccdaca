"""
ViT: how do I export it for images of any size?
===============================================

A vision transformer has one position embedding for each patch of the images it was trained on. On request it stretches them to other sizes,
but if you export it with an image of the size it knows, that code is not in the file. You will see the refusal, the example that fixes the
size, the one that does not, and a map of the sizes that each file accepts.

``to_onnx`` is this site's own exporter, so check what is said of it here on a model of your own.
"""

import matplotlib.pyplot as plt
import torch
from torch import nn

from exportlab import compare, expect_failure, show, verify
from exportlab.messages import muffled

with muffled():  # it says that it has no progress bar
    from transformers import ViTConfig, ViTModel

# %%
# A ViT of two layers with random weights, for images of 32 × 32 in patches of 8 × 8. That makes 16 positions, and one for the class.

torch.manual_seed(0)
sizes = {"hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2}
config = ViTConfig(
    **sizes, num_attention_heads=4, image_size=32, patch_size=8, initializer_range=0.3
)
vit = ViTModel(config).eval()
assert vit.embeddings.position_embeddings.shape == (1, 17, 32)


def image(height, width, batch=1):
    return (torch.randn(batch, 3, height, width),)


# %%
# What goes wrong
# ---------------
# Eager refuses another height or width, and the exporters keep that check by refusing to let these axes move:

exporters = ("dynamo", "to_onnx")
free = ({0: "batch", 2: "height", 3: "width"},)
known = image(32, 32, batch=2)
with expect_failure(ValueError, match="doesn't match model"):
    vit(*image(48, 32))
refused = compare(vit, [known], dynamic_shapes=free, exporters=exporters)
assert set(refused.outcomes().values()) == {"capture"}
refused

# %%
# Asked to stretch
# ----------------
# With ``interpolate_pos_encoding=True`` the positions are a small picture, 4 × 4, that is resized to the patches of the image. The switch is a
# Python bool, which is no input of a file. Fix it in a module around the model:


class AnySize(nn.Module):
    def __init__(self, vit):
        super().__init__()
        self.vit = vit

    def forward(self, pixel_values):
        return self.vit(pixel_values, interpolate_pos_encoding=True).last_hidden_state


# %%
# Now eager takes any image of at least one patch. Export with the size that the model was trained on, and verify on a square and on a
# rectangle that the export never saw:

model = AnySize(vit).eval()
unseen = [image(48, 48, batch=3), image(64, 16)]
fixed = compare(model, [known, *unseen], dynamic_shapes=free, exporters=exporters)
assert fixed.outcomes() == {"dynamo": "narrow", "to_onnx": "ok"}
fixed

# %%
# The dimensions of the official file are called *height* and *width*, but it takes 4 × 4 patches only. ``to_onnx`` runs the model at other sizes as
# well, so its file has both sides of the test of sizes.
#
# Why
# ---
# The library asks whether there is anything to do: with as many patches as positions, and a square image, it returns the positions as they are. The
# example answered yes, so the file has no ``Resize``:

assert "Resize" not in fixed["dynamo"].artifact.ops()

# %%
# What works: an example of another size
# --------------------------------------
# Not square, and with another number of patches than the model was trained on. The answer is then no, and the positions are resized, even
# where 4 × 4 become 4 × 4, which changes nothing:

example = image(40, 48, batch=2)
EDGES = (8, 32, 35, 64)
others = [image(height, width) for height in EDGES for width in EDGES]
samples = [example, image(32, 32, batch=3), *others]
compared = compare(model, samples, dynamic_shapes=free, exporters=exporters)
assert set(compared.outcomes().values()) == {"ok"}
assert all(attempt.artifact.ops()["Resize"] == 1 for attempt in compared.attempts.values())
compared

# %%
# 35 is no multiple of 8. Eager drops what is left over, and so do the files.
#
# ``torch.export`` by itself is stricter. It did note that the example answered no, and its program refuses images of 16 patches, the size
# of the training among them. An ONNX file has no such guards; here that is for the best, since verifying has shown that both answers come to the
# same:

captured = compare(model, [example, known], dynamic_shapes=free, exporters=("torch.export",))
assert captured.outcomes() == {"torch.export": "narrow"}
captured

# %%
# Which sizes the official file takes, by the image that it was exported with:

reports = {
    "32 × 32": verify(fixed["dynamo"].artifact, model, [known, *others]),
    "40 × 48": compared["dynamo"].report,
}


def outcomes(report):
    """Of the last checks on unseen sizes, which are `others`."""
    checks = [check for check in report.checks if check.name == "unseen size"]
    return [check.outcome for check in checks[-len(others) :]]


maps = {title: outcomes(report) for title, report in reports.items()}
taken = {title: found.count("ok") for title, found in maps.items()}
assert taken["40 × 48"] == len(others)
assert taken["32 × 32"] < len(others) / 2

figure, plots = plt.subplots(1, 2, figsize=(7.4, 3.8), sharey=True, layout="constrained")
for plot, (title, found) in zip(plots, maps.items(), strict=True):
    for place, outcome in enumerate(found):
        y, x = divmod(place, len(EDGES))
        plot.add_patch(
            plt.Rectangle((x, y), 1, 1, fc=show.OUTCOME_COLORS[outcome], ec="white", lw=2)
        )
        plot.text(x + 0.5, y + 0.5, outcome, ha="center", va="center", fontsize=8)
    middles = [place + 0.5 for place in range(len(EDGES))]
    plot.set(
        xlim=(0, len(EDGES)), ylim=(len(EDGES), 0), title=f"exported with {title}", xlabel="width"
    )
    plot.set_xticks(middles, EDGES)
    plot.set_yticks(middles, EDGES)
    plot.tick_params(length=0)
plots[0].set_ylabel("height")
figure.suptitle("Exported with 40 × 48, the file takes every size")
plt.show()

# %%
# Whatever the file must be able to do, the example that you export with has to need it. Next: :doc:`a length that cannot move, in Whisper
# <model_whisper>`, or :doc:`which word for an axis </generated/gallery/torch_export/dynamic_shapes>`.
