"""
Which exporter is fastest for my own model?
===========================================

You get one table for a model of your own: export time, memory, file size and the time of a call by batch, each beside the outcome of
``verify``, so that no wrong file is called fast.
"""

import torch
from torch import nn

from exportlab import bench

# %%
# The model is no ``nn.Sequential``: it takes token ids and a mask, and cuts long texts only where the batch is large.


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
# A file that is fast and wrong
# -----------------------------
# Each exporter works in a process of its own, under a time limit. The calls of its file are timed in turns with eager's, so both meet
# the same machine. Two rounds are quick, and too few to compare anything closely: take five or more for yours.

found = bench(
    model, (ids, mask), sizes={"batch": (2, 8)}, exporters=("to_onnx", "torchscript"), rounds=2
)
found

# %%
# Tracing kept the branch of its example, so its file is wrong for eight rows. The time is shown, and takes no part in the ranking:

outcomes = {name: str(way.outcome) for name, way in found.ways().items()}
assert outcomes == {"eager": "ok", "to_onnx": "ok", "torchscript": "frozen"}
print("\n".join(found.findings()))

# %%
# The picture
# -----------
# Of the files that are right, a call in calls of eager. The line at 1 is eager itself; a point is a round.

from exportlab.measure.figures import dots, panels

right = [way for way in found.ways().values() if way.ranked and way.name != "eager"]
(axes,) = panels("A call, in calls of eager (lower is faster)", height=2.4)
dots(axes, {size: {way.name: way.ratio(size) for way in right} for size in found.sizes()})

# %%
# From the command line
# ---------------------
# ``exportlab bench mymodel.py:build --batches 1,8,64`` does the same with a function that returns ``(model, args)``, with
# ``torch.onnx.export`` beside them and five rounds. It writes a folder: ``report.html``, every figure as PNG and SVG, ``times.csv``, and
# ``pyperf.json``. Ctrl-C leaves what was measured, and the same command goes on. ``--runtimes torch.compile,openvino`` adds what else
# runs it, ``--sizes seq=16,128`` moves another dimension of a ``@case``.
#
# ``bench(…, output="folder")`` writes that folder from here.

# %%
# Read each time next to its outcome: fix what is wrong before you compare what is fast. Next: :doc:`the doctor </docs/doctor>`.
