"""
How do I export torch.stft (a spectrogram) to ONNX?
===================================================

Write the spectrogram as a convolution. For ``torch.stft`` itself, use OpenVINO or ``to_onnx``, and verify the result.

Include the spectrogram of a speech model in the ONNX model, instead of computing it in a separate library. This recipe compares the
accuracy and speed of the exporters for ``torch.stft``. It explains why the ONNX operator ``STFT`` can be slow and inaccurate in ONNX
Runtime, and replaces it with a convolution.
"""

import math
import timeit

import torch
from torch import nn

from exportlab import compare, export, show, verify

# %%
# The model computes the magnitudes of ``torch.stft`` as Whisper uses them, for audio with 16,000 samples per second.

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
# What goes wrong: inaccurate results from torch.onnx.export
# ----------------------------------------------------------
# The legacy exporter ("torchscript") doesn't support complex numbers, so the conversion fails. ``torch.onnx.export`` ("dynamo") writes a
# model that is ``wrong``, because its results are outside the tolerance of ``verify``:

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
# Measure the error of each model against float64, and the time of a call:

exact = Spectrogram().double()(samples[0][0].double())


def relative_error(output):
    return float((output - exact).abs().max() / exact.max())


def milliseconds(call):
    call()
    return min(timeit.repeat(call, number=5, repeat=5)) / 5 * 1e3


def row(name, call):
    print(f"{name:16} {relative_error(call()):8.1e} {milliseconds(call):7.1f} ms")
    return relative_error(call())


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
# Why: the STFT operator
# ----------------------
# ``torch.onnx.export`` writes the ONNX operator for this computation, ``STFT``.

ops = [node.op_type for node in official.model.graph]
assert "STFT" in ops
print(ops)

# %%
# ONNX Runtime computes it fast and accurately if the frame length is a power of two, such as 512. For 400 it uses another algorithm,
# which is slower and less accurate. You can't change the frame length of a trained model.

two = Spectrogram(512).eval()
exact_of_512 = Spectrogram(512).double()(x.double())
of_512 = export("dynamo", two, (x,), dynamic_shapes=batch)
off_512 = float((of_512(x) - exact_of_512).abs().max() / exact_of_512.max())
print(f"{off_512:.1e}", f"{milliseconds(lambda: of_512(x)):.1f} ms")
assert off_512 < official_off / 2

# %%
# How to_onnx exports torch.stft
# ------------------------------
# The Fourier transform of a frame is a product with a matrix of cosines and sines, which is cheap for a few hundred samples. ``to_onnx``
# writes it as a convolution, whose kernels are the waves multiplied by the window.

assert "Conv" in [node.op_type for node in own.model.graph]
show.graphs({"torch.onnx.export": official, "to_onnx": own})

# %%
# What works: a convolution in the model
# --------------------------------------
# Write the same convolution in your model. It has no complex numbers, and all three exporters below are accurate:


class ByConvolution(nn.Module):
    def __init__(self):
        super().__init__()
        cycles = torch.outer(torch.arange(FRAME // 2 + 1), torch.arange(FRAME))
        angles = cycles.remainder(FRAME).double() * (2 * math.pi / FRAME)
        # sphinx_gallery_start_answer
        waves = torch.cat([angles.cos(), -angles.sin()]) * torch.hann_window(FRAME)
        self.register_buffer("waves", waves.float()[:, None])  # (402, 1, 400)
        # sphinx_gallery_end_answer

    def forward(self, x):
        # sphinx_gallery_start_answer
        padded = nn.functional.pad(x[:, None], (FRAME // 2, FRAME // 2), mode="reflect")
        real, imag = nn.functional.conv1d(padded, self.waves, stride=STEP).chunk(2, 1)
        return (real.square() + imag.square()).sqrt()
        # sphinx_gallery_end_answer


rewritten = ByConvolution().eval()
torch.testing.assert_close(rewritten(x), model(x), rtol=1e-4, atol=1e-4)
names = {"dynamo": "torch.onnx.export", "to_onnx": "to_onnx", "openvino": "OpenVINO"}
for exporter, name in names.items():
    file = export(exporter, rewritten, (x,), dynamic_shapes=batch)
    verify(file, rewritten, samples).check()
    assert row(name, lambda file=file: file(x)) < 1e-6

# %%
# Next: :doc:`debugging numerical differences </tutorials/205_where_numbers_part>`.
