"""
How large are the numerical differences between PyTorch and ONNX Runtime?
=========================================================================

Here they are below 0.0001 in float32, and far smaller in float64. Choose the tolerance by dtype before you call the exported model wrong.

Train a linear regression in PyTorch, compare it with scikit-learn, and export it to ONNX. This recipe measures the differences in float64
and float32, and shows which tolerance to use for each.
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
# The data set has 442 patients with ten measurements each. The target is a number between 25 and 346. scikit-learn computes in float64.

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
# Train the regression in PyTorch
# -------------------------------
# The model is a linear layer in float64. We train it until it no longer changes.

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
# The coefficients match scikit-learn's. Export the model with a dynamic number of rows, and verify it with all rows, one, and none:

free = ({0: "row"},)
compared = compare(double, [(rows,), (rows[:1],), (rows[:0],)], dynamic_shapes=free)
assert set(compared.outcomes().values()) == {"ok"}
compared

# %%
# Both exporters write one ``Gemm``, with the same names for the input, its dimension and the weights:

file64, own64 = (compared[exporter].artifact for exporter in ("dynamo", "to_onnx"))
for file in (file64, own64):
    assert [node.op_type for node in file.model.graph] == ["Gemm"]
    assert set(file.model.graph.initializers) == {"weight", "bias"}
assert file64.got() == own64.got()
show.summary(own64)

# %%
# Export in float32
# -----------------
# Most models are deployed in float32. Only the dtype changes:

single, rows32 = copy.deepcopy(double).float(), rows.float()
# sphinx_gallery_start_answer
file32, own32 = (export(e, single, (rows32,), dynamic_shapes=free) for e in ("dynamo", "to_onnx"))
for file in (file32, own32):
    verify(file, single, [(rows32,), (rows32[:1],), (rows32[:0],)]).check()
# sphinx_gallery_end_answer

# %%
# numpy uses float64 by default, and ONNX Runtime doesn't convert inputs:

with expect_failure(InvalidArgument, match="Unexpected input data type"):
    file32.session.run(None, {"input": measured})

# %%
# Measure the differences
# -----------------------
# The table shows the largest difference over the 442 predictions, by dtype:


def predicted(model, rows):
    return model(rows).detach().double().numpy()[:, 0]


expected = reference.predict(measured)
torch64, torch32 = predicted(double, rows), predicted(single, rows32)
onnx64, onnx32 = predicted(file64, rows), predicted(file32, rows32)
assert np.array_equal(onnx64, predicted(own64, rows))
assert np.array_equal(onnx32, predicted(own32, rows32))
pairs = {
    "torch and scikit-learn": (torch64 - expected, torch32 - expected),
    "ONNX and torch": (onnx64 - torch64, onnx32 - torch32),
    "ONNX and scikit-learn": (onnx64 - expected, onnx32 - expected),
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
# Both exporters write the same node and give bit-identical results, so one ONNX model per dtype represents both.
#
# In float64, all differences are rounding errors. In float32, neighbouring numbers near 300 are 3e-5 apart, so ONNX and PyTorch differ by
# at most two steps of the last digit. ONNX Runtime may add the ten products in another order than PyTorch.

assert worst["ONNX and torch"][0] < 1e-12
assert worst["ONNX and torch"][1] <= 2 * np.spacing(np.float32(300))

# %%
# Choose a tolerance by dtype
# ---------------------------
# The defaults of ``verify`` depend on the dtype, and each report prints its tolerances above the table. A float64 tolerance is too strict
# for a correct float32 model:

tight = {"rtol": 1e-9, "atol": 1e-10}
with expect_failure(AssertionError, match="Tensor-likes are not close"):
    torch.testing.assert_close(file32(rows32), single(rows32), **tight)

# %%
# ``verify`` makes a second check before it reports a difference. It computes the model in float64. If the exported model is as close to
# that as eager, the difference is rounding, and the report notes it:

# sphinx_gallery_start_answer
strict = verify(file32, single, [(rows32,)], tolerances={torch.float32: tuple(tight.values())})
# sphinx_gallery_end_answer
first = strict.checks[0]
assert first.outcome == "ok"
assert "rounding" in first.detail
strict

# %%
# Compare with the error of the model
# -----------------------------------
# The plot shows the same differences for every fourth row, together with the prediction error of the model:

apart = {
    "model vs target": (expected - truth, "#555555"),
    "float32 ONNX vs scikit-learn": (onnx32 - expected, "#D55E00"),
    "float64 ONNX vs scikit-learn": (onnx64 - expected, "#0072B2"),
}
for name, (difference, color) in apart.items():
    shown = np.maximum(abs(difference), 1e-16)[::4]
    plt.semilogy(expected[::4], shown, ".", color=color)
    plt.text(30, 8 * abs(difference).max(), name, color=color, weight="bold")
assert np.median(abs(expected - truth)) > 10
plt.xlabel("prediction of scikit-learn")
plt.ylabel("difference")
plt.ylim(1e-13, 1e5)
plt.title("Model error: tens; export error: less than 0.0001")
plt.show()

# %%
# Next: :doc:`a model with an if <cond>`.
