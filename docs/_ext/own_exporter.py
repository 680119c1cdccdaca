"""Add a box to pages that compare exporters: it discloses that `to_onnx` belongs to this site, and how the comparison is kept fair."""

from __future__ import annotations

from docutils import nodes
from docutils.parsers.rst import Directive
from sphinx.application import Sphinx

OURS = "to_onnx"
SAID = (
    " is this site's own exporter. We test all exporters with the same models and inputs, and compare their results with eager mode. "
    "Wrong models are not timed. Times are measured alternately on one machine, and a test computes each headline a second time. "
    "One advantage remains: we fixed to_onnx where this site showed it to be wrong or slow, but not the other exporters. "
    "In commands and records, dynamo is torch.onnx.export, and torchscript is the legacy exporter (dynamo=False)."
)


def setup(app: Sphinx) -> dict[str, bool]:
    """Add the directive `own-exporter`."""
    app.add_directive("own-exporter", OwnExporter)
    return {"parallel_read_safe": True}


def box() -> nodes.note:
    """Return the box."""
    words = nodes.paragraph("", "", nodes.literal("", OURS), nodes.Text(SAID))
    return nodes.note("", words, classes=["own-exporter"])


class OwnExporter(Directive):
    """Insert the box."""

    def run(self) -> list[nodes.Node]:
        """Return the nodes of the box."""
        return [box()]
