"""
How do I add a Python kernel for a custom operator to ONNX Runtime?
===================================================================

Decorate a Python function with ``onnx_op`` and register the library of ``onnxruntime-extensions``. The kernel needs your Python code
wherever the model runs.

ONNX Runtime rejects a model with your own operator: *is not a registered function/op*. This recipe registers a short Python kernel with
``onnxruntime-extensions``, for models of ``torch.onnx.export`` and ``to_onnx``. It also lists three restrictions of such kernels.
"""

import subprocess
import sys

import numpy as np
import onnx
import onnx_ir as ir
import onnxruntime
import torch
from matplotlib import pyplot
from onnx import defs
from onnxruntime.capi.onnxruntime_pybind11_state import Fail
from onnxruntime_extensions import PyCustomOpDef, get_library_path, onnx_op
from onnxscript import values
from torch import nn

from exportlab import expect_failure, export, show, verify

# %%
# The operator removes spikes from signals. It replaces a sample that differs by more than ``limit`` from the median of its neighbours
# with that median. ONNX has no median operator, but the numpy code is short:


def despiked(x, width, limit):
    edges = [(0, 0), (width // 2, width // 2)]
    padded = np.pad(x, edges, mode="edge")
    windows = np.lib.stride_tricks.sliding_window_view(padded, width, axis=1)
    middle = np.median(windows, axis=2).astype(x.dtype)
    return np.where(np.abs(x - middle) > limit, middle, x)


@torch.library.custom_op("lab_kernel::despike", mutates_args=())
def despike(x: torch.Tensor, width: int, limit: float) -> torch.Tensor:
    return torch.from_numpy(despiked(x.numpy(), width, limit))


despike.register_fake(lambda x, width, limit: torch.empty_like(x))


class Cleaned(nn.Module):
    def forward(self, x):
        y = despike(x, 5, 0.5)
        return y - y.mean(1, keepdim=True)


torch.manual_seed(0)
model = Cleaned().eval()
samples = [(torch.randn(n, length),) for n, length in ((3, 30), (7, 100), (1, 9), (0, 12))]
dynamic = ({0: "batch", 1: "length"},)

# %%
# Export the operator as one node
# -------------------------------
# The translation names the node, its domain and its attributes. ``torch.onnx.export`` ("dynamo") also needs a schema:

operator = torch.ops.lab_kernel.despike.default


def by_name(g, x, width, limit):
    return g.op("Despike", x, domain="lab.kernel", width=width, limit=limit)


Schema, kinds = defs.OpSchema, defs.OpSchema.AttrType
schema = Schema(
    "Despike",
    "lab.kernel",
    since_version=1,
    inputs=[Schema.FormalParameter("x", "tensor(float)")],
    outputs=[Schema.FormalParameter("y", "tensor(float)")],
    attributes=[Schema.Attribute("width", kinds.INT), Schema.Attribute("limit", kinds.FLOAT)],
)
node = values.Op(values.Opset("lab.kernel", 1), "Despike", schema)


def by_schema(x, width: int, limit: float):
    return node(x, width=width, limit=limit)


tables = {"to_onnx": {operator: by_name}, "dynamo": {operator: by_schema}}
files = {
    exporter: export(
        exporter, model, samples[0], dynamic_shapes=dynamic, custom_translation_table=table
    )
    for exporter, table in tables.items()
}

# %%
# Both models contain the node. (If you can change the PyTorch model, you don't need a table: see :doc:`lesson 308
# </tutorials/308_onnx_in_cpp>`.)

assert all(file.model.graph.node(0).domain == "lab.kernel" for file in files.values())
show.graphs({"torch.onnx.export": files["dynamo"], "to_onnx": files["to_onnx"]})

# %%
# What goes wrong: an operator without a kernel
# ---------------------------------------------
# ONNX Runtime rejects both models:

for file in files.values():
    with expect_failure(Fail, match="Despike.* is not a registered function/op", lines=1):
        file.load()

# %%
# What works: a kernel in Python
# ------------------------------
# The package ``onnxruntime-extensions`` contains a C++ library whose kernels call Python functions. Declare the name with its domain, the
# types of the inputs and outputs (``dt_float`` is float32), and the attributes:

FLOAT, INT = PyCustomOpDef.dt_float, PyCustomOpDef.dt_int64
# sphinx_gallery_start_answer
signature = {"inputs": [FLOAT], "outputs": [FLOAT], "attrs": {"width": INT, "limit": FLOAT}}
# sphinx_gallery_end_answer


# sphinx_gallery_start_answer
@onnx_op(op_type="lab.kernel::Despike", **signature)
def kernel(x, width, limit):
    return despiked(x, width, limit)


# sphinx_gallery_end_answer


# %%
# ``x`` is a numpy array. Create a session with the library in its options:


def with_kernels(file):
    # sphinx_gallery_start_answer
    options = onnxruntime.SessionOptions()
    options.register_custom_ops_library(get_library_path())
    # sphinx_gallery_end_answer
    return onnxruntime.InferenceSession(ir.to_proto(file.model).SerializeToString(), options)


# %%
# ``verify`` uses the session of the exported model. Assign yours, and ``verify`` compares the kernel with the PyTorch model at sizes that
# the export never saw, including no rows:

for file in files.values():
    file.session = with_kernels(file)
    report = verify(file, model, samples).check()
report

# %%
# Restrictions of Python kernels
# ------------------------------
# Each test below runs in a separate process, with a model of one node ``lab::Op`` and a kernel given as text:

ONE = '<ir_version: 10, opset_import: ["": 20, "lab": 1]> g (float[n] x) => (float[m] y) { y = lab.Op(x) }'

PROCESS = """
import sys
import numpy as np
import onnxruntime
from onnxruntime_extensions import PyCustomOpDef, get_library_path, onnx_op

def register(body):
    onnx_op(op_type="lab::Op", inputs=[PyCustomOpDef.dt_float], outputs=[PyCustomOpDef.dt_float])(body)

{kernel}
options = onnxruntime.SessionOptions()
options.register_custom_ops_library(get_library_path())
session = onnxruntime.InferenceSession(sys.stdin.buffer.read(), options)
print(session.run(None, {{"x": np.arange(3, dtype=np.float32)}})[0])
"""


def run(kernel, text=ONE):
    code, model = PROCESS.format(kernel=kernel), onnx.parser.parse_model(text).SerializeToString()
    return subprocess.run([sys.executable, "-c", code], input=model, capture_output=True)


right = run("register(lambda x: x * 2)")
raising = run("register(lambda x: x.no_such_method())")
twice = run("register(lambda x: x * 2)\nregister(lambda x: x * 3)")

# %%
# **It must not raise an exception.** The exception doesn't reach the caller of ``run``. It ends the process:

assert right.stdout == b"[0. 2. 4.]\n"
assert raising.returncode < 0  # ended by a signal
assert b"AttributeError" in raising.stderr

# %%
# **It must not be registered twice.** The second registration doesn't replace the first. After it, this process can't create another
# session with the library. This happens if you run a notebook cell again:

assert twice.returncode == 1
assert b"Failed to add kernel for Op lab" in twice.stderr
print(twice.stderr.decode().splitlines()[-1].partition(" : ")[2])

# %%
# **It must not differ from a function in the model.** If the model defines the operator as a function, as in :doc:`custom_op_function`,
# ONNX Runtime still calls the kernel, and a difference shows up only in ``verify``. (An inlined function, as from ``torch.onnx.export``,
# has no such node.) This model defines ``x + x``, but the kernel ``5 * x`` is used:

FUNCTION = '<domain: "lab", opset_import: ["": 20]> Op (x) => (y) { y = Add(x, x) }'
assert run("register(lambda x: 5 * x)", ONE + FUNCTION).stdout == b"[ 0.  5. 10.]\n"

# %%
# The plot shows a signal with ten spikes, of a length that the export never saw:

time = np.linspace(0, 12, 400, dtype=np.float32)
spiky = np.sin(time)[None]
spiky[0, 20::40] += 2
clean = files["dynamo"].session.run(None, {"x": spiky})[0]
assert np.abs(clean).max() < 1.1 < spiky.max()

figure, axes = pyplot.subplots(figsize=(7, 2.8), layout="constrained")
axes.plot(time, spiky[0], color="#D55E00", lw=1, label="input")
axes.plot(time, clean[0], color="#0072B2", lw=2, label="output")
axes.set_title("The kernel in ONNX Runtime removes all spikes")
axes.legend(frameon=False)
axes.spines[:].set_visible(False)

# %%
# Next: :doc:`a kernel in C++ </tutorials/308_onnx_in_cpp>`, or :doc:`an ONNX function <custom_op_function>`, which needs no kernel.
