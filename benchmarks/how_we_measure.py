"""
How do we measure, and how often are we fooled?
===============================================

We time the same exporter again and again under two names, as if it were two: any difference that shows up is false. First comes how often
the rule of these pages and the naive way were fooled in the stored full run; then how each of them measures.
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
# One export, prepared anew each time: a fresh module, TorchDynamo's memory emptied. What is exported is right, or it would not be timed.

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
# By turns
# --------
# ``timing.interleaved`` measures A, B, then B, A, then A, B: a slow moment hits both, and neither is always first. The first round, which
# pays for what is done once, is discarded. The garbage of each call is collected before the next is timed, and what was alive at the start
# is not looked at. Torch, and ONNX Runtime where it runs, have one thread: two wait for each other when the machine is busy. A time is only
# divided by another of its own round. Six rounds make six ratios; a difference was seen if all lie on one side of 1. For equals that is the
# toss of a coin, six times alike: 1 time in 32. The interval that is printed goes from the lowest to the highest; of fewer rounds it is
# Student's where that is wider. "No difference seen" means that the interval holds 1, and nothing else.

rounds, count = 6, 12 if page.quick else 100
pairs = {number: {"A": make, "B": make} for number in range(count)}


def by_turns(clock: Callable[[], float]) -> timing.Timings:
    """All comparisons, one after the other in each round; their rounds strung together."""
    found = timing.interleaved(pairs, rounds, tell=page.tell, clock=clock)
    return timing.Timings((), tuple(seen for one in found.values() for seen in one.rounds))


with muffled():
    times = {TURNS: by_turns(time.perf_counter), CLOCK: by_turns(time.process_time)}

# %%
# The naive way
# -------------
# All of A, then all of B, by the clock on the wall; means are compared.


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
# What was seen
# -------------
# The processor's clock counts the seconds in which the processor worked for this process: what others do on the machine hardly moves it.
# The pages use it for exports, which work on one thread. What a rule calls no difference may still be one: it says only that so few rounds
# did not show it.

run = page.keep(times, facts={"rounds": rounds})
page.close(run, finding, draw)
if not page.quick:
    assert fooled(run, CLOCK) < 0.05, fooled(run, CLOCK)

# %%
# What this does not show
# -----------------------
# Errors that both names share: a slow processor, a wrong setting, a model that is not yours. And it was one exporter on one machine: on one where
# much else runs, a rule may be fooled more often.
#
# Measure by turns, and distrust a mean without a spread. Next: :doc:`how export time grows with depth <export_time>`.
