"""
How do I export ViT for other image sizes (interpolate_pos_encoding)?
=====================================================================

Set ``interpolate_pos_encoding=True`` in a wrapper, and export with an image that doesn't have the training size. The interpolation is then
in the model.

A vision transformer has one position embedding for each patch of its training images, and can interpolate them for other sizes. If you
export with an image of the training size, the interpolation is not in the ONNX model. This recipe shows the error, chooses a better
example, and maps the image sizes that each ONNX model accepts.
"""

import matplotlib.pyplot as plt
import torch
from torch import nn

from exportlab import compare, expect_failure, show, verify
from exportlab.messages import muffled

with muffled():  # it says that it has no progress bar
    from transformers import ViTConfig, ViTModel

# %%
# The ViT has two layers and random weights, for images of 32 × 32 with patches of 8 × 8. It has 16 positions, plus one for the class
# token.

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
# What goes wrong: a fixed image size
# -----------------------------------
# Eager rejects another height or width. Both exporters therefore refuse to make these dimensions dynamic:

exporters = ("dynamo", "to_onnx")
# sphinx_gallery_start_answer
free = ({0: "batch", 2: "height", 3: "width"},)
# sphinx_gallery_end_answer
known = image(32, 32, batch=2)
with expect_failure(ValueError, match="doesn't match model"):
    vit(*image(48, 32))
refused = compare(vit, [known], dynamic_shapes=free, exporters=exporters)
assert set(refused.outcomes().values()) == {"capture"}
refused

# %%
# Turn on interpolate_pos_encoding
# --------------------------------
# With ``interpolate_pos_encoding=True``, the positions are resized like a 4 × 4 image to the number of patches. The option is a Python
# bool, so it can't be an input of the ONNX model. Set it in a wrapper module:


class AnySize(nn.Module):
    def __init__(self, vit):
        super().__init__()
        self.vit = vit

    # sphinx_gallery_start_answer
    def forward(self, pixel_values):
        return self.vit(pixel_values, interpolate_pos_encoding=True).last_hidden_state

    # sphinx_gallery_end_answer


# %%
# Eager now accepts any image with at least one patch. Export with the training size, and verify with a square and a rectangle that the
# export never saw:

model = AnySize(vit).eval()
unseen = [image(48, 48, batch=3), image(64, 16)]
fixed = compare(model, [known, *unseen], dynamic_shapes=free, exporters=exporters)
assert fixed.outcomes() == {"dynamo": "narrow", "to_onnx": "ok"}
fixed

# %%
# The model from ``torch.onnx.export`` ("dynamo") is ``narrow``: it declares *height* and *width* as dynamic, but accepts only 4 × 4
# patches, and raises an error for other sizes. ``to_onnx`` also runs the model at other sizes, so it can write both branches of the size
# test.
#
# Why: transformers skips the interpolation
# -----------------------------------------
# If the image is square and has as many patches as positions, transformers returns the positions unchanged. The example has this size, so
# the ONNX model has no ``Resize``:

assert "Resize" not in fixed["dynamo"].artifact.ops()

# %%
# What works: an example with another size
# ----------------------------------------
# Export with an image that is not square and has another number of patches than the training images. The positions are then resized for
# every size. For 4 × 4 patches the resize changes nothing:

# sphinx_gallery_start_answer
example = image(40, 48, batch=2)
# sphinx_gallery_end_answer
EDGES = (8, 32, 35, 64)
others = [image(height, width) for height in EDGES for width in EDGES]
samples = [example, image(32, 32, batch=3), *others]
compared = compare(model, samples, dynamic_shapes=free, exporters=exporters)
assert set(compared.outcomes().values()) == {"ok"}
assert all(attempt.artifact.ops()["Resize"] == 1 for attempt in compared.attempts.values())
compared

# %%
# 35 is not a multiple of 8. Eager ignores the remaining pixels, and so do the ONNX models.
#
# ``torch.export`` alone is stricter. It adds a guard for the branch of the example, so its program is ``narrow``: it rejects images with 16
# patches, including the training size. An ONNX model has no guards. That is an advantage here, because the verification above shows that
# the resize gives the right result for 16 patches too:

captured = compare(model, [example, known], dynamic_shapes=free, exporters=("torch.export",))
assert captured.outcomes() == {"torch.export": "narrow"}
captured

# %%
# The maps show which sizes the model from ``torch.onnx.export`` accepts, for both examples:

reports = {
    "32 × 32": verify(fixed["dynamo"].artifact, model, [known, *others]),
    "40 × 48": compared["dynamo"].report,
}


def outcomes(report):
    """Return the outcomes of the last checks on unseen sizes, which are `others`."""
    checks = [check for check in report.checks if check.name == "unseen size"]
    return [check.outcome for check in checks[-len(others) :]]


maps = {title: outcomes(report) for title, report in reports.items()}
accepted = {title: results.count("ok") for title, results in maps.items()}
assert accepted["40 × 48"] == len(others)
assert accepted["32 × 32"] < len(others) / 2

figure, plots = plt.subplots(1, 2, figsize=(7.4, 3.8), sharey=True, layout="constrained")
for plot, (title, results) in zip(plots, maps.items(), strict=True):
    for index, outcome in enumerate(results):
        y, x = divmod(index, len(EDGES))
        plot.add_patch(
            plt.Rectangle((x, y), 1, 1, fc=show.OUTCOME_COLORS[outcome], ec="white", lw=2)
        )
        plot.text(x + 0.5, y + 0.5, outcome, ha="center", va="center", fontsize=8)
    middles = [index + 0.5 for index in range(len(EDGES))]
    plot.set(
        xlim=(0, len(EDGES)), ylim=(len(EDGES), 0), title=f"exported with {title}", xlabel="width"
    )
    plot.set_xticks(middles, EDGES)
    plot.set_yticks(middles, EDGES)
    plot.tick_params(length=0)
plots[0].set_ylabel("height")
figure.suptitle("Exported with 40 × 48, the model accepts all sizes")
plt.show()

# %%
# Next: :doc:`the fixed length of Whisper <model_whisper>`, or :doc:`Dim, Dim.AUTO or Dim.DYNAMIC
# </generated/gallery/torch_export/dynamic_shapes>`.
