"""
Number of nodes
===============

Compare the ONNX models of three exporters with hand-written ones of as few nodes as we could find, for fourteen small models, and learn
how to write a model that needs fewer nodes. All of them are verified at several sizes. This page doesn't measure time.
"""

import statistics
from collections import Counter
from collections.abc import Callable
from typing import Any

import onnx
import onnx_ir as ir
import torch
from torch import nn
from torch.nn import functional as F
from torch.nn.utils.fusion import fuse_conv_bn_eval

from exportlab import case, exporters, show, tensor, verify
from exportlab.cases import Built
from exportlab.exporters.calling import by_example
from exportlab.measure import benchmark, figures, tables, timing, words
from exportlab.specs import flags, integers
from exportlab.verification.comparison import Attempt, attempt

page = benchmark.page("graph_size", "How small could the graph be?", quick="every third model")
HAND, OPSET = "by hand", 20
NAMES = ("to_onnx", "dynamo", "dynamo, optimize=False", "torchscript")


def over(run: benchmark.Run, name: str) -> dict[str, float]:
    """The nodes of one exporter's files over those by hand, where its file is right."""
    right = {task: seen.rounds[0] for task, seen in run.times.items() if name in seen.rounds[0]}
    return {task: seen[name] / seen[HAND] for task, seen in right.items()}


def told(run: benchmark.Run, name: str) -> str:
    """One exporter: the median over the models that come out right, and the worst."""
    seen = over(run, name)
    worst = max(seen, key=lambda task: seen[task])
    median = f"{statistics.median(seen.values()):.2f}x the nodes of the file by hand"
    return f"{words.spoken(name)}: median {median}, at most {seen[worst]:.1f}x ({worst})"


def as_few(run: benchmark.Run, name: str) -> str:
    """For how many of the models that come out right no node more is taken."""
    seen = over(run, name)
    return f"{words.spoken(name)} for {sum(ratio <= 1 for ratio in seen.values())} of {len(seen)}"


def finding(run: benchmark.Run) -> benchmark.Lines:
    """Every exporter's nodes, what is saved by storing numbers twice, and bytes that are no weights."""
    numbers = run.facts["weights"]
    fewer = [
        f"{words.spoken(name)} in {task}, with {numbers[task][name] / numbers[task][HAND]:.1f}x the weights"
        for name in NAMES
        for task, ratio in over(run, name).items()
        if ratio < 1
    ]
    rest = [
        f"{words.spoken(n)} {figures.in_bytes(statistics.median(beside(run, n)))}"
        for n in (HAND, *NAMES)
    ]
    shared = [seen.rounds[0] for seen in run.times.values() if set(NAMES) <= set(seen.rounds[0])]
    total = {name: sum(row[name] for row in shared) for name in (HAND, "dynamo", "to_onnx")}
    return (
        f"For the {len(shared)} models that all get right, {words.spoken('dynamo')} writes {total['dynamo']:.0f} nodes and to_onnx {total['to_onnx']:.0f}; by hand, {total[HAND]:.0f} are enough",
        f"among the models that come out right, the graph has no more nodes than one written by hand: {words.listed(as_few(run, name) for name in NAMES)}",
        *(told(run, name) for name in NAMES),
        f"fewer nodes than by hand: {'; '.join(fewer) or 'none'}",
        f"bytes for each node, weights left out (medians): {', '.join(rest)}",
    )


def beside(run: benchmark.Run, name: str) -> list[float]:
    """The bytes of each file that are no weights, for each node."""
    found = {t: row for t, row in run.facts["bytes"].items() if name in row}
    numbers = run.facts["weights"]
    return [(row[name] - numbers[t][name]) / run[t].rounds[0][name] for t, row in found.items()]


def draw(run: benchmark.Run) -> None:
    """A row for each model."""
    from exportlab.measure import seconds

    (axes,) = figures.panels("Nodes of the graph, by model", height=1.3 + 0.21 * len(run.times))
    seconds.draw_models(axes, run.times, [HAND, *NAMES], title="nodes: fewer is better", unit="")


def table(run: benchmark.Run) -> list[tables.Table]:
    """The nodes of every file."""
    return [
        tables.compared(run.times, HAND, unit="nodes", title="Nodes of the graph: fewer is better")
    ]


page.open(finding, draw, table)

# %%
# Models and smallest graphs
# --------------------------
#
# A task is a model, its inputs, and a graph in ONNX's text format. The graphs use standard operators at opset 20, as all exporters here
# do. Weights may be folded but not duplicated, overflow must not occur earlier than in eager, and ``Einsum`` isn't allowed, because it
# hides many steps. A ``Constant`` isn't counted, because it computes nothing.


class Of(nn.Module):
    """A function of one input, and of parts that hold weights."""

    def __init__(self, function: Callable[..., Any], *parts: nn.Module) -> None:
        super().__init__()
        self.function, self.parts = function, nn.ModuleList(parts)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.function(x, *self.parts)


class OfTwo(Of):
    """The same of two inputs."""

    def forward(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        return self.function(x, y, *self.parts)


class Task:
    """A model and its inputs; then inputs, outputs and nodes of the graph by hand, and its weights."""

    def __init__(self, module: nn.Module, *inputs: Any, text: str, **weights: torch.Tensor) -> None:
        self.module, self.inputs, self.text, self.weights = module, inputs, text, weights

    def built(self) -> Built:
        """The module with inputs of five sizes, empty ones and single ones among them."""
        return case(dims=DIMS)(lambda: (self.module, self.inputs)).build()

    def by_hand(self, built: Built) -> exporters.OnnxArtifact:
        """The file by hand, called like the module."""
        header = f'<ir_version: 10, opset_import: ["": {OPSET}]>'
        file = onnx.parser.parse_model(f"{header} hand {self.text}")
        arrays = {n: weight.detach().contiguous().numpy() for n, weight in self.weights.items()}
        stored = [onnx.numpy_helper.from_array(array, name) for name, array in arrays.items()]
        file.graph.initializer.extend(stored)
        args = built.samples[0].args
        calling = by_example(args, {}, built.module(*args))
        return exporters.OnnxArtifact(ir.from_proto(file), calling, HAND)


DIMS = {"batch": (2, 3, 1, 0, 4), "seq": (5, 7, 1, 4, 3), "long": (5, 7, 3, 4, 9)}
torch.manual_seed(0)
tasks: dict[str, Task] = {}
number = torch.tensor

# %%
# Layers and normalisation. A linear layer is one ``Gemm`` for two dimensions and two nodes for three.

layers = nn.Sequential(nn.Linear(16, 32), nn.ReLU(), nn.Linear(32, 8))
w, b, v, c = layers.parameters()
tasks["layers"] = Task(
    layers, tensor("batch", 16), w=w, b=b, v=v, c=c,
    text="""(float[B, 16] x) => (float[B, 8] y) {
        h = Gemm<transB = 1>(x, w, b)  r = Relu(h)  y = Gemm<transB = 1>(r, v, c) }""",
)  # fmt: skip
tasks["layers, three axes"] = Task(
    layers, tensor("batch", "seq", 16), w=w.T, b=b, v=v.T, c=c,
    text="""(float[B, S, 16] x) => (float[B, S, 8] y) {
        h = MatMul(x, w)  i = Add(h, b)  r = Relu(i)  o = MatMul(r, v)  y = Add(o, c) }""",
)  # fmt: skip
layer_norm, rms_norm = nn.LayerNorm(16), nn.RMSNorm(16, eps=1e-5)
for weight in (*layer_norm.parameters(), *rms_norm.parameters()):
    nn.init.normal_(weight)
tasks["layer norm, GELU"] = Task(
    nn.Sequential(layer_norm, nn.GELU()), tensor("batch", "seq", 16), w=layer_norm.weight, b=layer_norm.bias,
    text="""(float[B, S, 16] x) => (float[B, S, 16] y) {
        n = LayerNormalization<axis = -1, epsilon = 1e-5>(x, w, b)  y = Gelu(n) }""",
)  # fmt: skip
tasks["RMS norm"] = Task(
    rms_norm, tensor("batch", "seq", 16), last=number([-1]), eps=number(16e-5), w=rms_norm.weight * 16**0.5,
    text="""(float[B, S, 16] x) => (float[B, S, 16] y) {
        t = ReduceSumSquare(x, last)  e = Add(t, eps)  r = Sqrt(e)  d = Div(x, r)  y = Mul(d, w) }""",
)  # fmt: skip

# %%
# An image: the statistics of a batch norm can be folded into the convolution before it.

conv, norm, head = nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.Linear(8, 4)
norm.running_mean.normal_()
norm.running_var.uniform_(0.5, 2)
one = fuse_conv_bn_eval(conv.eval(), norm.eval())
tasks["conv, norm, pool"] = Task(
    nn.Sequential(conv, norm, nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), head),
    tensor("batch", 3, 8, 8), w=one.weight, b=one.bias, v=head.weight, c=head.bias, plane=number([2, 3]),
    text="""(float[B, 3, 8, 8] x) => (float[B, 4] y) {
        h = Conv(x, w, b)  r = Relu(h)  m = ReduceMean<keepdims = 0>(r, plane)
        y = Gemm<transB = 1>(m, v, c) }""",
)  # fmt: skip

# %%
# Attention. Opset 23 has one node for it, ``Attention``. At opset 20 the causal mask has to be computed for the length of the call.

tasks["causal attention"] = Task(
    Of(lambda x: F.scaled_dot_product_attention(x, x, x, is_causal=True)),
    tensor("batch", 4, "seq", 8), scale=number(8**-0.5), one=number(1),
    text="""(float[B, 4, S, 8] x) => (float[B, 4, S, 8] y) {
        q = Mul(x, scale)  k = Transpose<perm = [0, 1, 3, 2]>(x)  s = MatMul(q, k)
        n = Shape(s)  f = ConstantOfShape<value = float[1] {-inf}>(n)  t = Trilu(f, one)
        m = Add(s, t)  p = Softmax(m)  y = MatMul(p, x) }""",
)  # fmt: skip


def turned(x: torch.Tensor, at: torch.Tensor, cos: nn.Embedding, sin: nn.Embedding) -> torch.Tensor:
    """Rotary positions, from tables: the second half of the features, negated, comes before the first."""
    half = torch.cat((-x[..., 4:], x[..., :4]), -1)
    return x * cos(at).unsqueeze(2) + half * sin(at).unsqueeze(2)


angles = torch.outer(torch.arange(16), 0.1 ** torch.arange(4)).repeat(1, 2)
cos, sin = (nn.Embedding.from_pretrained(one) for one in (angles.cos(), angles.sin()))
signed = sin.weight * number([-1] * 4 + [1] * 4)
tasks["rotary positions"] = Task(
    OfTwo(turned, cos, sin), tensor("batch", "seq", 4, 8), integers("batch", "seq", high=16),
    cos=cos.weight[:, None], sin=signed[:, None], swap=number([4, 5, 6, 7, 0, 1, 2, 3]),
    text="""(float[B, S, 4, 8] x, int64[B, S] at) => (float[B, S, 4, 8] y) {
        c = Gather(cos, at)  s = Gather(sin, at)  h = Gather<axis = -1>(x, swap)
        a = Mul(x, c)  d = Mul(h, s)  y = Add(a, d) }""",
)  # fmt: skip
tasks["heads apart"] = Task(
    Of(lambda x: x.view(x.shape[0], x.shape[1], 4, 4).transpose(1, 2)),
    tensor("batch", "seq", 16), shape=number([0, 0, 4, 4]),
    text="""(float[B, S, 16] x) => (float[B, 4, S, 4] y) {
        h = Reshape(x, shape)  y = Transpose<perm = [0, 2, 1, 3]>(h) }""",
)  # fmt: skip
words_of_50 = nn.Embedding(50, 16)
tasks["tied embedding"] = Task(
    Of(lambda ids, embedding: F.linear(embedding(ids), embedding.weight), words_of_50),
    integers("batch", "seq", high=50), w=words_of_50.weight,
    text="""(int64[B, S] ids) => (float[B, S, 50] y) {
        h = Gather(w, ids)  t = Transpose(w)  y = MatMul(h, t) }""",
)  # fmt: skip

# %%
# Indexing, and writing into a part of a tensor.


def masked(x: torch.Tensor, mask: torch.Tensor) -> torch.Tensor:
    """Some elements become 0."""
    y = x.clone()
    y[mask] = 0
    return y


def written(x: torch.Tensor, part: torch.Tensor) -> torch.Tensor:
    """Two columns are replaced; how many there are moves."""
    y = x.clone()
    y[:, 1:3] = part
    return y


tasks["masked set"] = Task(
    OfTwo(masked), tensor("batch", 8), flags("batch", 8), zero=number(0.0),
    text="(float[B, 8] x, bool[B, 8] mask) => (float[B, 8] y) { y = Where(mask, zero, x) }",
)  # fmt: skip
tasks["slice assignment"] = Task(
    OfTwo(written), tensor("batch", "long", 8), tensor("batch", 2, 8),
    zero=number([0]), one=number([1]), three=number([3]), end=number([2**62]),
    text="""(float[B, S, 8] x, float[B, 2, 8] part) => (float[B, S, 8] y) {
        a = Slice(x, zero, one, one)  c = Slice(x, three, end, one)
        y = Concat<axis = 1>(a, part, c) }""",
)  # fmt: skip
tasks["last token"] = Task(
    OfTwo(lambda x, n: x[torch.arange(x.shape[0]), n - 1]),
    tensor("batch", "long", 8), integers("batch", low=1, high=4), one=number([1]),
    text="""(float[B, S, 8] x, int64[B] n) => (float[B, 8] y) {
        i = Sub(n, one)  j = Unsqueeze(i, one)  y = GatherND<batch_dims = 1>(x, j) }""",
)  # fmt: skip

# %%
# Branches and loops, including the nodes of their bodies.

tasks["cond"] = Task(
    Of(lambda x: torch.cond(x.sum() > 0, lambda x: x * 2, lambda x: x - 1, (x,))),
    tensor("batch", 8), zero=number(0.0), one=number(1.0), two=number(2.0),
    text="""(float[B, 8] x) => (float[B, 8] y) {
        s = ReduceSum<keepdims = 0>(x)  p = Greater(s, zero)
        y = If(p) <then_branch = a () => (float[B, 8] d) { d = Mul(x, two) },
                   else_branch = b () => (float[B, 8] e) { e = Sub(x, one) }> }""",
)  # fmt: skip


def faded(state: torch.Tensor, row: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
    """One step: what was, halved, and what is new."""
    state = state * 0.5 + row
    return state, state.clone()


tasks["scan"] = Task(
    Of(lambda x: torch._higher_order_ops.scan(faded, torch.zeros(8), x)[1]),
    tensor("long", 8), start=torch.zeros(8), half=number(0.5),
    text="""(float[S, 8] x) => (float[S, 8] y) {
        last, y = Scan<num_scan_inputs = 1,
            body = step (float[8] s, float[8] r) => (float[8] t, float[8] u) {
                h = Mul(s, half)  t = Add(h, r)  u = Identity(t) }>(start, x) }""",
)  # fmt: skip

# %%
# Verification of the hand-written graphs
# ---------------------------------------
#
# The hand-written models are compared with eager at every size, and a wrong one stops this page. The ``Identity`` in the last graph,
# for example, looks redundant. Without it the model passes ONNX's checker, but then:

built = {task: made.built() for task, made in tasks.items()}
hand = {task: made.by_hand(built[task]) for task, made in tasks.items()}
for task, made in built.items():
    verify(hand[task], made.module, made.samples).check()

smaller = tasks["scan"].text.replace("float[8] u)", "float[8] t)").replace("u = Identity(t)", "")
fewer = Task(tasks["scan"].module, text=smaller, **tasks["scan"].weights).by_hand(built["scan"])
onnx.checker.check_model(ir.to_proto(fewer.model), full_check=True)
print(verify(fewer, built["scan"].module, built["scan"].samples[:2]))

# %%
# Exports
# -------
#
# The same models, inputs and sizes. ``torch.onnx.export`` is also run without its optimiser.


def exported(name: str, made: Built) -> Attempt:
    """What one exporter makes of one model, held against eager."""
    exporter, _, raw = name.partition(", ")
    options = {"opset_version": OPSET, **({"optimize": False} if raw else {})}
    tried = exporters.get(exporter)
    return attempt(tried, made.module, made.samples, made.dynamic_shapes, **options)


def nodes(artifact: exporters.OnnxArtifact) -> Counter[str]:
    """What computes, by kind."""
    return artifact.ops() - Counter(Constant=artifact.ops()["Constant"])


def weights(artifact: exporters.OnnxArtifact) -> int:
    """Bytes of all numbers in the file."""
    constants = [
        n.attributes.get("value")
        for n in artifact.model.graph.all_nodes()
        if n.op_type == "Constant"
    ]
    stored = [value.const_value for value in artifact.model.graph.initializers.values()]
    return sum(tensor.nbytes for tensor in [*stored, *(c.value for c in constants if c)])


chosen = list(tasks)[:: 3 if page.quick else 1]
tried = {task: {name: exported(name, built[task]) for name in NAMES} for task in chosen}
right = {
    task: {n: a.artifact for n, a in row.items() if a.outcome == "ok"} | {HAND: hand[task]}
    for task, row in tried.items()
}

# %%
# If an exporter needs fewer nodes than the hand-written model, without more weights, that model isn't minimal and the page stops here.

for task, row in right.items():
    least = nodes(hand[task]).total()
    beaten = [
        n for n, a in row.items() if nodes(a).total() < least and weights(a) <= weights(hand[task])
    ]
    assert not beaten, (task, beaten)

# %%
# Additional nodes of each export compared with the hand-written model, and refusals:


def row_of(task: str, name: str) -> dict[str, Any]:
    """One line of the table."""
    found = tried[task][name]
    if name not in right[task]:
        return {
            "model": task,
            "exporter": name,
            "nodes": found.outcome,
            "more than by hand": found.row()["what was seen"],
        }
    count, least = nodes(found.artifact), nodes(hand[task])
    more = ", ".join(f"{op} {n}" for op, n in (count - least).most_common())
    return {
        "model": task,
        "exporter": name,
        "nodes": f"{count.total()} for {least.total()}",
        "more than by hand": more,
    }


show.table(
    [row for task in chosen for name in NAMES if (row := row_of(task, name))["more than by hand"]]
)

# %%
# Results
# -------

counts = {
    task: timing.Timings((), ({name: nodes(a).total() for name, a in row.items()},))
    for task, row in right.items()
}
facts = {
    "bytes": {t: {n: a.stats().bytes for n, a in row.items()} for t, row in right.items()},
    "weights": {t: {n: weights(a) for n, a in row.items()} for t, row in right.items()},
}
run = page.keep(counts, unit="integer", facts=facts)
page.close(run, finding, draw, table)

# %%
# A grey mark means the same nodes as the hand-written model; no mark means that the export was refused or wrong. Apart from its
# weights, a model contains names, shapes and metadata about your code, which don't matter in a model of many megabytes.

(axes,) = figures.panels("Bytes for each node, weights left out", height=2.8)
figures.bars(axes, {name: beside(run, name) for name in (HAND, *NAMES)}, unit="B")

# %%
# How to write a model that needs fewer nodes
# -------------------------------------------
#
# Most additional nodes compute a position or a shape. Code without indices and shapes needs fewer nodes. Here are three of the
# functions in another form, with the nodes of each export:

body = nn.Sequential(conv, norm, nn.ReLU())
rewritten = {
    "masked set": OfTwo(lambda x, mask: torch.where(mask, 0.0, x)),
    "slice assignment": OfTwo(lambda x, part: torch.cat((x[:, :1], part, x[:, 3:]), 1)),
    "conv, norm, pool": Of(lambda x, body, head: head(body(x).mean((2, 3))), body, head),
}


def again(task: str) -> dict[str, Any]:
    """One line: the nodes of the same function in other words, which must give what the first gives."""
    old = built[task]
    new = Built(rewritten[task].eval(), old.samples, old.dynamic_shapes)
    verify(hand[task], new.module, new.samples).check()
    found = {n: exported(n, new) for n in NAMES if n in exporters.available()}
    right = {
        n: nodes(a.artifact).total() if a.outcome == "ok" else a.outcome for n, a in found.items()
    }
    return {"model": task, HAND: nodes(hand[task]).total(), **right}


show.table([again(task) for task in rewritten])

# %%
# What this does not show
# -----------------------
#
# Speed: a fused node can cost more than three small ones. We chose the models, and the hand-written graphs are the smallest that *we*
# know. Other tasks may give another order of exporters.
#
# If your model is slow or large, count its nodes and look for ``Shape``, ``Expand`` and ``ScatterND``, which come from code like the
# examples above. Next: :doc:`the time until the first result <start_up>`.
