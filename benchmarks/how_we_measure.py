"""
Measurement error
=================

We time one exporter under two names, so each difference that we see is false. The stored run counts false differences for the rule that
our benchmarks use and for a simple comparison of means.
"""

# sphinx_gallery_parallel = False
import statistics
import time
from collections.abc import Callable

import torch
from torch import nn

from exportlab import to_onnx, verify
from exportlab.measure import benchmark, figures, timing
from exportlab.messages import muffled

page = benchmark.page(
    "how_we_measure", "How often are we fooled?", quick="12 comparisons instead of 100"
)
NAIVE, TURNS, CLOCK = "all of A, then all of B", "by turns", "by turns, processor's clock"


def comparisons(run: benchmark.Run, way: str) -> list[timing.Ratio]:
    """The ratios of A to B, one for each comparison."""
    ratio, rounds = run[way].ratio("A", "B"), run.facts["rounds"]
    return [timing.Ratio(ratio.seen[i : i + rounds]) for i in range(0, len(ratio.seen), rounds)]


def of_means(run: benchmark.Run) -> list[float]:
    """What the naive way compares: the mean of all A over the mean of all B."""
    rounds, times = run.facts["rounds"], run[NAIVE]
    starts = range(0, len(times.rounds), rounds)
    a, b = ([statistics.mean(times.of(name)[i : i + rounds]) for i in starts] for name in "AB")
    return [mean / other for mean, other in zip(a, b, strict=True)]


def fooled(run: benchmark.Run, way: str) -> float:
    """The share of comparisons in which a difference was seen; the naive way sees one where the means are 5 % apart."""
    if way == NAIVE:
        return statistics.mean(abs(ratio - 1) > 0.05 for ratio in of_means(run))
    return statistics.mean(ratio.differs for ratio in comparisons(run, way))


def finding(run: benchmark.Run) -> benchmark.Lines:
    """How often each way was fooled, and how much one export's time varies."""
    count = len(comparisons(run, TURNS))
    near = statistics.mean(abs(ratio.median - 1) > 0.05 for ratio in comparisons(run, CLOCK))
    seen = {way: round(count * fooled(run, way)) for way in (CLOCK, TURNS, NAIVE)}
    return (
        f"We compared an exporter with itself {count} times, and our rule saw a difference in {seen[CLOCK]} of them",
        f"timed by the clock on the wall, the same rule saw one in {seen[TURNS]} of {count}",
        f"with all of A timed before all of B, the means were more than 5 % apart in {seen[NAIVE]} of {count}; taken by turns, the medians were in {count * near:.0f}",
        noise(run),
    )


def noise(run: benchmark.Run) -> str:
    """How far the middle nine tenths of single exports reach, by each clock."""
    told = [
        f"{spread_of(run[way].of('A')):.2f} times by {name}"
        for way, name in ((TURNS, "the wall"), (CLOCK, "the processor"))
    ]
    return f"a slow export (the 95th percentile) takes longer than a fast one (the 5th): {' and '.join(told)}"


def spread_of(seconds: tuple[float, ...]) -> float:
    """The 95th of 100 times over the 5th."""
    cuts = statistics.quantiles(seconds, n=20)
    return cuts[-1] / cuts[0]


def draw(run: benchmark.Run) -> None:
    """A point for each comparison; the mark is their median."""
    (axes,) = figures.panels("An exporter compared with itself: a point a comparison")
    rows = {"means,\none after the other": of_means(run)}
    rows |= {"medians,\nby turns": [ratio.median for ratio in comparisons(run, TURNS)]}
    rows |= {
        "medians, by turns,\nprocessor's clock": [ratio.median for ratio in comparisons(run, CLOCK)]
    }
    figures.dots(axes, rows)


page.open(finding, draw)

# %%
# What is timed
# -------------
#
# One export, prepared again each time: a new module and an empty TorchDynamo cache. The exported model is verified first.

layers = [module for _ in range(2) for module in (nn.Linear(8, 8), nn.ReLU())]
model, x, moving = nn.Sequential(*layers).eval(), torch.randn(4, 8), ({0: "batch"},)
with muffled():
    program = to_onnx(model, (x,), dynamic_shapes=moving)
verify(program, model, [(x,), (torch.randn(7, 8),)]).check()


def make() -> Callable[[], object]:
    """What both names stand for."""
    torch._dynamo.reset()
    return lambda: to_onnx(model, (x,), dynamic_shapes=moving)


# %%
# Interleaved measurement
# -----------------------
#
# ``timing.interleaved`` measures A and B, then B and A, then A and B, so a slow moment affects both and neither is always first. It
# discards the first round, which pays one-time costs, and collects garbage before each call. PyTorch and ONNX Runtime use one thread.
#
# A time is divided only by another of the same round, so six rounds give six ratios. We report a difference if all six are on the same
# side of 1; for equal exporters this happens once in 32 comparisons. The printed interval is from the lowest to the highest ratio; for
# fewer rounds it is Student's interval if that is wider. "No difference seen" means that the interval contains 1.

rounds, count = 6, 12 if page.quick else 100
pairs = {number: {"A": make, "B": make} for number in range(count)}


def by_turns(clock: Callable[[], float]) -> timing.Timings:
    """All comparisons, one after the other in each round; their rounds strung together."""
    found = timing.interleaved(pairs, rounds, tell=page.tell, clock=clock)
    return timing.Timings((), tuple(seen for one in found.values() for seen in one.rounds))


with muffled():
    times = {TURNS: by_turns(time.perf_counter), CLOCK: by_turns(time.process_time)}

# %%
# Simple comparison of means
# --------------------------
#
# All runs of A, then all runs of B, in wall-clock time. The means are compared.


def naively(call: Callable[[], object]) -> float:
    """The seconds of one call, whatever garbage there is."""
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


def one_after_the_other() -> list[dict[str, float]]:
    """The rounds of one comparison."""
    a, b = ([naively(make()) for _ in range(rounds)] for _ in "AB")
    return [{"A": first, "B": then} for first, then in zip(a, b, strict=True)]


with muffled():
    naive = [seen for _ in range(count) for seen in one_after_the_other()]
times[NAIVE] = timing.Timings((), tuple(naive))

# %%
# Results
# -------
#
# The CPU clock counts the time that the processor worked for this process, so other programs hardly affect it. We use it for exports,
# which run on one thread. "No difference seen" doesn't prove equality: a few rounds may not reveal a difference.

run = page.keep(times, facts={"rounds": rounds})
page.close(run, finding, draw)
if not page.quick:
    assert fooled(run, CLOCK) < 0.05, fooled(run, CLOCK)

# %%
# .. _fair-comparison:
#
# How the comparison with to_onnx is kept fair
# --------------------------------------------
#
# ``to_onnx`` is the exporter of this site. All exporters are tested with the same models and inputs, and their results are compared with
# eager mode. Wrong models are not timed. Times are measured alternately on one machine, and a test computes each headline a second time.
#
# One advantage remains: we fixed ``to_onnx`` where this site showed it to be wrong or slow, but not the other exporters.
#
# In commands and records, ``dynamo`` is ``torch.onnx.export``, and ``torchscript`` is the legacy exporter (``dynamo=False``).

# %%
# What this does not show
# -----------------------
#
# Errors that affect both names, such as a slow processor, a wrong setting or an unusual model. The run covers one exporter on one
# machine; on a busier machine the rule may be wrong more often.
#
# Interleave your measurements, and don't trust a mean without a spread. Next: :doc:`export_time`.
