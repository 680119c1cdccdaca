"""
What does torch.onnx.export(report=True) tell me?
=================================================

The report lists the steps of the export and the operators without a translation. It shows how far the export got, not whether the model is
right.

``torch.onnx.export(..., report=True)`` writes a Markdown report, whether the export fails or not. This recipe reads the reports of four
exports, finds information that the error message lacks, and shows which check marks are misleading.
"""

import re
import tempfile
from pathlib import Path

import matplotlib.pyplot as plt
import onnx
import torch
from torch import nn

from exportlab import expect_failure, show, to_onnx, verify
from exportlab.messages import heard
from fx2onnx.errors import UnsupportedOps

# %%
# Two operators of this model have no translation. The error names one of them:


class Spread(nn.Module):
    def __init__(self):
        super().__init__()
        self.linear = nn.Linear(8, 4)

    def forward(self, x):
        y = self.linear(x).unflatten(1, (2, 2))
        return torch.linalg.svdvals(y), torch.cdist(y, y, p=3.0)


# sphinx_gallery_start_answer
def export(model, **options):
    shapes = ({0: "batch"},)
    return torch.onnx.export(
        model.eval(), (six,), dynamic_shapes=shapes, dynamo=True, verbose=False, **options
    )


# sphinx_gallery_end_answer


torch.manual_seed(0)
six, three = torch.randn(6, 8), torch.randn(3, 8)
with expect_failure(torch.onnx.OnnxExporterError, match="_linalg_svd", lines=1):
    export(Spread())

# %%
# Find the report
# ---------------
# The report is a Markdown file in ``artifacts_dir``, by default the current folder. Its name ends with the result of the export, after
# the time:


def reported(model, **options):
    """Return the end of the name, the report, and the program or the error."""
    with tempfile.TemporaryDirectory() as folder, heard():
        try:
            # sphinx_gallery_start_answer
            result = export(model, report=True, artifacts_dir=folder, **options)
            # sphinx_gallery_end_answer
        except torch.onnx.OnnxExporterError as error:
            result = error
        (page,) = Path(folder).iterdir()
        return re.sub(r"^onnx_export_[\d_-]+_", "", page.stem), page.read_text(), result


end, page, error = reported(Spread())
assert end == "conversion"
show.table(
    [{"heading": h} for h in re.findall(r"^#+ (.*)$", page, re.MULTILINE) if "File" not in h]
)

# %%
# Find all missing operators
# --------------------------
# *ONNX Conversion Information* covers the whole graph. It lists both operators, with their nodes:

missing = re.findall(r"^- `(aten\S+)`:     (.*?)\. Example node", page, re.MULTILINE)
assert [op for op, _ in missing] == ["aten._linalg_svd.default", "aten._cdist_forward.default"]
assert "_cdist_forward" not in str(error)
show.table([{"operator": op, "why": why} for op, why in missing])

# %%
# These are not the operators that you called, because the graph was decomposed before the translation. *Decomposition comparison* lists
# the names before and after:

before, after = re.findall(r"Ops exist only in the ExportedProgram .*?: `\[(.*)\]`", page)
assert "aten.linalg_svdvals.default" in before
assert "aten._linalg_svd.default" in after
show.table([{"only before": before.replace("'", ""), "only after": after.replace("'", "")}])

# %%
# ``to_onnx`` also has ``report=True``. Its error already lists all missing operators, and it supports ``cdist``:

with expect_failure(UnsupportedOps, match="linalg_svdvals", lines=2):
    to_onnx(Spread().eval(), (six,))

# %%
# Misleading check marks
# ----------------------
# The report starts with a list of steps. ``verify=True`` adds three: check, run and compare the model. We export three more models. One
# has an ``if`` on a value, one has an ``if`` on a size, and one has an output name that is already used.


class ByValue(nn.Module):
    def forward(self, x):
        return x if x.sum() > 0 else -x


class BySize(nn.Module):
    def forward(self, x):
        return x * 2 if x.shape[0] > 4 else x * 3


class Flipped(nn.Module):
    def forward(self, x):
        return x.softmax(-1).flip(0)


def steps(page):
    """Return each step with 'yes', 'no', or an empty string if it did not run."""
    marks = {"✅": "yes", "❌": "no", "⚪": ""}
    marked = re.findall(r"^([✅❌⚪]) (.*)$", page, re.MULTILINE)
    return {text.replace("Obtain model graph with ", ""): marks[mark] for mark, text in marked}


names = {"output_names": ["softmax"]}
pages = {
    "missing operator": (end, page, error),
    "if on a value": reported(ByValue(), verify=True),
    "if on a size": reported(BySize(), verify=True),
    "duplicate name": reported(Flipped(), verify=True, **names),
}
steps_of = {title: steps(text) for title, (_, text, _) in pages.items()}
assert [p[0] for p in pages.values()] == ["conversion", "pt_export", "success", "runtime"]
show.table([{"export": title, "end of the name": end} for title, (end, _, _) in pages.items()])

# %%
# *if on a size* has a check mark at every step, but its model is ``frozen``: right at the size of the export, and wrong at another. The
# report compares only the size of the example, for which the recorded branch is right. ``verify`` finds the fault at another size:

program = pages["if on a size"][2]
assert set(steps_of["if on a size"].values()) == {"yes", ""}
assert verify(program, BySize(), [(six,), (three,)]).outcome == "frozen"

# %%
# *duplicate name* has a check mark for ``onnx.checker``. If you run the checker yourself, it fails:

program = pages["duplicate name"][2]
assert steps_of["duplicate name"]["Run `onnx.checker` on the ONNX model"] == "yes"
with expect_failure(onnx.checker.ValidationError, match="softmax", lines=2):
    onnx.checker.check_model(program.model_proto)

# %%
# The exporter doesn't run the checker: in ``onnxscript``, this step is now a function that does nothing. ONNX Runtime rejected the model,
# but the export returned a program that doesn't run. Only the report mentions the rejection.

assert isinstance(program, torch.onnx.ONNXProgram)
assert steps_of["duplicate name"]["Execute the model with ONNX Runtime"] == "no"

# %%
# When the report helps
# ---------------------
# - ``pt_export``: the capture failed in both modes. The report contains both errors, and the exception the first.
# - ``conversion``: read *ONNX Conversion Information* for all missing operators.
# - ``runtime``, ``accuracy``: they are reported only with ``verify=True``, and only in the report.
# - ``success``: the model was converted and works at one size. Check other sizes with :doc:`verify </docs/outcomes>`.
#
# Attach the report to a bug report. Read it first, because it contains your source lines with their paths, and the values of small
# weights.

assert "in forward, code: y = self.linear(x).unflatten(1, (2, 2))" in page

# %%
# The figure summarises the four reports. Grey steps did not run:

colors = {"yes": show.OUTCOME_COLORS["ok"], "no": show.OUTCOME_COLORS["wrong"], "": "#DDDDDD"}
labels = [
    re.sub(r"`torch.export.export\(..., |\)?`", "", step) for step in steps_of["if on a size"]
]
figure, axes = plt.subplots(figsize=(7.6, 3.4), layout="constrained")
for x, marked in enumerate(steps_of.values()):
    for y, mark in enumerate(marked.values()):
        axes.add_patch(plt.Rectangle((x, y), 1, 1, fc=colors[mark], ec="white", lw=2))
        axes.text(x + 0.5, y + 0.5, mark, ha="center", va="center", fontsize=8)
axes.set(xlim=(0, len(steps_of)), ylim=(len(labels), 0))
figure.suptitle('"if on a size" passes every step, but its model is wrong')
axes.set_xticks([x + 0.5 for x in range(len(steps_of))], steps_of, fontsize=8)
axes.set_yticks([y + 0.5 for y in range(len(labels))], labels, fontsize=8)
axes.tick_params(length=0)
axes.spines[:].set_visible(False)
plt.show()

# %%
# Next: :doc:`an operator without a translation <untranslated_op>`.
