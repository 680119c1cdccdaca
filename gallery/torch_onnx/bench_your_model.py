"""
How do I benchmark ONNX exporters on my own model?
==================================================

Call ``exportlab.bench`` with your model and the sizes you need. Read each time together with its outcome, and fix wrong models before you
compare speed.

Use ``exportlab.bench`` to measure export time, memory, file size and latency by batch size for your own model. The table also contains
the outcome of ``verify``, and models with wrong results are not ranked.
"""

import torch
from torch import nn

from exportlab import bench

# %%
# The example model accepts token ids and a mask, and truncates long texts only for large batches.


class Reader(nn.Module):
    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(100, 64)
        self.mix = nn.Linear(64, 64)
        self.head = nn.Linear(64, 5)

    def forward(self, ids, mask):
        x = self.embed(ids)
        x = x + self.mix(x).tanh()
        kept = mask.unsqueeze(-1).to(x.dtype)
        if ids.shape[0] > 4:
            kept = kept[:, :8]
            x = x[:, :8]
        return self.head((x * kept).sum(1) / kept.sum(1))


torch.manual_seed(0)
model = Reader().eval()
ids, mask = torch.randint(0, 100, (2, 16)), torch.ones(2, 16, dtype=torch.int64)

# %%
# Run bench
# ---------
# Each exporter runs in its own process, with a time limit. The calls of the exported model alternate with calls of eager, so both see the
# same machine load. Two rounds are fast, but too few for a close comparison: use five or more for your model.

# sphinx_gallery_start_answer
benchmark = bench(
    model, (ids, mask), sizes={"batch": (2, 8)}, exporters=("to_onnx", "torchscript"), rounds=2
)
# sphinx_gallery_end_answer
benchmark

# %%
# The legacy exporter ("torchscript") traced the branch of its example, so its model is right for the example and wrong for eight rows. This
# outcome is called ``frozen``. The table shows the model's time, but the ranking ignores it:

outcomes = {name: str(way.outcome) for name, way in benchmark.ways().items()}
assert outcomes == {"eager": "ok", "to_onnx": "ok", "torchscript": "frozen"}
# sphinx_gallery_start_answer
print("\n".join(benchmark.findings()))
# sphinx_gallery_end_answer

# %%
# Plot the latency relative to eager
# ----------------------------------
# The plot shows the time of a call relative to eager, for the models that are right. The line at 1 is eager, and each point is a round.

from exportlab.measure.figures import dots, panels

right = [way for way in benchmark.ways().values() if way.ranked and way.name != "eager"]
(axes,) = panels("Time of a call relative to eager (lower is faster)", height=2.4)
dots(axes, {size: {way.name: way.ratio(size) for way in right} for size in benchmark.sizes()})

# %%
# Run exportlab bench from the command line
# -----------------------------------------
# ``exportlab bench mymodel.py:build --batches 1,8,64`` does the same for a function that returns ``(model, args)``. It includes
# ``torch.onnx.export`` and runs five rounds. It writes a folder with ``report.html``, each figure as PNG and SVG, ``times.csv``, and
# ``pyperf.json``. If you stop it with Ctrl-C, the same command continues from the stored measurements. ``--runtimes
# torch.compile,openvino`` adds runtimes, and ``--sizes seq=16,128`` changes another dimension of a ``@case``.
#
# To write the same folder from Python, use ``bench(…, output="folder")``.

# %%
# Next: :doc:`the doctor </docs/doctor>`.
