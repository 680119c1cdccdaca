"""
Does a trained model give the same answers in ONNX?
===================================================

A linear regression is trained with torch, compared with scikit-learn, and exported. You will see how far apart the answers are, that this
depends on the dtype, and which tolerance is fair.

``to_onnx`` is this site's own exporter, so check what is said of it here on a model of your own.
"""

import copy

import matplotlib.pyplot as plt
import numpy as np
import torch
from onnxruntime.capi.onnxruntime_pybind11_state import InvalidArgument
from sklearn.datasets import load_diabetes
from sklearn.linear_model import LinearRegression
from sklearn.preprocessing import StandardScaler
from torch import nn

from exportlab import compare, expect_failure, export, show, verify

# %%
# The reference: 442 patients, ten measurements each, and a number to predict that lies between 25 and 346. scikit-learn computes in
# float64.

measured, truth = load_diabetes(return_X_y=True)
measured = StandardScaler().fit_transform(measured)
reference = LinearRegression().fit(measured, truth)
assert (measured.shape, measured.dtype, truth.min(), truth.max()) == (
    (442, 10),
    np.float64,
    25,
    346,
)

# %%
# The same regression in torch
# ----------------------------
# One linear layer, in float64 too, trained until nothing moves any more.

torch.manual_seed(0)
rows, target = torch.tensor(measured), torch.tensor(truth)[:, None]
double = nn.Linear(10, 1, dtype=torch.float64)
optimizer = torch.optim.LBFGS(
    double.parameters(),
    max_iter=200,
    tolerance_grad=0,
    tolerance_change=0,
)


def loss():
    optimizer.zero_grad()
    error = nn.functional.mse_loss(double(rows), target)
    error.backward()
    return error


optimizer.step(loss)
double.eval()
np.testing.assert_allclose(double.weight.detach().numpy()[0], reference.coef_, rtol=1e-6)
np.testing.assert_allclose(double.bias.item(), reference.intercept_, rtol=1e-6)

# %%
# The coefficients are those of scikit-learn. Now export. The number of rows may move, so verify on all rows, on one, and on none:

free = ({0: "row"},)
compared = compare(double, [(rows,), (rows[:1],), (rows[:0],)], dynamic_shapes=free)
assert set(compared.outcomes().values()) == {"ok"}
compared

# %%
# Multiply and add is one ONNX node, ``Gemm``, from either exporter. They name the input, its axis and the weights alike:

file64, own64 = (compared[exporter].artifact for exporter in ("dynamo", "to_onnx"))
for file in (file64, own64):
    assert [node.op_type for node in file.model.graph] == ["Gemm"]
    assert set(file.model.graph.initializers) == {"weight", "bias"}
assert file64.got() == own64.got()
show.summary(own64)

# %%
# The same in float32
# -------------------
# float32 is what most models are deployed in. Only the dtype changes:

single, rows32 = copy.deepcopy(double).float(), rows.float()
file32, own32 = (export(e, single, (rows32,), dynamic_shapes=free) for e in ("dynamo", "to_onnx"))
for file in (file32, own32):
    verify(file, single, [(rows32,), (rows32[:1],), (rows32[:0],)]).check()

# %%
# numpy computes in float64 unless told otherwise, and ONNX Runtime converts nothing:

with expect_failure(InvalidArgument, match="Unexpected input data type"):
    file32.session.run(None, {"input": measured})

# %%
# How far apart?
# --------------
# The largest difference over the 442 predictions, by dtype:


def predicted(model, rows):
    return model(rows).detach().double().numpy()[:, 0]


expected = reference.predict(measured)
torch64, torch32 = predicted(double, rows), predicted(single, rows32)
onnx64, onnx32 = predicted(file64, rows), predicted(file32, rows32)
assert np.array_equal(onnx64, predicted(own64, rows))
assert np.array_equal(onnx32, predicted(own32, rows32))
pairs = {
    "torch and scikit-learn": (torch64 - expected, torch32 - expected),
    "the file and torch": (onnx64 - torch64, onnx32 - torch32),
    "the file and scikit-learn": (onnx64 - expected, onnx32 - expected),
}
worst = {name: [abs(d).max() for d in pair] for name, pair in pairs.items()}
assert all(in64 < 1e-8 and 1e-6 < in32 < 1e-4 for in64, in32 in worst.values())
show.table(
    [
        {"between": name, "float64": f"{in64:.1e}", "float32": f"{in32:.1e}"}
        for name, (in64, in32) in worst.items()
    ]
)

# %%
# The same node gives the same numbers, so one file of each dtype stands for both exporters, to the last bit.
#
# In float64, neither the training nor the file leaves more than rounding. In float32, two neighbours near 300 are 3e-5 apart, so the file
# differs from torch by a step or two of the last digit: ONNX Runtime need not add the ten products in torch's order.

assert worst["the file and torch"][0] < 1e-12
assert worst["the file and torch"][1] <= 2 * np.spacing(np.float32(300))

# %%
# Which tolerance is fair?
# ------------------------
# One that follows the dtype, as the defaults of ``verify`` do: each report names its own above the table. Ask float32 for what is fair
# for float64, and a correct file is called wrong:

tight = {"rtol": 1e-9, "atol": 1e-10}
with expect_failure(AssertionError, match="Tensor-likes are not close"):
    torch.testing.assert_close(file32(rows32), single(rows32), **tight)

# %%
# ``verify`` asks once more before it does. It computes the model in float64, and a file that is as near to that as eager is differs by
# rounding alone. The report says so:

strict = verify(file32, single, [(rows32,)], tolerances={torch.float32: tuple(tight.values())})
first = strict.checks[0]
assert first.outcome == "ok"
assert "rounding" in first.detail
strict

# %%
# What matters
# ------------
# The same differences, of every fourth row, beside the one that the model was trained to make small:

apart = {
    "model against truth": (expected - truth, "#555555"),
    "float32 file against scikit-learn": (onnx32 - expected, "#D55E00"),
    "float64 file against scikit-learn": (onnx64 - expected, "#0072B2"),
}
for name, (difference, color) in apart.items():
    shown = np.maximum(abs(difference), 1e-16)[::4]
    plt.semilogy(expected[::4], shown, ".", color=color)
    plt.text(30, 8 * abs(difference).max(), name, color=color, weight="bold")
assert np.median(abs(expected - truth)) > 10
plt.xlabel("prediction of scikit-learn")
plt.ylabel("difference")
plt.ylim(1e-13, 1e5)
plt.title("The model is off by tens, its file by less than 0.0001")
plt.show()

# %%
# Choose the tolerance by the dtype, and look at how large a difference is before you call the file wrong. Next: :doc:`a model with an if
# <cond>`.
