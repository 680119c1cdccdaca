"""
How do I export a loop with torch's scan operator?
==================================================

Write the body as a function that returns the state and one row, and call ``scan``. Return a clone if the body returns a tensor twice.

Export a loop in which each iteration needs the result of the previous one. This recipe keeps the loop in the graph with ``scan``, which
becomes one ONNX ``Scan`` node. It explains what the body may return, and how the body gets its weights.
"""

import torch
from torch import nn
from torch._higher_order_ops import scan

from exportlab import compare, expect_failure, show, verify

# %%
# The model computes a running total that decays and is clipped at zero. As a Python loop it :doc:`can't be captured with a dynamic length
# </generated/gallery/torch_onnx/loop_over_the_batch>`, but it defines the expected results. (Without the decay and the clipping, use
# ``torch.cumsum``.)


class ByLoop(nn.Module):
    def __init__(self):
        super().__init__()
        self.keep = nn.Parameter(torch.tensor([0.9, 0.5, 0.1]))

    def forward(self, x):
        total, totals = torch.zeros(3), []
        for row in x:
            total = torch.relu(self.keep * total + row)
            totals.append(total)
        return total, torch.stack(totals)


torch.manual_seed(0)
model = ByLoop().eval()
samples = [(torch.randn(n, 3),) for n in (5, 9, 1)]
length = ({0: "length"},)

# %%
# What goes wrong: one tensor returned twice
# ------------------------------------------
# The ``scan`` operator accepts a body, a list of initial states, a list of tensors to iterate over, and a list of additional inputs. The
# body returns *one flat list*: the new states, then the values to stack. Here both are the total:


def shared(total, row, keep):
    total = torch.relu(keep * total + row)
    return [total, total]


class ByScan(ByLoop):
    def __init__(self, body):
        super().__init__()
        self.body = body

    def forward(self, x):
        return torch.ops.higher_order.scan(self.body, [torch.zeros(3)], [x], [self.keep])


compared = compare(ByScan(shared).eval(), samples, dynamic_shapes=length)
assert compared.outcomes() == {
    "torch.export": "ok",
    "to_onnx": "ok",
    "dynamo": "convert",
    "torchscript": "capture",
}
compared

# %%
# Why the conversion fails
# ------------------------
# ``torch.export`` captures the model, and the program is right. But the body returns the same tensor twice. ``torch.onnx.export``
# ("dynamo") removes in-place operations next, and that step doesn't allow two results that share memory. ``to_onnx`` doesn't have this
# step, and adds an ``Identity``:

show.program(compared["torch.export"].artifact.model.graph_module.scan_combine_graph_0)

# %%
# What works: return a clone
# --------------------------


# sphinx_gallery_start_answer
def apart(total, row, keep):
    total = torch.relu(keep * total + row)
    return [total, total.clone()]


# sphinx_gallery_end_answer


compared = compare(ByScan(apart).eval(), samples, dynamic_shapes=length)
assert compared.outcomes() == {
    "torch.export": "ok",
    "to_onnx": "ok",
    "dynamo": "ok",
    "torchscript": "capture",
}
compared

# %%
# The operator has two more restrictions. It is refused with ``strict=True``, whatever its body returns. If the body reads ``self.keep``
# directly, instead of getting it as an additional input, the export succeeds. The program then returns a fake tensor, which has a shape
# but no values.

with expect_failure(torch._dynamo.exc.UncapturedHigherOrderOpError, match="improper combine_fn"):
    torch.export.export(ByScan(apart).eval(), samples[0], strict=True)


class ByClosure(ByLoop):
    def forward(self, x):
        return torch.ops.higher_order.scan(
            lambda total, row: apart(total, row, self.keep), [torch.zeros(3)], [x], []
        )


empty, _ = torch.export.export(ByClosure().eval(), samples[0]).module()(*samples[0])
assert isinstance(empty, torch._subclasses.FakeTensor)
empty

# %%
# Use the scan function from torch._higher_order_ops
# --------------------------------------------------
# The function ``scan`` is a prototype, as the underscore indicates, and it avoids both restrictions: it finds the weights of its body,
# and works in both modes. Its body returns a pair, and it has arguments ``dim`` and ``reverse``.


# sphinx_gallery_start_answer
class ByFunction(ByLoop):
    def forward(self, x):
        return scan(lambda total, row: tuple(apart(total, row, self.keep)), torch.zeros(3), x)


# sphinx_gallery_end_answer


for strict in (False, True):
    names = {"output_names": ["last", "totals"]}
    way = {"strict": strict}
    options = {"torch.export": way, "to_onnx": {**way, **names}, "dynamo": names}
    compared = compare(ByFunction().eval(), samples, dynamic_shapes=length, options=options)
    assert [*compared.outcomes().values()] == ["ok", "ok", "ok", "capture"]

# %%
# Both ONNX models have a single ``Scan`` node. They match the Python loop at lengths nine and one:

files = [compared[exporter].artifact for exporter in ("dynamo", "to_onnx")]
for file in files:
    assert [node.op_type for node in file.model.graph] == ["Scan"]
    verify(file, model, samples).check()
show.graphs(dict(zip(("torch.onnx.export", "to_onnx"), files, strict=True)))

# %%
# Next: :doc:`branches on values with torch.cond </generated/gallery/torch_onnx/cond>`.
