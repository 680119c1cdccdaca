"""Describe a finding: the minimal program, its outcome, and a script that reproduces it with only torch and the exporter."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ..files import atomic_write
from ..verification.values import FURTHER, USUAL, mutate_sample
from .program import Program
from .trial import OURS, Trial

INTO = {
    "torch.export": "call = torch.export.export({given}).module()",
    "to_onnx": "call = run(to_onnx({given}))",
    "dynamo": "call = run(torch.onnx.export({given}))",
}
ANY = "call = export({exporter!r}, {given})"
GIVEN = "program, inputs(*SIZES[0]), dynamic_shapes={shapes}"
WITHOUT_US = ("torch.export", "dynamo")
HEAD = """import numpy
import onnxruntime
import torch
from torch import nn
from torch.nn import functional as F

AUTO = torch.export.Dim.AUTO
SIZES = {sizes}  # rows of x, rows of y, columns: those of the export first


{program}

def inputs(rows, others, columns):
    random = torch.Generator().manual_seed(rows)
    return torch.randn(rows, columns, generator=random), torch.randn(others, columns, generator=random)


def run(program):
    program.save("program.onnx")
    session = onnxruntime.InferenceSession("program.onnx", providers=["CPUExecutionProvider"])
    names = [value.name for value in session.get_inputs()]
    return lambda *given: torch.from_numpy(session.run(None, dict(zip(names, [x.numpy() for x in given])))[0])


def off(given):
    actual, expected = call(*given), program(*given)
    if actual.shape != expected.shape:
        return f"shape {{list(actual.shape)}} where eager has {{list(expected.shape)}}"
    same = (actual == expected) | (actual.isnan() & expected.isnan())
    scale = max([1.0, *expected[expected.isfinite()].abs().tolist()])
    return max([0.0, *((actual - expected).abs() / scale).masked_fill(same, 0).nan_to_num(torch.inf).flatten().tolist()])


program = Program().eval()
"""
TAIL = """print(far)
raise SystemExit(any(isinstance(difference, str) or difference > 1e-3 for difference in far.values()))
"""


@dataclass(frozen=True)
class Finding:
    """The smallest program with a certain defect, and its outcome."""

    program: Program
    trial: Trial

    @property
    def exporter(self) -> str:
        """The exporter with the defect."""
        return self.trial.exporter

    @property
    def name(self) -> str:
        """The exporter and the steps, for use as a file name."""
        return re.sub(r"\W+", "_", "_".join([self.exporter, *(step.name for step in self.program.steps)]))

    @property
    def script(self) -> str:
        """A script that prints the error of the export at each size, and exits with 1 if it is too large."""
        told = f"# {self.exporter}: {self.trial.outcome}: {self.trial.seen}".replace("\n", " ")
        ours = ", ".join(["export"] if self.exporter not in INTO else ["to_onnx"] * (self.exporter not in WITHOUT_US))
        imports = [f"from exportlab import {ours}"] * bool(ours)
        imports += ["from exportlab.cases import registered_case"] * ("registered_case" in self.program.source)
        imports += ["from math import inf, nan"] * bool(self.trial.values)
        head = HEAD.format(program=self.program.source, sizes=self.program.sizes())
        return "\n".join([told, *imports, head + self._export(), *self._shown(), TAIL])

    def _export(self) -> str:
        given = GIVEN.format(shapes=self._shapes())
        return INTO.get(self.exporter, ANY).format(exporter=self.exporter, given=given)

    def _shapes(self) -> str:
        if self.exporter == OURS:
            return repr(self.program.shapes)
        return "(" + ", ".join("{" + ", ".join(f"{axis}: AUTO" for axis in axes) + "}" for axes in self.program.shapes) + ")"

    def _shown(self) -> Iterator[str]:
        yield "far = {sizes: off(inputs(*sizes)) for sizes in SIZES}"
        for variation, sample in mutate_sample(self.program.samples()[0], (*USUAL, *FURTHER)):
            if variation.name == self.trial.values:
                yield f"changed = {', '.join(f'torch.tensor({x.tolist()})' for x in sample.args)}"
                yield f"far[{variation.name!r}] = off(changed)"

    def line(self) -> str:
        """Return the finding as one line of JSON."""
        steps = [[step.name, step.number] for step in self.program.steps]
        return json.dumps(
            {
                "exporter": self.exporter,
                "outcome": self.trial.outcome,
                "seen": self.trial.seen,
                "moving": self.program.moving,
                "steps": steps,
            }
        )


def write_all(findings: Sequence[Finding], folder: Path, refused: Sequence[Finding] = (), totals: Mapping[str, Any] | None = None) -> None:
    """Write a script for each finding, `findings.jsonl`, `refused.jsonl` in the same format, and `totals.json`.

    Raises:
        OSError: the folder cannot be written.
    """
    folder.mkdir(parents=True, exist_ok=True)
    for finding in findings:
        _write(folder / f"{finding.name}.py", finding.script)
    _write(folder / "findings.jsonl", "".join(f"{finding.line()}\n" for finding in findings))
    _write(folder / "refused.jsonl", "".join(f"{finding.line()}\n" for finding in refused))
    _write(folder / "totals.json", json.dumps(totals or {}, indent=1) + "\n")


def _write(path: Path, text: str) -> None:
    with atomic_write(path) as file:
        file.write_text(text, encoding="utf-8")
