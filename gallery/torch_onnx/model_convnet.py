"""
Convnet: which layer fixes the size of my image?
================================================

Convolutions accept images of any size; the head of a convnet may not. You will export one net with three heads and a height and width that
move, and see which heads keep them moving in which exporter. Then you export the same net in training mode, and only one exporter objects.

``to_onnx`` is this site's own exporter, so check what is said of it here on a model of your own.
"""

import torch
from torch import nn

from exportlab import compare, expect_failure, export, show, verify
from exportlab.messages import heard
from fx2onnx.errors import MutationError

# %%
# Two convolutions with batch norm, whose statistics are those of some training, and a head:


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
# What goes wrong
# ---------------
# Pooled to one number for each channel, or to 3 × 3. Eager takes both at any size. The pictures are not square, of odd sizes, and one batch is
# a single picture:

exporters = ("dynamo", "to_onnx")
free = ({0: "batch", 2: "height", 3: "width"},)
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
# Why
# ---
# A mean over everything is one node for any size. Windows of a size that depends on the picture have no node in ONNX. The official exporter
# wrote the windows of the example, in a file that calls the axes *height* and *width*. ``to_onnx`` computes them:

show.table(
    [
        {
            "head": head,
            **{e: attempt.artifact.ops().total() for e, attempt in found.attempts.items()},
        }
        for head, found in compared.items()
    ]
)

# %%
# What works: pool to one, or leave out the windows
# -------------------------------------------------
# A convolution of 1 × 1 in place of the linear layer, then a mean over everything, is a head that all exporters keep. If the weights are given
# with 3 × 3, take the file of ``to_onnx``, or export for one size.

convolved = convnet(nn.Conv2d(16, 10, 1), nn.AdaptiveAvgPool2d(1), nn.Flatten())
for exporter in exporters:
    file = export(exporter, convolved, samples[0], dynamic_shapes=free)
    verify(file, convolved, samples).check()

# %%
# Without eval()
# --------------
# A batch norm in training takes the mean of the batch, and changes its own statistics. Somebody forgot to call ``eval()``. ``export`` does,
# for the file alone, and says so:

net = convnet(*pooled_to(1))
training = convnet(*pooled_to(1)).train()
with heard() as said:
    file = export("dynamo", training, samples[0], dynamic_shapes=free)
print(said[0])
assert training.training
verify(file, net, samples).check()

# %%
# With ``train=True`` the net is exported as it is. ``to_onnx`` refuses that: a file cannot change its own statistics.

with expect_failure(MutationError, match="the model changes 1.running_mean"):
    export("to_onnx", training, samples[0], dynamic_shapes=free, train=True)

# %%
# The official exporter warns, and writes something else than you gave it. It is wrong for the net in training, and right for the net after
# ``eval()``:

with heard() as said:
    file = export("dynamo", training, samples[0], dynamic_shapes=free, train=True)
assert any("Exporting a model while it is in training mode" in line for line in said)
assert verify(file, training, samples).outcome == "wrong"
verify(file, net, samples).check()

# %%
# Call ``eval()`` before an export, and there is nothing to guess. In either file, both batch norms have become part of the convolutions before
# them:

pooled = compared["pooled to 1 × 1"]
files = {"torch.onnx.export": pooled["dynamo"].artifact, "to_onnx": pooled["to_onnx"].artifact}
assert not any(file.ops()["BatchNormalization"] for file in files.values())
show.graphs(files)

# %%
# The head fixes the size of the image, not the convolutions; verify the file with an image that is not square. Next: :doc:`images of any
# size, in a ViT <model_vit>`, or :doc:`one row and none, in an MLP <model_mlp>`.
