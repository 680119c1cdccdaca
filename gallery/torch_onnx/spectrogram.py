"""
Can the file compute the spectrogram, too?
==========================================

A speech model takes log-mel features: frames of 400 samples, their Fourier transform, a filter bank. Usually a library outside the model
computes them. You will see which exporters put them into the file, how exact and how fast each file is, why a Fourier transform can be slow
and inaccurate in ONNX Runtime, and one way to write it that suits every exporter.

``to_onnx`` is this site's own exporter, so check what is said of it here on a model of your own.
"""

import math
import timeit

import torch
from torch import nn

from exportlab import compare, export, show, verify

# %%
# The model: the magnitudes of ``torch.stft``, as Whisper takes them of sound with 16,000 samples a second.

FRAME, STEP = 400, 160


class Spectrogram(nn.Module):
    def __init__(self, frame=FRAME):
        super().__init__()
        self.register_buffer("window", torch.hann_window(frame))

    def forward(self, x):
        frames = torch.stft(x, len(self.window), STEP, window=self.window, return_complex=True)
        return frames.abs()


torch.manual_seed(0)
model = Spectrogram().eval()
samples = [(torch.randn(n, 16_000) / 10,) for n in (2, 3, 1)]
batch = ({0: "batch"},)

# %%
# What goes wrong
# ---------------
# ``torchscript`` refuses complex numbers. ``torch.onnx.export`` writes a file, which ``verify`` does not call right:

exporters = ("torch.export", "dynamo", "torchscript", "openvino", "to_onnx")
compared = compare(model, samples, dynamic_shapes=batch, exporters=exporters)
assert compared.outcomes() == {
    "torch.export": "ok",
    "dynamo": "wrong",
    "torchscript": "convert",
    "openvino": "ok",
    "to_onnx": "ok",
}
compared

# %%
# How far off is it? Hold each file against the model in float64, and time a call:

exact = Spectrogram().double()(samples[0][0].double())


def off(found):
    return float((found - exact).abs().max() / exact.max())


def milliseconds(call):
    call()
    return min(timeit.repeat(call, number=5, repeat=5)) / 5 * 1e3


def row(name, call):
    print(f"{name:16} {off(call()):8.1e} {milliseconds(call):7.1f} ms")
    return off(call())


x = samples[0][0]
official = export("dynamo", model, (x,), dynamic_shapes=batch)
own = export("to_onnx", model, (x,), dynamic_shapes=batch)
openvino = export("openvino", model, (x,), dynamic_shapes=batch)
eager_off = row("eager", lambda: model(x))
official_off = row("torch.onnx.export", lambda: official(x))
own_off = row("to_onnx", lambda: own(x))
openvino_off = row("OpenVINO", lambda: openvino(x))
assert official_off > 5e-6 > 1e-6 > max(eager_off, own_off, openvino_off)

# %%
# Why
# ---
# ``torch.onnx.export`` writes what ONNX has for it: an operator ``STFT``.

ops = [node.op_type for node in official.model.graph]
assert "STFT" in ops
print(ops)

# %%
# ONNX Runtime computes that fast and exactly where a frame has a power of two of samples, as 512. With 400, it goes another way, which takes
# longer and rounds more. And the length of your frames is that of the training.

two = Spectrogram(512).eval()
exact_of_512 = Spectrogram(512).double()(x.double())
of_512 = export("dynamo", two, (x,), dynamic_shapes=batch)
off_512 = float((of_512(x) - exact_of_512).abs().max() / exact_of_512.max())
print(f"{off_512:.1e}", f"{milliseconds(lambda: of_512(x)):.1f} ms")
assert off_512 < official_off / 2

# %%
# What works: products
# --------------------
# A Fourier transform of one frame is a product with a matrix of cosines and sines. For a few hundred samples that costs little. ``to_onnx``
# writes it so: the waves times the window are the kernels of one convolution, which goes over the signal in steps.

assert "Conv" in [node.op_type for node in own.model.graph]
show.graphs({"torch.onnx.export": official, "to_onnx": own})

# %%
# You can write the same in your model. Then there is no complex number in it, and every exporter gets it right:


class ByConvolution(nn.Module):
    def __init__(self):
        super().__init__()
        turns = torch.outer(torch.arange(FRAME // 2 + 1), torch.arange(FRAME))
        angles = turns.remainder(FRAME).double() * (2 * math.pi / FRAME)
        waves = torch.cat([angles.cos(), -angles.sin()]) * torch.hann_window(FRAME)
        self.register_buffer("waves", waves.float()[:, None])  # (402, 1, 400)

    def forward(self, x):
        padded = nn.functional.pad(x[:, None], (FRAME // 2, FRAME // 2), mode="reflect")
        real, imag = nn.functional.conv1d(padded, self.waves, stride=STEP).chunk(2, 1)
        return (real.square() + imag.square()).sqrt()


rewritten = ByConvolution().eval()
torch.testing.assert_close(rewritten(x), model(x), rtol=1e-4, atol=1e-4)
names = {"dynamo": "torch.onnx.export", "to_onnx": "to_onnx", "openvino": "OpenVINO"}
for exporter, name in names.items():
    file = export(exporter, rewritten, (x,), dynamic_shapes=batch)
    verify(file, rewritten, samples).check()
    assert row(name, lambda file=file: file(x)) < 1e-6

# %%
# So yes: write the spectrogram as a convolution, and any exporter will do. With ``torch.stft``, take OpenVINO or ``to_onnx``, or verify the
# file. :doc:`/tutorials/205_where_numbers_part` finds where a file is off.
