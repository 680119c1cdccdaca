"""
Optimisers and quantisers
=========================

Compare the optimisers and quantisers that this site knows on the exported models of two networks, run in ONNX Runtime (ORT) with and
without its own optimisations.
"""

# sphinx_gallery_parallel = False
import importlib.util
import time
from collections.abc import Callable
from contextlib import redirect_stdout
from functools import partial
from io import StringIO
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import onnx
import onnx_ir as ir
import torch
from onnxruntime import GraphOptimizationLevel, InferenceSession, SessionOptions, quantization
from torch import nn

from exportlab import show, to_onnx
from exportlab.measure import benchmark, figures, tables, timing, words
from exportlab.measure.models import Block
from exportlab.messages import first_line, muffled

page = benchmark.page(
    "optimisers", "What does a graph optimiser really buy you?", quick="small models, 6 rounds"
)
RAW, BASE, SAVED = "not optimised", "dynamo", "saved by ORT"
RUNS = 5  # timed together
REDUCED = ("fp16", "int8 dynamic", "int8 QDQ", "int8 QDQ, percentile")


def ratios(run: benchmark.Run, model: str, ending: str = "") -> dict[str, timing.Ratio]:
    """Each file's time, over that of dynamo's file with all that ORT does; an ending says that ORT does less."""
    names = [name for name in run.facts["files"][model] if name + ending in run[model].rounds[0]]
    return {name: run[model].ratio(name + ending, BASE) for name in names}


def reduced(run: benchmark.Run, name: str) -> str:
    """How far one way to take fewer bits is off: its largest error over the largest output."""
    found = {model: files for model, files in run.facts["files"].items() if name in files}
    each = [f"{percent(files[name]['off'])} in the {model}" for model, files in found.items()]
    return (
        f"{words.spoken(name)} is off by {' and '.join(each)}"
        if each
        else f"{words.spoken(name)} was refused"
    )


def percent(share: float) -> str:
    """With as many digits as say something: `0.034 %`."""
    return figures.plain(100 * float(f"{share:.1e}"), "%")


def finding(run: benchmark.Run) -> benchmark.Lines:
    """What optimising the graph gives, and what fewer bits cost."""
    models = run.facts["files"]
    same = {
        f"{name} ({model})": ratio
        for model in models
        for name, ratio in ratios(run, model).items()
        if name not in (BASE, *REDUCED)
    }
    apart = {name: ratio for name, ratio in same.items() if ratio.differs}
    slower = {name: ratio for name, ratio in apart.items() if ratio.median > 1}
    faster = {name: ratio for name, ratio in apart.items() if name not in slower}
    model, small = next(iter(models)), "int8 QDQ"
    taken = {n: figures.plain(1000 * run[model].median(n), "ms") for n in (small, BASE)}
    return (
        f"ONNX Runtime runs the {model} in {taken[small]} with {small} instead of {taken[BASE]}",
        f"of {len(same)} other 32-bit files, {len(faster) or 'none'} run faster in ONNX Runtime than the one that torch.onnx.export writes, and {len(slower) or 'none'} run slower",
        *(reduced(run, name) for name in REDUCED),
        f"refused: {'; '.join(run.facts['refused']) or 'nothing'}",
    )


def draw(run: benchmark.Run) -> None:
    """Every file, both models."""
    from exportlab.measure import bar_panels

    found = {model: run[model] for model in run.facts["files"]}
    names = [*dict.fromkeys(name for files in run.facts["files"].values() for name in files)]
    values = bar_panels.values_of(found, names, factor=1000)
    bar_panels.draw_bar_panels(values, "One run in ONNX Runtime, milliseconds", "ms")


def table(run: benchmark.Run) -> list[tables.Table]:
    """Every file, and the starts."""
    title = "A run in ONNX Runtime, medians: lower is faster"
    return [tables.compared(run.times, BASE, who="file", title=title)]


page.open(finding, draw, table)

# %%
# Models
# ------
#
# Convolutions with batch norm, which an optimiser can fold, and transformer blocks, which it can fuse. The weights are random.


def convolution(start: int, end: int) -> nn.Sequential:
    """With batch norm."""
    layers = nn.Conv2d(start, end, 3, padding=1), nn.BatchNorm2d(end), nn.ReLU()
    return nn.Sequential(*layers)


torch.manual_seed(0)
rounds, depth = (6, 1) if page.quick else (15, 4)
blocks = [convolution(3, 32), *(convolution(32, 32) for _ in range(depth))]
head = (nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(32, 10))
models = {
    "CNN": (nn.Sequential(*blocks, *head).eval(), (3, 24, 24)),
    "transformer": (nn.Sequential(*(Block() for _ in range(depth))).eval(), (32, 128)),
}
samples = {
    model: [torch.randn(8, *shape) for _ in range(9)] for model, (_, shape) in models.items()
}

# %%
# Optimisers
# ----------
#
# Each optimiser gets the model of ``torch.onnx.export(optimize=False)``. ``dynamo`` is the default result of ``torch.onnx.export``. ORT
# can save its optimised model for the processor that it ran on.

LEVELS = {"disabled": "DISABLE_ALL", "basic": "ENABLE_BASIC", "extended": "ENABLE_EXTENDED"}


def session(file: Path, level: str = "ENABLE_ALL", saved: str = "") -> InferenceSession:
    """On one thread, with the optimisations of a level."""
    options = SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    options.log_severity_level = 4
    options.graph_optimization_level = getattr(GraphOptimizationLevel, f"ORT_{level}")
    options.optimized_model_filepath = saved
    return InferenceSession(file, options, providers=["CPUExecutionProvider"])


def by_onnxscript(source: Path, to: Path) -> None:
    """Folds constants and merges equal nodes."""
    from onnxscript import optimizer

    loaded = ir.load(source)
    optimizer.optimize(loaded)
    ir.save(loaded, to)


def fused_for_ort(source: Path, to: Path) -> None:
    """Also makes nodes of ORT's own domain, attention among them."""
    from onnxscript.rewriter.ort_fusions import optimize_for_ort

    ir.save(optimize_for_ort(ir.load(source))[0], to)


def slimmed(source: Path, to: Path) -> None:
    """By onnxslim."""
    import onnxslim

    onnx.save(onnxslim.slim(onnx.load(source)), to)


def for_transformers(source: Path, to: Path) -> None:
    """By the scripts that come with ORT."""
    from onnxruntime.transformers.optimizer import optimize_model

    optimize_model(str(source), model_type="bert", opt_level=0).save_model_to_file(str(to))


optimisers = {
    "onnxscript": by_onnxscript,
    "onnxscript, for ORT": fused_for_ort,
    "onnxslim": slimmed,
    "ORT's transformers": for_transformers,
    SAVED: lambda source, to: session(source, saved=str(to)),
}
if importlib.util.find_spec("onnxslim") is None:
    print("onnxslim is not installed: left out")
    del optimisers["onnxslim"]

# %%
# Quantisers
# ----------
#
# These start from the model of ``torch.onnx.export``. Quantisers need ``quant_pre_process``, because they refuse a model that declares
# the shape of a weight which they then transpose. Static quantisation calibrates with eight inputs and is evaluated with others.


class Calibration(quantization.CalibrationDataReader):
    """Hands out inputs."""

    def __init__(self, name: str, inputs: list[torch.Tensor]) -> None:
        self.rest = iter([{name: x.numpy()} for x in inputs])

    def get_next(self) -> dict[str, np.ndarray] | None:
        return next(self.rest, None)


def halved(source: Path, to: Path, inputs: list[torch.Tensor]) -> None:
    """16-bit floats inside, 32-bit at the ends."""
    from onnxruntime.transformers.float16 import convert_float_to_float16

    onnx.save(convert_float_to_float16(onnx.load(source), keep_io_types=True), to)


def dynamically(source: Path, to: Path, inputs: list[torch.Tensor]) -> None:
    """8-bit weights; inputs of a node are scaled when it runs."""
    quantization.quantize_dynamic(source, to, weight_type=quantization.QuantType.QInt8)


def statically(source: Path, to: Path, inputs: list[torch.Tensor], method: str = "MinMax") -> None:
    """8-bit weights and activations, scaled by what calibration saw, where it pays: convolutions and matrices."""
    quantization.quantize_static(
        source,
        to,
        Calibration(session(source).get_inputs()[0].name, inputs),
        calibrate_method=quantization.CalibrationMethod[method],
        op_types_to_quantize=["Conv", "Gemm", "MatMul"],
        per_channel=True,
    )


percentile = partial(statically, method="Percentile")
reducers = dict(zip(REDUCED, (halved, dynamically, statically, percentile), strict=True))

# %%
# All variants
# ------------
#
# Variants that raise an error, or that ORT refuses, are listed but not timed. "off" is the largest difference from eager divided by the
# largest output of eager.

refused: list[str] = []


def attempted(who: str, step: Callable[[], object]) -> bool:
    """Whether it worked; else it is listed."""
    try:
        step()
    except Exception as error:  # noqa: BLE001 - what an optimiser raises is to be reported
        refused.append(f"{who}: {first_line(error)}")
        return False
    return True


def written(folder: Path, model: str) -> dict[str, Path]:
    """The files of one model by name."""
    module, inputs = models[model][0], samples[model]
    given, moving = (inputs[0],), ({0: "batch"},)
    names = (RAW, BASE, "to_onnx", *optimisers, *REDUCED)
    files = {name: folder / f"{i}.onnx" for i, name in enumerate(names)}
    export = partial(torch.onnx.export, module, given, dynamic_shapes=moving, verbose=False)
    export(optimize=False).save(files[RAW])
    export().save(files[BASE])
    to_onnx(module, given, dynamic_shapes=moving).save(files["to_onnx"])
    prepared = folder / "prepared.onnx"
    quantization.quant_pre_process(files[BASE], prepared)
    steps = {n: partial(step, files[RAW], files[n]) for n, step in optimisers.items()}
    steps |= {n: partial(step, prepared, files[n], inputs[1:]) for n, step in reducers.items()}
    failed = [n for n, step in steps.items() if not attempted(f"{n}, {model}", step)]
    return {
        name: file
        for name, file in files.items()
        if name not in failed and attempted(f"{name}, {model}", partial(session, file))
    }


def described(file: Path, model: str) -> dict[str, float]:
    """How large it is, and how far off."""
    x, running = samples[model][0], session(file)
    with torch.no_grad():
        wanted = models[model][0](x)
    (got,) = running.run(None, {running.get_inputs()[0].name: x.numpy()})
    off = (torch.from_numpy(got) - wanted).abs().max() / wanted.abs().max()
    nodes = len(onnx.load(file).graph.node)
    return {"nodes": nodes, "bytes": file.stat().st_size, "off": off.item()}


def make(file: Path, x: torch.Tensor, level: str = "ENABLE_ALL") -> Callable[[], object]:
    """To be timed: five runs after one that is not, in a new session: one slow by chance would be so in all rounds."""
    running = session(file, level)
    feeds = {running.get_inputs()[0].name: x.numpy()}
    running.run(None, feeds)
    return lambda: [running.run(None, feeds) for _ in range(RUNS)]


def started(file: Path, level: str) -> None:
    """Five starts."""
    for _ in range(5):
        session(file, level)


def groups_of(files: dict[str, Path], model: str) -> dict[str, dict[str, timing.Make]]:
    """Runs of every file with all of ORT's optimisations and with none, of one at each level; and two starts."""
    x = samples[model][0]
    runs = {name: partial(make, file, x) for name, file in files.items()}
    for name, file in files.items():
        levels = LEVELS if name == RAW else ["disabled"]
        runs |= {f"{name}, {level}": partial(make, file, x, LEVELS[level]) for level in levels}
    starts = {
        BASE: lambda: partial(started, files[BASE], "ENABLE_ALL"),
        SAVED: lambda: partial(started, files[SAVED], LEVELS["disabled"]),
    }
    return {model: runs, f"{model}, start": starts}


groups: dict[str, dict[str, timing.Make]] = {}
facts: dict[str, dict[str, dict[str, float]]] = {}
with TemporaryDirectory() as folder, muffled(), redirect_stdout(StringIO()):
    for model in models:
        (place := Path(folder) / model).mkdir()
        files = written(place, model)
        facts[model] = {name: described(file, model) for name, file in files.items()}
        groups |= groups_of(files, model)
    seen = timing.interleaved(groups, rounds, budget=90, tell=page.tell, clock=time.process_time)
times = {title: one.each(RUNS) if title in models else one for title, one in seen.items()}
for files in facts.values():
    assert all(found["off"] < 1e-4 or name in REDUCED for name, found in files.items()), files

# %%
# Results
# -------
#
# ORT folds, merges and fuses whenever it loads a model, so an optimised model gains little. Fewer nodes are still easier to read and
# faster to load.

run = page.keep(times, facts={"files": facts, "refused": refused})
page.close(run, finding, draw, table)

# %%
# Nodes, bytes and relative time of each variant of the larger model, compared with the model of ``torch.onnx.export`` and all
# optimisations of ORT:


def rows(run: benchmark.Run, model: str) -> list[dict[str, str]]:
    """A row for each file, and one for each further level."""
    full, none = ratios(run, model), ratios(run, model, ", disabled")
    return [
        {
            "file": name,
            "nodes": figures.plain(found["nodes"]),
            "bytes": figures.plain(found["bytes"], "B"),
            "off": f"{found['off']:.0e}",
            "time": "1" if name == BASE else str(full[name]),
            "ORT not optimising": str(none[name]),
        }
        for name, found in run.facts["files"][model].items()
    ]


show.table(rows(run, "transformer"))

# %%
# The same for the convolutions:

show.table(rows(run, "CNN"))

# %%
# ORT's optimisation levels, for the model without optimisation:

show.table(
    [
        {
            "model": model,
            **{level: str(run[model].ratio(f"{RAW}, {level}", BASE)) for level in LEVELS},
        }
        for model in models
    ]
)

# %%
# What this does not show
# -----------------------
#
# The loss of accuracy in a task, because "off" is a numerical error and the weights are random. Quantised models gain most on
# processors with instructions for them, so the result applies to this kind of processor.
#
# Leave graph optimisation to ORT. Quantise if the table shows a gain for your kind of model, and check "off" before you ship. Next:
# :doc:`latency by runtime <latency>`.
