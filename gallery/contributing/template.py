"""
How do I write a recipe?
========================

Copy this template, replace the model, and write the answer below the title. Mark three to eight lines that a reader can copy.

Use a title that a reader would type into a search box, with the API name in it. The first paragraph tells readers what they get: here, a
template to copy.
"""

import torch
from torch import nn

from exportlab import compare, expect_failure, export, show, verify

# %%
# Define the model in 5–15 lines, seeded and in evaluation mode.


class Scale(nn.Module):
    def forward(self, x):
        return 2 * x


model = Scale().eval()
four, seven = torch.randn(4, 3), torch.randn(7, 3)

# %%
# What goes wrong: a static batch size
# ------------------------------------
# Show the failing code first, if there is any. ``expect_failure`` fails if the block raises no exception, so the page can't become
# outdated:

static = export("torch.export", model, (four,))
with expect_failure(AssertionError, match="Guard failed"):
    static(seven)

# %%
# Why the batch size is static
# ----------------------------
# Explain the cause in one or two sentences, so that the reader can guess the solution.
#
# What works: dynamic_shapes
# --------------------------
# Compare the exporters, at a size that the export never saw:

compared = compare(model, [(four,), (seven,)], dynamic_shapes=({0: "batch"},))
assert set(compared.outcomes().values()) == {"ok"}
compared

# %%
# Add a check that can fail, for both ``torch.onnx.export`` and ``to_onnx``. The last figure becomes the thumbnail:

# sphinx_gallery_start_answer
for exporter in ("dynamo", "to_onnx"):
    program = export(exporter, model, (four,), dynamic_shapes=({0: "batch"},))
    verify(program, model, [(four,), (seven,)]).check()
# sphinx_gallery_end_answer
show.graph(program)

# %%
# Next: :doc:`all recipes </generated/gallery/index>`.
