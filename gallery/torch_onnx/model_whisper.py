"""
Whisper: why does the encoder insist on 3000 frames?
====================================================

The encoder of Whisper takes thirty seconds of sound, never less, and so do its exports. You will see where the number comes from, which axis
does move, and how to get a file for shorter sounds: what that saves, and why it is not the same model.

``to_onnx`` is this site's own exporter, so check what is said of it here on a model of your own.
"""

import matplotlib.pyplot as plt
import onnxruntime
import torch
from torch import nn
from torch.nn import functional as F
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.utils.flop_counter import FlopCounterMode

from exportlab import compare, expect_failure, show
from exportlab.messages import muffled

with muffled():  # it says that it has no progress bar
    from transformers import WhisperConfig
    from transformers.models.whisper.modeling_whisper import WhisperEncoder

# %%
# Thirty seconds make 3000 frames. Two convolutions turn them into 1500 places, as many as there are positions:

defaults = WhisperConfig()
assert defaults.max_source_positions == 1500
assert defaults.num_mel_bins == 80

# %%
# This one has two layers, random weights, 24 frames and 12 positions:

torch.manual_seed(0)
sizes = {"d_model": 32, "encoder_layers": 2, "encoder_attention_heads": 4, "encoder_ffn_dim": 48}
config = WhisperConfig(**sizes, max_source_positions=12, num_mel_bins=8, init_std=0.3)
encoder = WhisperEncoder(config).eval()


def sound(batch, frames):
    return (torch.randn(batch, config.num_mel_bins, frames),)


# %%
# What goes wrong
# ---------------
# A shorter sound is refused by eager, and a moving length by both exporters:

with expect_failure(ValueError, match="expects the mel input features to be of length 24"):
    encoder(*sound(1, 18))
exporters = ("dynamo", "to_onnx")
whole = [sound(2, 24), sound(3, 24), sound(1, 24)]
free = ({0: "batch", 2: "frames"},)
refused = compare(encoder, whole, dynamic_shapes=free, exporters=exporters)
assert set(refused.outcomes().values()) == {"capture"}
refused

# %%
# They are right. The encoder asks whether the length is 24, and then adds all 12 positions.
#
# What works: move the batch alone
# --------------------------------
# Keep the length, and fill up short sounds before the file, as the library's feature extractor does:

compared = compare(encoder, whole, dynamic_shapes=({0: "batch"},), exporters=exporters)
assert set(compared.outcomes().values()) == {"ok"}
compared

# %%
# There is no mask: the encoder attends to the silence as to any sound. And that costs as much as thirty seconds of speech.
#
# What works too: positions as far as the sound goes
# --------------------------------------------------
# The same layers and the same weights, without the check, and with the first positions only:


class AsLongAsItIs(nn.Module):
    def __init__(self, encoder):
        super().__init__()
        self.encoder = encoder

    def forward(self, input_features):
        places = F.gelu(self.encoder.conv1(input_features))
        places = F.gelu(self.encoder.conv2(places)).transpose(1, 2)
        places = places + self.encoder.embed_positions.weight[: places.shape[1]]
        for layer in self.encoder.layers:
            places = layer(places, None)
        return self.encoder.layer_norm(places)


# %%
# On whole sounds it is the encoder. Now the length moves, down to one frame:

shorter = AsLongAsItIs(encoder).eval()
torch.testing.assert_close(shorter(*whole[0]), encoder(*whole[0]).last_hidden_state)
samples = [sound(2, 18), *whole, sound(1, 23), sound(4, 11), sound(1, 10), sound(1, 1)]
compared = compare(shorter, samples, dynamic_shapes=free, exporters=exporters)
assert set(compared.outcomes().values()) == {"ok"}
show.summary(compared["to_onnx"].artifact)

# %%
# Read the output: the second convolution takes every other frame, so 23 frames and 24 make 12 places. What is more than 24 has no position.
# The file fails at the addition, and says nothing of frames. Check the length before you call:

for attempt in compared.attempts.values():
    with expect_failure(onnxruntime.capi.onnxruntime_pybind11_state.Fail, match="Add", lines=1):
        attempt.artifact(*sound(1, 26))

# %%
# Not the same model
# ------------------
# With the silence left out, attention sees fewer places, and the answer for the sound itself is another one:

(short,) = sound(1, 10)
filled = encoder(F.pad(short, (0, 14))).last_hidden_state[:, :5]
assert (filled - shorter(short)).abs().max() > 0.1

# %%
# Whisper was trained on filled sounds. Measure on your own recordings what this does to the text, before you ship it.
#
# What it saves
# -------------
# Multiplications by the length of the sound, counted in eager, for these tiny sizes:


def multiplications(model, frames):
    with FlopCounterMode(display=False) as counter, sdpa_kernel(SDPBackend.MATH):
        model(*sound(1, frames))
    return counter.get_total_flops() // 2


lengths = range(1, 25)
costs = [multiplications(shorter, frames) for frames in lengths]
always = multiplications(encoder, 24)
assert costs[-1] == always
assert costs[11] < 0.6 * always

figure, axes = plt.subplots(figsize=(6.4, 3), layout="constrained")
axes.axhline(always, color="#D55E00", label="filled up to 24 frames")
axes.step(lengths, costs, where="mid", color="#0072B2", label="as long as it is")
axes.set(xlabel="frames of sound", ylabel="multiplications", ylim=(0, None))
axes.set_title("Filled up to 24 frames, one frame costs as much as 24")
axes.legend(frameon=False, loc="lower right")
axes.spines[["top", "right"]].set_visible(False)
plt.show()

# %%
# If a model insists on one length, so does its export; for other lengths, change the model, and say that you did. Next: :doc:`the cache
# of a Llama <model_llama>`.
