"""
How do I keep a loop in the graph?
==================================

In the model below every row needs the one before it, so no single tensor operation replaces the loop. You will keep the loop in the graph
with ``scan``, see what the body of a ``scan`` may return and where its weights go, and find one ONNX ``Scan`` node in the file that is
right at lengths the export never saw.

``to_onnx`` is this site's own exporter, so check what is said of it here on a model of your own.
"""

import torch
from torch import nn
from torch._higher_order_ops import scan

from exportlab import compare, expect_failure, show, verify

# %%
# The total leaks, and it never falls below zero. As a Python loop it
# :doc:`does not survive capture </generated/gallery/torch_onnx/loop_over_the_batch>`, but it says what the answers have to be. (Without
# the leak and the floor it would be ``torch.cumsum``, and you would not need this page.)


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
# What goes wrong
# ---------------
# The op takes a body, a list of what is carried from turn to turn, a list of what is walked over, and a list of whatever else the body
# reads. The body returns *one flat list*: what is carried on, then what is stacked. Here both are the total:


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
# Why
# ---
# Capture takes it, and the captured program is right. But its body returns one tensor in two places, and the next step of the official
# exporter, which removes in-place operations, allows no two results that share memory. ``to_onnx`` has no such step; it puts an
# ``Identity`` between the two:

show.program(compared["torch.export"].artifact.model.graph_module.scan_combine_graph_0)

# %%
# What works: every result in memory of its own
# ---------------------------------------------


def apart(total, row, keep):
    total = torch.relu(keep * total + row)
    return [total, total.clone()]


compared = compare(ByScan(apart).eval(), samples, dynamic_shapes=length)
assert compared.outcomes() == {
    "torch.export": "ok",
    "to_onnx": "ok",
    "dynamo": "ok",
    "torchscript": "capture",
}
compared

# %%
# Two traps remain. With ``strict=True`` the bare op is refused, whatever its body returns. And a body that reads ``self.keep`` itself,
# instead of being handed it, is captured without a word: the program then answers with a tensor that has a shape and no values.

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
# What works better: the function around the op
# ---------------------------------------------
# ``scan`` from ``torch._higher_order_ops`` is a prototype, as the underscore says, and has neither trap: it finds the weights of its
# body by itself, and exports either way. Its body returns a pair; ``dim`` and ``reverse`` are arguments.


class ByFunction(ByLoop):
    def forward(self, x):
        return scan(lambda total, row: tuple(apart(total, row, self.keep)), torch.zeros(3), x)


for strict in (False, True):
    names = {"output_names": ["last", "totals"]}
    way = {"strict": strict}
    options = {"torch.export": way, "to_onnx": {**way, **names}, "dynamo": names}
    compared = compare(ByFunction().eval(), samples, dynamic_shapes=length, options=options)
    assert [*compared.outcomes().values()] == ["ok", "ok", "ok", "capture"]

# %%
# Either file has one node, with the body inside it. Held against the Python loop, which needs a row at least, it is right at nine and at
# one.

files = [compared[exporter].artifact for exporter in ("dynamo", "to_onnx")]
for file in files:
    assert [node.op_type for node in file.model.graph] == ["Scan"]
    verify(file, model, samples).check()
show.graphs(dict(zip(("torch.onnx.export", "to_onnx"), files, strict=True)))

# %%
# If the body of a ``scan`` returns a tensor twice, return a clone; and pass it the weights it uses, because the bare operator never finds
# them. Next: :doc:`branches that depend on values </generated/gallery/torch_onnx/cond>`.
