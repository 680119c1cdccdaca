"""
When exporting pays off
=======================

For ResNet-50 and BERT-base, a stored ONNX model is ahead of eager from the first call. An export in the same process pays off after tens
to hundreds of calls, and for the MLP after more than 100,000. The times contain imports, the export or load, the first call, and all later
calls.
"""

# sphinx_gallery_parallel = False
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy
import torch
from torch import nn

from exportlab import exporters
from exportlab.measure import benchmark, break_even, tables, timing
from exportlab.messages import muffled

page = benchmark.page(
    "pays_off",
    "After how many calls does exporting pay off?",
    quick="the MLP, by eager, ONNX Runtime and OpenVINO, one round",
    models=break_even.MODELS,
)
EAGER = "eager"


def finding(run: benchmark.Run) -> benchmark.Lines:
    """After how many calls of the largest model each way is ahead of eager, then of the others."""
    models = run.facts["models"]
    left = "; ".join(f"{what} ({why})" for what, why in run.facts["left out"].items())
    return (
        break_even.headline(run, models[-1]),
        *(break_even.summary(run, model) for model in models),
        f"the number of rounds is {run.rounds}, and each round measures each way once, in its own process",
        f"outputs differ from eager's by at most {run.facts['apart']:.0e}",
        *([f"left out: {left}"] if left else []),
    )


def draw(run: benchmark.Run) -> None:
    """The seconds of each way against the number of calls, and the crossings with eager."""
    break_even.draw(run)


def table(run: benchmark.Run) -> list[tables.Table]:
    """The parts of each way, and the number of calls after which it is ahead of eager."""
    return break_even.tables_of(run)


page.open(finding, draw, table)

# %%
# Models
# ------
#
# The models are an MLP, ResNet-50 with one image, and BERT-base with a text of 128 tokens. The weights are random. The
# running statistics of ResNet-50 come from two batches of noise. All sizes are fixed.


def mlp() -> tuple[nn.Module, tuple[torch.Tensor, ...]]:
    """Three linear layers."""
    layers = (nn.Linear(64, 128), nn.ReLU(), nn.Linear(128, 128), nn.ReLU(), nn.Linear(128, 10))
    return nn.Sequential(*layers), (torch.randn(1, 64),)


def resnet50() -> tuple[nn.Module, tuple[torch.Tensor, ...]]:
    """ResNet-50 of transformers, whose normalisations have seen two batches."""
    from transformers import ResNetConfig, ResNetForImageClassification

    settings: dict[str, Any] = {"num_labels": 1000, "return_dict": False}
    model = ResNetForImageClassification(ResNetConfig(**settings)).train()
    for _ in range(2):
        model(torch.randn(4, 3, 224, 224))
    return model, (torch.randn(1, 3, 224, 224),)


def bert_base() -> tuple[nn.Module, tuple[torch.Tensor, ...]]:
    """BERT-base of transformers, with a mask that hides nothing."""
    from transformers import BertConfig, BertModel

    model = BertModel(BertConfig(return_dict=False), add_pooling_layer=False)
    return model, (torch.randint(30522, (1, 128)), torch.ones(1, 128, dtype=torch.int64))


Build = Callable[[], tuple[nn.Module, tuple[torch.Tensor, ...]]]
models: dict[str, Build] = dict(zip(break_even.MODELS, (mlp, resnet50, bert_base), strict=True))

# %%
# What each process runs
# ----------------------
#
# Each process runs the model in one *way* of the table. Ways with a stored file load it. The others load the module with ``torch.load``.
# Eager calls the module directly, ``torch.compile`` compiles it, and the remaining ways export it. Inductor's cache is empty, except for
# *torch.compile with its cache*. OpenVINO loads an ONNX file or its own file, which ``openvino.convert_model`` made from an
# ``ExportedProgram``.

ONNXRUNTIME = """
import onnxruntime
def opened(path):
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    session = onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])
    feeds = dict(zip([each.name for each in session.get_inputs()], arrays))
    return lambda: session.run(None, feeds)[0]
"""
OPENVINO = """
import openvino
def opened(path):
    settings = {"INFERENCE_PRECISION_HINT": "f32", "INFERENCE_NUM_THREADS": 1}
    settings["ENABLE_CPU_PINNING"] = False
    request = openvino.Core().compile_model(path, "CPU", settings).create_infer_request()
    return lambda: request.infer(arrays)[0]
"""
TORCH = """
import torch
torch.set_num_threads(1)
torch.set_grad_enabled(False)
def tensors():
    return tuple(torch.from_numpy(array) for array in arrays)
def loaded():
    return torch.load(f"{folder}/module.pt", weights_only=False)
def plain(found):
    return (found[0] if isinstance(found, (tuple, list)) else found).numpy()
"""
QUIET = 'sys.modules["openvino_telemetry"] = None  # it would report each start to its maker\n'


def onnx_file(name: str) -> str:
    """ONNX Runtime with a file."""
    return f'import onnxruntime\nIMPORTED\n{ONNXRUNTIME}\ncall = opened(f"{{folder}}/{name}.onnx")'


def openvino_file(file: str) -> str:
    """OpenVINO with its own file or an ONNX file."""
    return f'{QUIET}import openvino\nIMPORTED\n{OPENVINO}\ncall = opened(f"{{folder}}/{file}")'


def in_torch(prepare: str, imports: str = "import torch") -> str:
    """The module of torch.load, prepared by some lines that define `call`."""
    return f"{imports}\nIMPORTED\n{TORCH}\n{prepare}"


def compiled(what: str) -> str:
    """A compiled module, or the module itself."""
    return in_torch(f"model, args = {what}, tensors()\ncall = lambda: plain(model(*args))")


EXPORTED = 'call = opened(f"{scratch}/model.onnx")'
DYNAMO = (
    'torch.onnx.export(loaded(), tensors(), f"{scratch}/model.onnx", dynamo=True, verbose=False)'
)
PROGRAM = "openvino.convert_model(torch.export.export(loaded(), tensors()))"
WAYS = {
    EAGER: compiled("loaded()"),
    "torch.compile": compiled("torch.compile(loaded())"),
    "torch.compile, cached": compiled("torch.compile(loaded())"),
    "to_onnx": onnx_file("to_onnx"),
    "to_onnx, exported": in_torch(
        f'{ONNXRUNTIME}\nto_onnx(loaded(), tensors(), f"{{scratch}}/model.onnx")\n{EXPORTED}',
        "import onnxruntime, torch\nfrom fx2onnx import to_onnx",
    ),
    "dynamo": onnx_file("dynamo"),
    "dynamo, exported": in_torch(
        f"{ONNXRUNTIME}\n{DYNAMO}\n{EXPORTED}", "import onnxruntime, torch"
    ),
    "openvino": openvino_file("openvino.xml"),
    "openvino, exported": in_torch(
        f"{OPENVINO}\ncall = opened({PROGRAM})", f"{QUIET}import openvino, torch"
    ),
    "openvino, file of to_onnx": openvino_file("to_onnx.onnx"),
    "openvino, file of torch.onnx.export": openvino_file("dynamo.onnx"),
    "aoti": in_torch(
        'package, args = torch._inductor.aoti_load_package(f"{folder}/aoti.pt2"), tensors()\n'
        "call = lambda: plain(package(*args))",
        "import torch, torch._inductor",
    ),
    "executorch": in_torch(
        "portable_lib._unsafe_reset_threadpool(1)\n"
        'program = Runtime.get().load_program(f"{folder}/executorch.pte")\n'
        'method, args = program.load_method("forward"), tensors()\n'
        "call = lambda: method.execute(args)[0].numpy()",
        "import torch\nfrom executorch.extension.pybindings import portable_lib\n"
        "from executorch.runtime import Runtime",
    ),
}

# %%
# Each process measures wall-clock time from its start, so the totals include the start of Python and the compilers that Inductor runs.
# Later calls are repeated for half a second, and at least three times. The totals for more calls are computed from their mean time.

START = """
import json, sys, time, warnings
begin, folder, scratch = float(sys.argv[1]), sys.argv[2], sys.argv[3]
warnings.simplefilter("ignore")
marks = {}
def mark(name):
    marks[name] = time.time() - begin
import numpy
arrays = [numpy.load(f"{folder}/given{i}.npy") for i in range(int(sys.argv[4]))]
"""
MEASURE = """
import numpy
mark("ready")
answer = call()
mark("first answer")
def times(count):
    start = time.perf_counter()
    for _ in range(count):
        call()
    return time.perf_counter() - start
once = times(1)
count = max(3, int(0.5 / once))
marks["later call"] = times(count) / count
wanted = numpy.load(f"{folder}/wanted.npy")
marks["apart"] = float(abs(answer - wanted).max())
print(json.dumps(marks))
"""
PARTS = ("import", "prepare", "first call", "later call")


def program(way: str) -> str:
    """What the process runs."""
    return START + WAYS[way].replace("IMPORTED", 'mark("imported")') + MEASURE


def measured(way: str, folder: Path) -> dict[str, float]:
    """One process: the seconds of each part, and of all parts until the first answer."""
    inputs = len(list(folder.glob("given*.npy")))
    with tempfile.TemporaryDirectory() as scratch:
        cache = str(folder / "cache") if way.endswith("cached") else f"{scratch}/cache"
        found = benchmark.in_process(
            program(way),
            *(str(time.time()), str(folder), scratch, str(inputs)),
            OMP_NUM_THREADS="1",
            TORCHINDUCTOR_CACHE_DIR=cache,
        )
    assert found["apart"] < 1e-3, (way, found)
    return {
        "import": found["imported"],
        "prepare": found["ready"] - found["imported"],
        "first call": found["first answer"] - found["ready"],
        **{part: found[part] for part in ("first answer", "later call", "apart")},
    }


# %%
# Files
# -----
#
# All files exist before the first round. Each process compares its first answer with eager's.

quick_ways = (EAGER, "to_onnx", "to_onnx, exported", "dynamo", "dynamo, exported", "openvino")
ways = quick_ways if page.quick else tuple(WAYS)
wanted = break_even.MODELS[:1] if page.quick else page.only or break_even.MODELS
known = exporters.available()
optional = ("openvino", "executorch", "aoti")
left_out = {name: why for name in optional if (why := known[name].missing())}
if "aoti" in left_out:
    left_out["torch.compile"] = left_out["aoti"]  # both need a C++ compiler
ways = tuple(way for way in ways if way.split(",")[0] not in left_out)


def save(model: str, folder: Path) -> None:
    """Save a model, its inputs, its output and the file of each exporter."""
    torch.manual_seed(0)
    module, args = models[model]()
    module.eval().requires_grad_(False)
    folder.mkdir()
    torch.save(module, folder / "module.pt")
    for place, arg in enumerate(args):
        numpy.save(folder / f"given{place}.npy", arg.numpy())
    found = module(*args)
    numpy.save(folder / "wanted.npy", (found[0] if isinstance(found, tuple) else found).numpy())
    for name in (name for name in known if name in ways):
        options: dict[str, Any] = {"through": "program"} if name == "openvino" else {}
        made = known[name].export(module, args, **options)
        made.save(folder / f"{name}{made.suffix}")


def one_round(number: int, folder: Path) -> dict[str, dict[str, float]]:
    """A process for each way, beginning with another one each round."""
    return timing.by_turns(ways, number, lambda way: measured(way, folder))


# %%
# Rounds
# ------
#
# The measurements are interleaved, and each round begins with a different way. After four minutes, no new round starts, so a slow machine
# may complete only one.

ROUNDS, SECONDS = 1 if page.quick else 3, 240
seen: dict[str, list[dict[str, dict[str, float]]]] = {model: [] for model in wanted}
with tempfile.TemporaryDirectory() as kept, muffled(), torch.no_grad():
    folders = {model: Path(kept) / model for model in wanted}
    for model, folder in folders.items():
        save(model, folder)
        page.tell(f"files of {model}")
        if "torch.compile, cached" in ways:
            measured("torch.compile, cached", folder)  # fills the cache
    start = time.perf_counter()
    for number in range(ROUNDS):
        if time.perf_counter() - start > SECONDS:
            break
        for model, folder in folders.items():
            seen[model].append(one_round(number, folder))
            page.tell(f"round {number + 1}, {model}, {time.perf_counter() - start:.0f} s")

# %%
# Results
# -------

packages = (*benchmark.PACKAGES, "transformers")
earlier = page.earlier(packages)
times = {
    f"{model}, {part}": timing.Timings(
        (), tuple({way: one[part] for way, one in row.items()} for row in rows)
    )
    for model, rows in seen.items()
    for part in (*PARTS, "first answer")
}
apart = max(one["apart"] for rows in seen.values() for row in rows for one in row.values())
facts = {
    "models": [m for m in break_even.MODELS if m in (*wanted, *earlier.facts.get("models", ()))],
    "apart": max(apart, earlier.facts.get("apart", 0.0)),
    "left out": left_out,
}
run = page.keep({**earlier.times, **times}, facts=facts, packages=packages)
page.close(run, finding, draw, table)

# %%
# What this does not show
# -----------------------
#
# If a later call is nearly as slow as in eager, noise decides after how many calls the export pays off. The page doesn't cover GPUs,
# several threads, dynamic sizes, a cold disk, or processes that answer several requests at a time. For AOTInductor and ExecuTorch, only
# stored files are measured. The time of an export that wrote a stored file isn't included, because many processes can load the file. In
# C++, ExecuTorch and AOTInductor start without Python and PyTorch (:doc:`cpp_programs`).
#
# If each process has to export, compare its number of calls with the column *ahead of eager*. Next: :doc:`start_up`.
