"""What a hunt found: the shrunken program, what came of it, and the script that shows it with torch and the exporter only."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from ..files import written_whole
from .program import EXPORTED, UNSEEN, Program
from .trial import Trial

INTO = {
    "torch.export": "call = torch.export.export(Program(), inputs({rows}), dynamic_shapes=({{0: AUTO}}, {{0: AUTO}})).module()",
    "to_onnx": "call = run(to_onnx(Program(), inputs({rows}), dynamic_shapes=({{0: 'rows'}}, {{0: 'rows'}})))",
    "dynamo": "call = run(torch.onnx.export(Program(), inputs({rows}), dynamic_shapes=({{0: AUTO}}, {{0: AUTO}})))",
}
ANY = "call = export({exporter!r}, Program(), inputs({rows}), dynamic_shapes=({{0: AUTO}}, {{0: AUTO}}))"
WITHOUT_US = ("torch.export", "dynamo")
ENDS = "raise SystemExit(any(not difference < 1e-3 for difference in far.values()))\n"
HEAD = """import numpy
import onnxruntime
import torch
from torch import nn
from torch.nn import functional as F

AUTO = torch.export.Dim.AUTO


{program}

def inputs(rows):
    random = torch.Generator().manual_seed(rows)
    return torch.randn(rows, 4, generator=random), torch.randn(rows, 4, generator=random)


def run(program):
    program.save("program.onnx")
    session = onnxruntime.InferenceSession("program.onnx", providers=["CPUExecutionProvider"])
    names = [value.name for value in session.get_inputs()]
    return lambda *given: torch.from_numpy(session.run(None, dict(zip(names, [x.numpy() for x in given])))[0])
"""


@dataclass(frozen=True)
class Finding:
    """The smallest program that was found for a defect, and what came of it."""

    program: Program
    trial: Trial

    @property
    def exporter(self) -> str:
        """Whose defect it is."""
        return self.trial.exporter

    @property
    def name(self) -> str:
        """The exporter and the steps, as the name of a file."""
        return re.sub(r"\W+", "_", "_".join([self.exporter, *(step.name for step in self.program.steps)]))

    @property
    def script(self) -> str:
        """A script that prints, at each size, how far the export is off, and exits with 1 where it is."""
        into = INTO.get(self.exporter, ANY).format(rows=EXPORTED, exporter=self.exporter)
        extra = "from exportlab import export, to_onnx  # noqa: F401\n" if self.exporter not in WITHOUT_US else ""
        sizes = ", ".join(map(str, (EXPORTED, *UNSEEN)))
        told = [f"# {self.exporter}: {self.trial.outcome}: {self.trial.seen}".replace("\n", " "), ""]
        shown = [
            f"far = {{rows: float((call(*inputs(rows)) - Program()(*inputs(rows))).abs().max()) for rows in ({sizes})}}",
            "print(far)",
            ENDS,
        ]
        return "\n".join(told) + extra + HEAD.format(program=self.program.source) + "\n\n" + "\n".join([into, *shown])

    def line(self) -> str:
        """Return it as one line of JSON."""
        steps = [[step.name, step.number] for step in self.program.steps]
        return json.dumps({"exporter": self.exporter, "outcome": self.trial.outcome, "seen": self.trial.seen, "steps": steps})


def write_all(findings: Sequence[Finding], folder: Path) -> None:
    """Write a script for each, and `findings.jsonl`.

    Raises:
        OSError: the folder cannot be written.
    """
    folder.mkdir(parents=True, exist_ok=True)
    for finding in findings:
        _write(folder / f"{finding.name}.py", finding.script)
    _write(folder / "findings.jsonl", "".join(f"{finding.line()}\n" for finding in findings))


def _write(path: Path, text: str) -> None:
    with written_whole(path) as file:
        file.write_text(text, encoding="utf-8")
