"""Writes files by both exporters at each opset, and runs them in ONNX Runtimes of years past: what docs/versions.md is computed from.

usage: try_runtimes.py FOLDER [--runtimes VERSIONS] [--cases NAMES] [--output FILE.jsonl]

Each runtime gets an environment of its own in the folder. The next call finds it there, and the files that were written.
"""

from __future__ import annotations

import argparse
import json
import re
import subprocess
import sys
import zipfile
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from functools import cache
from importlib.metadata import version
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnx_ir as ir
import torch
from onnx_ir.passes.common import ClearMetadataAndDocStringPass
from torch.utils import _pytree as pytree

from exportlab.cases import Sample, registered_case
from exportlab.eager import called_once
from exportlab.exporters import OnnxArtifact, export
from exportlab.files import atomic_write
from exportlab.messages import first_line, muffled
from exportlab.verification.difference import difference_of

ROOT = Path(__file__).parents[1]
STORED = ROOT / "docs/data/old_runtimes.jsonl"
IN_A_RUNTIME = Path(__file__).with_name("in_a_runtime.py")
EXPORTERS = ("to_onnx", "dynamo")
OPSETS = range(18, 27)
BESIDE = "mlp_weights_beside"  # the case mlp once more, its weights in a second file
CASES = (
    *("mlp", BESIDE, "pooled_convnet", "encoder_layer", "llama", "lstm_bidirectional", "cond_on_value", "halved_until_small"),
    *("group_norm", "rms_norm", "causal_attention", "quantize_dequantize_pair"),
)
RUNTIMES = (
    *("1.16.3", "1.17.3", "1.18.1", "1.19.2", "1.20.1", "1.21.1", "1.22.1", "1.23.2", "1.24.4", "1.25.1", "1.26.0"),
    *("1.27.0", "1.28.0", "1.29.0", "1.30.0", "1.31.1", "1.32.0"),
)
OLD_NUMPY = ("1.16", "1.17", "1.18")  # built before numpy 2
SOURCE = re.compile(r"(?<=failed:)/onnxruntime_src/.*?\) (?=[A-Z])|\s*Status Message:|/onnxruntime_src/\S+ ")  # where in C++ it was said
IR_TOO_NEW = re.compile(r"max supported IR version: (\d+)")


@dataclass(frozen=True)
class Question:
    """One file to be written."""

    case: str
    exporter: str
    opset: int

    def folder(self, root: Path) -> Path:
        """Return where its file and samples lie."""
        return root / "files" / f"{self.case}-{self.exporter}-{self.opset}"


@dataclass
class Written:
    """A file, or why there is none: what it says of itself, and by runtime what became of it.

    Attributes:
        runs: the outcome, what was said, and the outcome with the IR version that the runtime takes where the file's was too new.
    """

    case: str
    exporter: str
    opset: int
    written: int = 0
    ir: int = 0
    refused: str = ""
    runs: dict[str, dict[str, str]] = field(default_factory=dict)


def built(name: str) -> tuple[torch.nn.Module, list[Sample], Any]:
    """Return a module, its samples without those that have an empty axis, and the axes that move."""
    case = registered_case("mlp" if name == BESIDE else name)
    made = case.build()
    kept = [sample for sample, sizes in zip(made.samples, case.sizes(), strict=True) if all(sizes.values())]
    return made.module, kept, made.dynamic_shapes


@cache
def compute_expected(name: str) -> list[list[torch.Tensor]]:
    """Return what eager returns for each sample of a case, flat."""
    module, samples, _ = built(name)
    return [pytree.tree_leaves(called_once(module, sample)) for sample in samples]


def ensure_written(question: Question, root: Path) -> Written:
    """Return what is known of a file, which is exported where it is not there yet."""
    folder = question.folder(root)
    note = folder / "written.json"
    if not note.exists():
        folder.mkdir(parents=True, exist_ok=True)
        made = write(question, folder)
        with atomic_write(note) as draft:
            draft.write_text(json.dumps(asdict(made)), encoding="utf-8")
    return Written(**json.loads(note.read_text(encoding="utf-8")))


def write(question: Question, folder: Path) -> Written:
    """Export, and lay the file and its samples where a runtime finds them."""
    for layer in (torch.ops.aten.lstm.input, torch.ops.aten.gru.input):
        layer._dispatch_cache.clear()  # or torch.onnx.export refuses the second one in a process
    module, samples, moving = built(question.case)
    found = Written(**asdict(question))
    first, options = samples[0], {"dynamic_shapes": moving, "opset_version": question.opset}
    try:
        with muffled():
            made = export(question.exporter, module, first.args, first.kwargs, **options)
    except Exception as error:  # noqa: BLE001 - whatever an exporter raises is what is noted
        found.refused = first_line(error)
        return found
    assert isinstance(made, OnnxArtifact)
    save(made.model, folder, question.case == BESIDE)
    lay(samples, made, folder)
    found.written, found.ir = made.model.opset_imports[""], made.model.ir_version
    return found


def save(model: ir.Model, folder: Path, beside: bool) -> None:
    """Write a file, its weights beside it where that is asked for."""
    options = {"external_data": "model.onnx.data", "size_threshold_bytes": 0} if beside else {}
    ir.save(model, folder / "model.onnx", **options)


def lay(samples: Sequence[Sample], made: OnnxArtifact, folder: Path) -> None:
    """Write what the file takes at each sample, by the names of its inputs."""
    names = [str(value.name) for value in made.model.graph.inputs]
    for number, sample in enumerate(samples):
        leaves = made.calling.feed(sample.args, sample.kwargs)
        np.savez(folder / f"{number}.npz", **{name: leaf.numpy() for name, leaf in zip(names, leaves, strict=True)})


def problem(name: str, results: Path) -> str:
    """Return how the stored results of a case's file differ from eager's; nothing where they agree."""
    with np.load(results) as stored:
        arrays = dict(stored)
    for number, wanted in enumerate(compute_expected(name)):
        mine = sorted((key for key in arrays if key.startswith(f"{number}.")), key=lambda key: int(key.split(".")[1]))
        found = difference_of(wanted, [torch.from_numpy(arrays[key]) for key in mine])
        if found.problem:
            return f"sample {number}: {found.problem}"
    return ""


def runtime(release: str, root: Path) -> tuple[Path, str]:
    """Return the Python of an environment with that ONNX Runtime, and the month that its wheel was made in.

    Raises:
        CalledProcessError: there is no wheel of it for this Python, or it cannot be installed.
    """
    pip = [sys.executable, "-m", "pip", "-q", "--disable-pip-version-check"]
    wheels, folder = root / "wheels", root / "runtimes" / release
    python, ready = folder / "bin/python", folder / "ready"
    if not list(wheels.glob(f"onnxruntime-{release}-*.whl")):
        only = ["--no-deps", "--only-binary", ":all:", "-d", wheels]
        subprocess.run([*pip, "download", *only, f"onnxruntime=={release}"], check=True)
    (wheel,) = wheels.glob(f"onnxruntime-{release}-*.whl")
    if not ready.exists():
        subprocess.run([sys.executable, "-m", "venv", "--without-pip", "--clear", folder], check=True)
        numpy = "numpy<2" if release.startswith(OLD_NUMPY) else "numpy"
        install = ["--python", python, "install", "--no-deps", "--only-binary", ":all:", wheel, numpy]
        subprocess.run([*pip, *install], check=True)
        ready.touch()
    with zipfile.ZipFile(wheel) as packed:
        year, month, *_ = packed.getinfo(f"onnxruntime-{release}.dist-info/METADATA").date_time
    return python, f"{year}-{month:02}"


def run_all(python: Path, folders: Sequence[Path]) -> dict[str, tuple[str, str]]:
    """Return how far each file comes in that runtime, and what stopped it; after one that ends the process, the rest goes on.

    Raises:
        CalledProcessError: the runtime cannot be used at all.
    """
    found: dict[str, tuple[str, str]] = {}
    while rest := [str(folder) for folder in folders if str(folder) not in found]:
        done = subprocess.run([python, IN_A_RUNTIME, *rest], capture_output=True, text=True, check=False)
        for name, stage, said in map(json.loads, done.stdout.splitlines()):
            found[name] = stage, said
        if done.returncode > 0:  # an error of the script, as a runtime that cannot be imported
            raise subprocess.CalledProcessError(done.returncode, done.args, done.stdout, done.stderr)
        if done.returncode:
            missing = [name for name in rest if name not in found]
            found |= dict.fromkeys(missing[:1], ("crash", f"signal {-done.returncode}"))
            if not missing:
                break
    return found


def lower_ir_version(folder: Path, newest: int) -> Path:
    """Write a copy of a file with an older IR version, without the metadata that came with a newer one; return its folder."""
    copied = folder.with_name(f"{folder.name}-ir{newest}")
    copied.mkdir(exist_ok=True)
    for path in folder.iterdir():
        if path.name not in ("model.onnx", "got.npz"):
            (copied / path.name).write_bytes(path.read_bytes())
    model = ir.from_proto(onnx.load(folder / "model.onnx", load_external_data=False))
    ClearMetadataAndDocStringPass()(model)
    model.ir_version = newest
    onnx.save(ir.to_proto(model), copied / "model.onnx")
    return copied


def judge_outcome(name: str, outcome: str, said: str, folder: Path) -> dict[str, str]:
    """Return an outcome with what was said; where the file ran, its numbers decide."""
    if outcome == "ok" and (differs := problem(name, folder / "got.npz")):
        outcome, said = "wrong", differs
    return {"outcome": outcome, **({"said": said} if said else {})}


def ask(release: str, root: Path, files: Mapping[Path, Written]) -> str:
    """Run every file in one runtime, note what became of each, and return the month of that runtime."""
    python, month = runtime(release, root)
    found = {Path(name): told for name, told in run_all(python, list(files)).items()}
    for folder, (outcome, said) in found.items():
        files[folder].runs[release] = judge_outcome(files[folder].case, outcome, said, folder)
    older = {lower_ir_version(folder, int(told[1])): folder for folder, (_, said) in found.items() if (told := IR_TOO_NEW.search(said))}
    for name, (outcome, said) in run_all(python, list(older)).items():
        file = files[older[Path(name)]]
        again = judge_outcome(file.case, outcome, said, Path(name))
        file.runs[release] |= {f"lowered_{key}": value for key, value in again.items()}
    return month


def main() -> None:
    """Do what the command line asks for."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path, help="where the files and the environments go")
    parser.add_argument("--runtimes", type=lambda names: names.split(","), default=RUNTIMES, help="only these, separated by commas")
    parser.add_argument("--cases", type=lambda names: names.split(","), default=CASES, help="only these, separated by commas")
    parser.add_argument("--output", type=Path, default=STORED, help="where the lines go")
    chosen = parser.parse_args()
    root = chosen.folder.resolve()
    questions = [Question(*asked) for asked in product(chosen.cases, EXPORTERS, OPSETS)]
    rows = [ensure_written(question, root) for question in questions]
    files = {question.folder(root): row for question, row in zip(questions, rows, strict=True) if not row.refused}
    months = {release: ask(release, root, files) for release in chosen.runtimes}
    store(chosen.output, months, rows)


def store(path: Path, months: Mapping[str, str], rows: Sequence[Written]) -> None:
    """Write one line of what was used and of all that was said, and one for each file, which names what was said by its number."""
    made_by = {name: version(name).partition("+")[0] for name in ("torch", "onnxscript", "onnx", "onnx-ir", "onnxruntime")}
    said: dict[str, int] = {}
    files = [{**asdict(row), "runs": {release: number_messages(run, said) for release, run in row.runs.items()}} for row in rows]
    lines = [{"made_by": made_by, "runtimes": months, "said": list(said)}, *files]
    with atomic_write(path) as draft:
        draft.write_text("".join(f"{json.dumps(line)}\n" for line in lines), encoding="utf-8")


def number_messages(run: Mapping[str, str], said: dict[str, int]) -> dict[str, str | int]:
    """Return a run with a number for each thing that was said, which is noted with it; without the place in C++ where it was said."""
    return {key: said.setdefault(SOURCE.sub("", value), len(said)) if key.endswith("said") else value for key, value in run.items()}


if __name__ == "__main__":
    main()
