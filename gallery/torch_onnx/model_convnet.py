"""
How do I export a CNN with dynamic image height and width?
==========================================================

Name height and width in ``dynamic_shapes``, and end the model with a global mean. The head fixes the image size, not the convolutions.

Convolutions accept images of different sizes, but the head of a CNN may not. This recipe exports a net with three heads and a dynamic
height and width, and shows which ones stay dynamic. It then shows what happens if you export in training mode.
"""

import torch
from torch import nn

from exportlab import compare, expect_failure, export, show, verify
from exportlab.messages import heard
from fx2onnx.errors import MutationError

# %%
# The net has two convolutions with batch norm, initialised with non-trivial statistics, and a head:


def convnet(*head):
    torch.manual_seed(0)
    block = (nn.Conv2d(3, 8, 3, padding=1), nn.BatchNorm2d(8), nn.ReLU(), nn.MaxPool2d(2))
    net = nn.Sequential(*block, nn.Conv2d(8, 16, 3), nn.BatchNorm2d(16), nn.ReLU(), *head)
    for layer in net:
        if isinstance(layer, nn.BatchNorm2d):
            nn.init.uniform_(layer.running_mean, -1, 1)
    return net.eval()


def pooled_to(size):
    return nn.AdaptiveAvgPool2d(size), nn.Flatten(), nn.Linear(16 * size * size, 10)


def picture(batch, height, width):
    return (torch.randn(batch, 3, height, width),)


# %%
# What goes wrong: AdaptiveAvgPool2d(3)
# -------------------------------------
# One head pools each channel to 1 × 1, and the other to 3 × 3. Eager supports both for all these image sizes. The samples include
# non-square images, odd sizes, and a batch of one:

exporters = ("dynamo", "to_onnx")
# sphinx_gallery_start_answer
free = ({0: "batch", 2: "height", 3: "width"},)
# sphinx_gallery_end_answer
samples = [picture(*sizes) for sizes in ((2, 16, 20), (3, 24, 17), (1, 9, 32))]
heads = {"pooled to 1 × 1": pooled_to(1), "pooled to 3 × 3": pooled_to(3)}
compared = {
    head: compare(convnet(*layers), samples, dynamic_shapes=free, exporters=exporters)
    for head, layers in heads.items()
}
assert set(compared["pooled to 1 × 1"].outcomes().values()) == {"ok"}
assert compared["pooled to 3 × 3"].outcomes() == {"dynamo": "frozen", "to_onnx": "ok"}
compared["pooled to 3 × 3"]

# %%
# Why: pooling windows that depend on the image size
# --------------------------------------------------
# A mean over the whole image is a single node for every size. But ONNX has no node for pooling windows whose size depends on the image.
# ``torch.onnx.export`` ("dynamo") therefore writes the windows of the example, although its model declares *height* and *width* as dynamic.
# That's why the model is ``frozen``: right at the size of the export, and wrong at others. ``to_onnx`` computes the windows:

show.table(
    [
        {
            "head": head,
            **{e: attempt.artifact.ops().total() for e, attempt in result.attempts.items()},
        }
        for head, result in compared.items()
    ]
)

# %%
# What works: global pooling
# --------------------------
# Replace the linear layer by a 1 × 1 convolution, followed by a global mean. Both exporters keep this head dynamic. If you have trained
# weights for 3 × 3, use ``to_onnx``, or export for one size.

# sphinx_gallery_start_answer
convolved = convnet(nn.Conv2d(16, 10, 1), nn.AdaptiveAvgPool2d(1), nn.Flatten())
for exporter in exporters:
    file = export(exporter, convolved, samples[0], dynamic_shapes=free)
    verify(file, convolved, samples).check()
# sphinx_gallery_end_answer

# %%
# Export without eval()
# ---------------------
# In training mode, batch norm uses the mean of the batch and updates its statistics. If you forget ``eval()``, ``exportlab.export`` calls
# it for the export and prints a warning:

net = convnet(*pooled_to(1))
training = convnet(*pooled_to(1)).train()
with heard() as messages:
    file = export("dynamo", training, samples[0], dynamic_shapes=free)
print(messages[0])
assert training.training
verify(file, net, samples).check()

# %%
# With ``train=True``, the net is exported in training mode. ``to_onnx`` refuses it, because an ONNX model can't update its own
# statistics.

with expect_failure(MutationError, match="the model changes 1.running_mean"):
    export("to_onnx", training, samples[0], dynamic_shapes=free, train=True)

# %%
# ``torch.onnx.export`` emits a warning and exports the net in evaluation mode. The result is wrong for the net in training mode, and
# right for the net after ``eval()``:

with heard() as messages:
    file = export("dynamo", training, samples[0], dynamic_shapes=free, train=True)
assert any("Exporting a model while it is in training mode" in line for line in messages)
assert verify(file, training, samples).outcome == "wrong"
verify(file, net, samples).check()

# %%
# Call ``eval()`` before you export, so that the mode is clear. Both exporters fold the batch norms into the preceding convolutions:

pooled = compared["pooled to 1 × 1"]
files = {"torch.onnx.export": pooled["dynamo"].artifact, "to_onnx": pooled["to_onnx"].artifact}
assert not any(file.ops()["BatchNormalization"] for file in files.values())
show.graphs(files)

# %%
# Next: :doc:`ViT for other image sizes <model_vit>`, or :doc:`batch size one and zero, in an MLP <model_mlp>`.
