"""
C++ programs
============

Compare three C++ programs that run the same models without Python: the size of their libraries, the CPU time until the first result and
for later calls, and the memory that they need.
"""

# sphinx_gallery_parallel = False
import importlib.util
import json
import os
import re
import subprocess
import tempfile
from pathlib import Path
from typing import Any

import torch
from torch import nn

from exportlab import compare, exporters, show
from exportlab.measure import benchmark, figures, tables, timing, words
from exportlab.programs import ROOT, missing

page = benchmark.page("cpp_programs", "What does a model in C++ weigh?", quick="MLP, 2 rounds")
BASE, FILE = "dynamo", "torch.onnx.export's file in ONNX Runtime"
PROGRAMS = {"dynamo": "onnx", "to_onnx": "onnx", "aoti": "aoti", "executorch": "executorch"}
PARTS, WHOLES = ("start", "load", "first call"), ("first answer", "later call")


def over(run: benchmark.Run, title: str) -> dict[str, timing.Ratio]:
    """What each way but the base takes, the base being 1."""
    times = run[title]
    return {name: times.ratio(name, BASE) for name in times.rounds[0] if name != BASE}


def weighed(run: benchmark.Run) -> str:
    """What is shipped for each way: program, libraries and file."""
    sums = {name: sum(parts.values()) for name, parts in run.facts["MB"].items()}
    return words.listed(f"{words.spoken(name)} {size:,.0f} MB" for name, size in sums.items())


def finding(run: benchmark.Run) -> benchmark.Lines:
    """Of the largest model: the first answer, later calls, memory, and what has to be shipped."""
    model = run.facts["models"][-1]
    first = run[f"{model}, first answer"]
    taken = {
        name: figures.plain(1000 * first.median(name), "ms")
        for name in ("executorch", "dynamo", "aoti")
    }
    return (
        f"A C++ program gives the first answer of the {model} in {taken['executorch']} with ExecuTorch, {taken['dynamo']} with ONNX Runtime and {taken['aoti']} with AOTInductor",
        f"to give the first answer of the {model}, in processor time, {words.takes(over(run, f'{model}, first answer'), FILE)}",
        f"for a later call, {words.takes(over(run, f'{model}, later call'), FILE)}",
        f"program, libraries and the {model}'s file weigh together: {weighed(run)}",
        f"at its peak the process holds {held(run, model)}",
        f"outputs differ from eager's by at most {run.facts['apart']:.0e}",
    )


def held(run: benchmark.Run, model: str) -> str:
    """The memory of each process, medians."""
    sizes = run[f"memory, {model}"]
    names = sizes.rounds[0]
    return words.listed(f"{words.spoken(n)} {sizes.median(n) / 1e6:.0f} MB" for n in names)


def draw(run: benchmark.Run) -> None:
    """The first answer and a later call of the largest model."""
    from exportlab.measure import bar_panels

    model = run.facts["models"][-1]
    found = {f"{part} of the {model}": run[f"{model}, {part}"] for part in WHOLES}
    values = bar_panels.values_of(found, factor=1000)
    bar_panels.draw_bar_panels(values, "A program in C++, milliseconds of processor time", "ms")


def table(run: benchmark.Run) -> list[tables.Table]:
    """Every part of every model, and the memory."""
    title = "Processor time, medians: lower is faster"
    memory = {m: run[f"memory, {m}"] for m in run.facts["models"]}
    named = [f"{m}, {p}" for p in WHOLES + PARTS for m in reversed(run.facts["models"])]
    parts = {name: run[name] for name in named}
    return [
        tables.compared(parts, BASE, who="run by", title=title),
        tables.compared(
            memory, BASE, who="run by", unit="MB", title="Peak memory: lower is better"
        ),
    ]


page.open(finding, draw, table)

# %%
# Models
# ------
#
# A tiny model, for which almost all cost is that of the runtime, and four layers of a transformer. They are exported with a dynamic
# batch of 4 and called with 7.


class Transformer(nn.Module):
    """Four encoder layers over features."""

    def __init__(self) -> None:
        super().__init__()
        layer = nn.TransformerEncoderLayer(128, 4, 512, activation="gelu", batch_first=True)
        self.layers = nn.TransformerEncoder(layer, 4, enable_nested_tensor=False)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.layers(x)


torch.manual_seed(0)
mlp = nn.Sequential(nn.Linear(32, 32), nn.ReLU(), nn.Linear(32, 8)).eval()
models = {"MLP": (mlp, [(torch.randn(batch, 32),) for batch in (4, 7, 1)])}
if not page.quick:
    features = [(torch.randn(batch, 32, 128),) for batch in (4, 7, 1)]
    models["transformer"] = (Transformer().eval(), features)

# %%
# Programs
# --------
#
# The sources are in ``benchmarks/cpp``. The shared code reads an input, calls the model, compares the result with that of eager, and
# records the CPU time after each step. The time starts with the process, so it includes loading and linking the libraries.

print(*(ROOT / "benchmarks/cpp/measured.hpp").read_text().partition("// PROGRAM")[1:], sep="")

# %%
# This is the program for ONNX Runtime. The others differ in the calls.

print((ROOT / "benchmarks/cpp/onnx.cpp").read_text())

# %%
# A program is omitted, with the reason, if its tools aren't installed.

HEADERS = "build/onnxruntime/onnxruntime_cxx_api.h"


def folder_of(package: str) -> Path:
    """Where a Python package keeps its files, without importing it."""
    spec = importlib.util.find_spec(package)
    assert spec is not None, package
    return Path(next(iter(spec.submodule_search_locations or ())))


def reason_against(name: str) -> str | None:
    """Why a way is not measured here."""
    needed = ["cmake", "g++", *([HEADERS] if PROGRAMS[name] == "onnx" else [])]
    if absent := missing(*needed):
        return f"it needs {words.listed(absent)}"
    if name == "aoti" and page.quick:
        return "compiling takes too long for a quick run"
    return exporters.available()[name].missing()


reasons = {name: reason_against(name) for name in PROGRAMS}
for name, reason in reasons.items():
    if reason:
        print(f"{words.spoken(name)} is left out: {reason}")
names = [name for name, reason in reasons.items() if not reason]


def built(folder: Path) -> None:
    """Compile the programs of the ways that are measured."""
    given = {
        "onnx": [
            f"-DONNXRUNTIME={folder_of('onnxruntime')}",
            f"-DHEADERS={(ROOT / HEADERS).parent}",
        ],
        "aoti": [f"-DTORCH={folder_of('torch')}"],
        "executorch": [f"-DEXECUTORCH={folder_of('executorch')}"],
    }
    wanted = [flag for program in {PROGRAMS[n]: None for n in names} for flag in given[program]]
    for command in (
        ["cmake", "-S", str(ROOT / "benchmarks/cpp"), "-B", str(folder), *wanted],
        ["cmake", "--build", str(folder)],
    ):
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr[-2000:]


# %%
# Verification
# ------------
#
# Each model is exported and compared with eager. Only correct models are saved and timed. The programs compare the results again.

compared = {
    title: compare(*made, dynamic_shapes=({0: "batch"},), exporters=names)
    for title, made in models.items()
}
show.table([{"model": title, **compared[title][name].row()} for title in models for name in names])


def saved(title: str, folder: Path) -> dict[str, Path]:
    """The files of all exporters that are right, and what is given and wanted of them."""
    module, samples = models[title]
    folder.mkdir()
    (folder / "given.bin").write_bytes(samples[1][0].numpy().tobytes())
    with torch.no_grad():
        (folder / "wanted.bin").write_bytes(module(*samples[1]).numpy().tobytes())
    right = {n: compared[title][n] for n, o in compared[title].outcomes().items() if o == "ok"}
    return {n: a.artifact.save(folder / f"{n}{a.artifact.suffix}") for n, a in right.items()}


# %%
# One process
# -----------
#
# Each program computes on one thread. The memory is the peak of the process.


def measured(name: str, model: str, path: Path, program: Path) -> dict[str, float]:
    """The parts of one process, and its peak memory in bytes."""
    sizes = map(str, models[model][1][1][0].shape)
    given = [str(path.parent / f"{role}.bin") for role in ("given", "wanted")]
    command = [str(program), str(path), *given, "300", *sizes]
    done = subprocess.run(
        command,
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )
    assert done.returncode == 0, (name, model, done.stderr[-2000:])
    found: dict[str, float] = json.loads(done.stdout)
    assert found["apart"] < 1e-4, (name, found)
    return found


def one_round(
    number: int, model: str, files: dict[str, Path], programs: dict[str, Path]
) -> dict[str, dict[str, float]]:
    """A process for each file, beginning with another one each round."""
    return timing.by_turns(files, number, lambda n: measured(n, model, files[n], programs[n]))


def megabytes(program: Path, file: Path) -> dict[str, float]:
    """What is shipped: the program, the libraries that are not the system's, the file."""
    listed = subprocess.run(["ldd", program], capture_output=True, text=True, check=True).stdout
    paths = {Path(path).resolve() for path in re.findall(r"=> (/\S+)", listed)}
    own = [path for path in paths if not str(path).startswith(("/lib", "/usr/lib"))]
    sizes = {"program": [program], "libraries": own, "file": [file]}
    return {part: sum(p.stat().st_size for p in some) / 1e6 for part, some in sizes.items()}


# %%
# Method
# ------
#
# The measurements are interleaved (:doc:`how_we_measure`): one process per model and program, in a different order each round. The
# first round is discarded.

rounds = 2 if page.quick else 12
seen: dict[str, list[dict[str, Any]]] = {title: [] for title in models}
weights: dict[str, dict[str, float]] = {}
if BASE in names:
    with tempfile.TemporaryDirectory() as kept:
        built(Path(kept))
        programs = {name: Path(kept) / PROGRAMS[name] for name in names}
        files = {title: saved(title, Path(kept) / title) for title in models}
        for number in range(rounds + 1):
            for title, paths in files.items():
                found = one_round(number, title, paths, programs)
                if number:
                    seen[title].append(found)
            page.tell(f"round {number} of {rounds}")
        weights = {n: megabytes(programs[n], p) for n, p in files[list(models)[-1]].items()}

# %%
# Results
# -------

TITLES = {part: f"{{}}, {part}" for part in PARTS + WHOLES}
TITLES["memory"] = "memory, {}"
if weights:
    times = {
        title.format(model): timing.Timings(
            (), tuple({name: one[part] for name, one in row.items()} for row in rows)
        )
        for model, rows in seen.items()
        for part, title in TITLES.items()
    }
    apart = max(one["apart"] for rows in seen.values() for row in rows for one in row.values())
    units = {title: "byte" if title.startswith("memory") else "second" for title in times}
    facts = {"models": list(models), "apart": apart, "MB": weights}
    page.close(page.keep(times, facts=facts, unit=units), finding, draw, table)

# %%
# Size of the required libraries in MB, without those of the system, for the largest model of the full run:

if page.quick:
    weights = benchmark.stored(page.name).facts["MB"]
show.table([{"run by": figures.shown(name), **parts} for name, parts in weights.items()])

# %%
# What this does not show
# -----------------------
#
# Reading from a cold disk, because all files were cached, and waiting time, because only CPU time is counted. Convolutions, which
# XNNPACK and AOTInductor compile differently. Minimal builds: the libraries are those of the Python packages, and ONNX Runtime and
# ExecuTorch can be built with only the operators of your model. A package of AOTInductor needs libtorch, which includes the operators
# for training. Phones have other processors.
#
# Lessons build such programs: :doc:`308 </tutorials/308_onnx_in_cpp>` with ONNX Runtime, :doc:`304
# </tutorials/304_cpp_with_aotinductor>` with AOTInductor and :doc:`305 </tutorials/305_the_edge_with_executorch>` with ExecuTorch.
# :doc:`start_up` measures the same from Python.
