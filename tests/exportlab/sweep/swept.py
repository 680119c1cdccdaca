"""A stored sweep, and reading the tables that are made of it."""

from __future__ import annotations

from html.parser import HTMLParser

from content import zoo
from exportlab.cases import Case
from exportlab.outcomes import Outcome
from exportlab.sweep.page.counts import Sweep
from exportlab.sweep.records import Record


def cases(*names: str) -> list[Case]:
    return [zoo.get(name) for name in names]


def sweep_of(*records: Record, onnxscript: str = "2") -> Sweep:
    return Sweep(records, [{"id": "e", "date": "2026-01-02 03:04:05", "onnxscript_version": onnxscript, "torch_version": "1"}])


RECORDS = (
    Record("mlp", "torch.export", "dynamic", Outcome.OK, seconds={"export": 0.2, "call": 2.0, "eager": 1.0}, nodes=7, worst=1e-7),
    Record("mlp", "to_onnx", "dynamic", Outcome.OK, seconds={"export": 0.3}),
    Record(
        "mlp",
        "dynamo",
        "dynamic",
        Outcome.WRONG,
        failed=({"check": "unseen size", "inputs": "float32[7]", "outcome": "wrong", "detail": "<b>"},),
    ),
    Record("branch_on_batch", "dynamo", "static", Outcome.OK),
    Record("branch_on_batch", "dynamo", "dynamic", Outcome.FROZEN),
    Record("branch_on_value", "dynamo", "dynamic", Outcome.CAPTURE, error="E: </script><!-- 1 < 2", where="content/zoo/branches.py:30"),
    Record("branch_on_value", "to_onnx", "dynamic", Outcome.CAPTURE),
    Record("branch_on_batch", "torchscript", "dynamic", Outcome.FROZEN, said=("UserWarning: this is old", "TracerWarning: <a> branch")),
    Record("mlp", "torchscript", "dynamic", Outcome.NARROW, said=("TracerWarning: a size",)),
)


class Rows(HTMLParser):
    """The rows of all tables of a text: of each cell its classes and its text."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.rows: list[list[tuple[str, str]]] = []
        self.open: list[str] = []
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        if tag == "tr":
            self.rows.append([])
        if tag in ("td", "th"):
            self.rows[-1].append((dict(attrs).get("class") or "", ""))
        if tag not in ("input", "wbr", "col"):
            self.open.append(tag)

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag, f"</{tag}> closes another tag"

    def handle_data(self, data: str) -> None:
        if self.rows and {"td", "th"} & set(self.open):
            classes, text = self.rows[-1][-1]
            self.rows[-1][-1] = classes, text + data
