"""
Whisper to ONNX: why does the encoder require 3000 frames?
==========================================================

The encoder has a fixed number of position embeddings, for 30 seconds of audio. For other lengths, change the model to use the first
embeddings.

The Whisper encoder accepts exactly thirty seconds of audio, and so do its exports. This recipe shows where the number comes from, and
exports the encoder with a dynamic batch size. It then exports a changed encoder for shorter audio, measures what that saves, and explains
why its output differs.
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
# Thirty seconds are 3000 frames. Two convolutions reduce them to 1500 steps, which is the number of position embeddings:

defaults = WhisperConfig()
assert defaults.max_source_positions == 1500
assert defaults.num_mel_bins == 80

# %%
# This small encoder has two layers, random weights, 24 frames and 12 positions:

torch.manual_seed(0)
sizes = {"d_model": 32, "encoder_layers": 2, "encoder_attention_heads": 4, "encoder_ffn_dim": 48}
config = WhisperConfig(**sizes, max_source_positions=12, num_mel_bins=8, init_std=0.3)
encoder = WhisperEncoder(config).eval()


def sound(batch, frames):
    return (torch.randn(batch, config.num_mel_bins, frames),)


# %%
# What goes wrong: a dynamic number of frames
# -------------------------------------------
# Eager rejects shorter audio, and both exporters refuse a dynamic length:

with expect_failure(ValueError, match="expects the mel input features to be of length 24"):
    encoder(*sound(1, 18))
exporters = ("dynamo", "to_onnx")
whole = [sound(2, 24), sound(3, 24), sound(1, 24)]
free = ({0: "batch", 2: "frames"},)
refused = compare(encoder, whole, dynamic_shapes=free, exporters=exporters)
assert set(refused.outcomes().values()) == {"capture"}
refused

# %%
# The refusal is correct. The encoder checks that the length is 24, and then adds all 12 positions.
#
# What works: a dynamic batch size
# --------------------------------
# Keep the length static, and pad short audio before you call the ONNX model, as the feature extractor of transformers does:

compared = compare(encoder, whole, dynamic_shapes=({0: "batch"},), exporters=exporters)
assert set(compared.outcomes().values()) == {"ok"}
compared

# %%
# The encoder has no mask, so it attends to padding as to any audio. Padded audio costs as much as thirty seconds of speech.
#
# Export an encoder for shorter audio
# -----------------------------------
# This wrapper uses the same layers and weights, without the length check. It adds only the first positions:


class AnyLength(nn.Module):
    def __init__(self, encoder):
        super().__init__()
        self.encoder = encoder

    # sphinx_gallery_start_answer
    def forward(self, input_features):
        hidden = F.gelu(self.encoder.conv1(input_features))
        hidden = F.gelu(self.encoder.conv2(hidden)).transpose(1, 2)
        hidden = hidden + self.encoder.embed_positions.weight[: hidden.shape[1]]
        for layer in self.encoder.layers:
            hidden = layer(hidden, None)
        return self.encoder.layer_norm(hidden)

    # sphinx_gallery_end_answer


# %%
# For full-length audio it matches the encoder. The length is now dynamic, down to one frame:

shorter = AnyLength(encoder).eval()
torch.testing.assert_close(shorter(*whole[0]), encoder(*whole[0]).last_hidden_state)
samples = [sound(2, 18), *whole, sound(1, 23), sound(4, 11), sound(1, 10), sound(1, 1)]
compared = compare(shorter, samples, dynamic_shapes=free, exporters=exporters)
assert set(compared.outcomes().values()) == {"ok"}
show.summary(compared["to_onnx"].artifact)

# %%
# The second convolution has a stride of two, so 23 frames and 24 frames both give 12 output steps. More than 24 frames have no positions.
# The ONNX model then fails at the addition, with an error that doesn't mention frames. Check the length before you call it:

for attempt in compared.attempts.values():
    with expect_failure(onnxruntime.capi.onnxruntime_pybind11_state.Fail, match="Add", lines=1):
        attempt.artifact(*sound(1, 26))

# %%
# The output differs from the padded encoder
# ------------------------------------------
# Without padding, attention sees fewer steps, so the output for the same audio changes:

(short,) = sound(1, 10)
padded = encoder(F.pad(short, (0, 14))).last_hidden_state[:, :5]
assert (padded - shorter(short)).abs().max() > 0.1

# %%
# Whisper was trained on padded audio. Measure the effect on the transcription with your own recordings before you use this model.
#
# Measure the savings
# -------------------
# The plot shows the number of multiplications by audio length, counted in eager for these small sizes:


def multiplications(model, frames):
    with FlopCounterMode(display=False) as counter, sdpa_kernel(SDPBackend.MATH):
        model(*sound(1, frames))
    return counter.get_total_flops() // 2


lengths = range(1, 25)
costs = [multiplications(shorter, frames) for frames in lengths]
full_cost = multiplications(encoder, 24)
assert costs[-1] == full_cost
assert costs[11] < 0.6 * full_cost

figure, axes = plt.subplots(figsize=(6.4, 3), layout="constrained")
axes.axhline(full_cost, color="#D55E00", label="padded to 24 frames")
axes.step(lengths, costs, where="mid", color="#0072B2", label="without padding")
axes.set(xlabel="frames of audio", ylabel="multiplications", ylim=(0, None))
axes.set_title("With padding, one frame costs as much as 24")
axes.legend(frameon=False, loc="lower right")
axes.spines[["top", "right"]].set_visible(False)
plt.show()

# %%
# Next: :doc:`the cache of a Llama <model_llama>`.
