"""
Correct, refused and wrong exports by exporter
==============================================

Compare how many test cases each exporter exports correctly, how many it refuses, and how many give a wrong model without a warning.
Every case is exported with the sizes of the example (*static*) and with its named dimensions dynamic (*dynamic*), and compared with
eager.
"""

import tempfile
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime
from pathlib import Path

from matplotlib import pyplot
from matplotlib.axes import Axes

from content import zoo
from exportlab import show
from exportlab.files import written_whole
from exportlab.measure import benchmark, figures, timing, words
from exportlab.messages import muffled
from exportlab.outcomes import Mark, Outcome
from exportlab.sweep import Limits, grid, records, sweep
from exportlab.sweep.changes import find_worst_record
from exportlab.sweep.records import Record

page = benchmark.page(
    "coverage",
    "Who exports what, and what is silently wrong?",
    quick="also runs 8 cases again by 2 exporters",
)
STORED = benchmark.DATA.parent.parent / "docs" / "data" / "matrix.jsonl"
COLORS = {  # by what a run is counted as
    "silent": Outcome.WRONG.color,
    "warned": figures.lightened(Outcome.WRONG.color, 2),
    "failed": Outcome.RUN.color,
    "narrow": Outcome.NARROW.color,
    "refused": Outcome.CAPTURE.color,
    "masked": figures.lightened(Outcome.OK.color, 2),
    "right": Outcome.OK.color,
}
KINDS = tuple(COLORS)
SAID = {  # in a sentence
    "silent": "silently wrong",
    "warned": "wrong, but warned",
    "masked": Mark.MASKED.meaning,
}
ENOUGH = 50  # runs of which a share is made; fewer are counted
HARD = 8  # families that are shown

Name = str | tuple[str, str]
Totals = dict[Name, Counter[str]]


def kind_of(record: Record) -> str:
    """What a run is counted as."""
    return "right" if record.mark is Mark.OK else str(record.mark)


def totals(found: Iterable[Record], by: Callable[[Record], Name]) -> Totals:
    """How many runs were of each kind, by whatever they are counted by."""
    counted: Totals = {}
    for record in found:
        counted.setdefault(by(record), Counter())[kind_of(record)] += 1
    return counted


def shares(counted: Counter[str]) -> dict[str, float]:
    """Each kind in percent of all runs."""
    return {kind: 100 * counted[kind] / counted.total() for kind in KINDS}


def by_family(found: Iterable[Record]) -> Totals:
    """All exporters together, those with the smallest share of right ones first; families of few runs are left out."""
    of = {case.name: case.family for case in zoo.cases()}
    counted = totals([record for record in found if record.case in of], lambda r: of[r.case])
    large = {name: kinds for name, kinds in counted.items() if kinds.total() >= ENOUGH}
    return dict(sorted(large.items(), key=lambda item: shares(item[1])["right"]))


def by_exporter(found: Iterable[Record]) -> Totals:
    """Those that are silent least often first, then those that are right most often."""
    counted = totals(found, lambda record: record.exporter)
    parts = {name: shares(kinds) for name, kinds in counted.items()}
    ranked = sorted(counted, key=lambda name: (parts[name]["silent"], -parts[name]["right"]))
    return {name: counted[name] for name in ranked}


def counts(kinds: Counter[str]) -> str:
    """Each kind that there was, in numbers: `13 right, 3 silently wrong`."""
    return ", ".join(f"{kinds[k]} {SAID.get(k, k)}" for k in reversed(KINDS) if kinds[k])


def percents(kinds: Counter[str]) -> str:
    """Each kind that there was, in percent of all: `right 75 %, refused 25 %`."""
    return ", ".join(f"{SAID.get(k, k)} {percent(kinds, k)}" for k in reversed(KINDS) if kinds[k])


def percent(kinds: Counter[str], kind: str) -> str:
    """A share with a digit that counts: `17 %`, `0.7 %`."""
    share = 100 * kinds[kind] / kinds.total()
    return f"{share:.{0 if share >= 1 or not share else 1}f} %"


def extremes(found: Totals, kind: str, choose: Callable[..., float]) -> str:
    """The name that has the least or most of a kind, or those that have: `a in 3 of 400 (0.8 %) and b in …`."""
    end = choose(shares(kinds)[kind] for kinds in found.values())
    return words.listed(
        f"{words.spoken(name)} in {kinds[kind]} of {kinds.total()} cases ({percent(kinds, kind)})"
        for name, kinds in found.items()
        if shares(kinds)[kind] == end
    )


def apart(found: Totals) -> tuple[Totals, Totals]:
    """Those of which a share is made, and those that were tried on too few cases."""
    large = {name: kinds for name, kinds in found.items() if kinds.total() >= ENOUGH}
    return large, {name: kinds for name, kinds in found.items() if name not in large}


def finding(found: Sequence[Record]) -> benchmark.Lines:
    """Where axes move: each exporter, then the families."""
    moving = [record for record in found if record.mode == "dynamic"]
    large, small = apart(by_exporter(moving))
    families = by_family(moving)
    hard = [f"{n} {percent(families[n], 'right')} of {families[n].total()} runs" for n in families]
    silent = max(families, key=lambda name: shares(families[name])["silent"])
    return (
        f"With axes that move, the fewest silently wrong answers came from {extremes(large, 'silent', min)}, the most from {extremes(large, 'silent', max)}",
        *(
            f"{words.spoken(name)}, {kinds.total()} cases: {percents(kinds)}"
            for name, kinds in large.items()
        ),
        *(
            f"{words.spoken(name)} was tried with {kinds.total()} cases only: {counts(kinds)}"
            for name, kinds in small.items()
        ),
        f"right in the hardest families, all exporters together: {', '.join(hard[:3])}",
        f"most often silently wrong: {silent}, {percent(families[silent], 'silent')} of {families[silent].total()} runs",
    )


def draw(found: Sequence[Record]) -> None:
    """By exporter and by family, where axes move."""
    moving = [record for record in found if record.mode == "dynamic"]
    (names, _), families = apart(by_exporter(moving)), by_family(moving)
    height = 1.6 + 0.3 * max(len(names), min(len(families), HARD))
    left, right = figures.panels("Outcomes where axes move, % of the runs", 2, height=height)
    stacked(left, names, "by exporter")
    stacked(right, dict(list(families.items())[:HARD]), "hardest families")
    handles, labels = left.get_legend_handles_labels()
    left.figure.legend(
        handles,
        labels,
        loc="outside lower center",
        ncols=len(KINDS),
        frameon=False,
        fontsize=figures.SIZE,
    )


def stacked(axes: Axes, rows: Totals, title: str) -> None:
    """A bar a row, its parts coloured by kind: what is silently wrong begins at the left."""
    start = dict.fromkeys(rows, 0.0)
    for kind, color in COLORS.items():
        parts = {row: shares(counted)[kind] for row, counted in rows.items()}
        places = [-place for place in range(len(rows))]
        axes.barh(places, parts.values(), left=list(start.values()), color=color, label=kind)
        start = {row: start[row] + parts[row] for row in rows}
    figures.across(axes, rows, [0, 100], title, "%", log=False)
    axes.set_xticks([0, 50, 100])
    axes.set_xlim(0, 100)


def read() -> list[Record]:
    """The stored sweep, one record a run, that of its worst round; none where nothing is stored."""
    if not STORED.exists():
        return []
    return [find_worst_record(rounds) for rounds in records.groups(records.read(STORED)).values()]


def origin() -> str:
    """When the stored sweep was made, and with what."""
    made = list(records.environments(STORED).values())[-1]
    date = datetime.fromisoformat(made["date"])
    versions = [f"{name} {made[f'{name}_version']}" for name in ("torch", "onnxruntime")]
    return f"{date.day} {date:%B %Y}, {', '.join(versions)}"


stored = read()
if stored:
    page.begin(f"Sweep of {origin()}, {len(stored)} runs", finding(stored), lambda: draw(stored))
else:
    print("No sweep is stored yet: make matrix")

# %%
# What is counted
# ---------------
#
# A run is one case with one exporter in one mode. *right* is ``ok``. *silent* is ``wrong`` or ``frozen`` without a warning, and
# *warned* is the same with a warning that names the cause. *narrow* refuses a requested size with an error. *refused* is ``capture`` or
# ``convert``. *failed* is an error of the runtime, a crash or a timeout. :doc:`The outcomes </docs/outcomes>` are defined on their own
# page.
#
# The cases are small, and each contains one difficulty. The shares therefore compare exporters; they don't predict how often *your*
# model fails. Each share refers to the cases that the exporter was tested with; below 50 cases the number is shown instead.
#
# We developed ``to_onnx`` with these cases and fixed what they revealed, so it has an advantage.

if stored and page.plot:
    with written_whole(page.plot) as draft:
        pyplot.savefig(draft, dpi=150)
counted = totals(stored, lambda record: (record.exporter, record.mode))
if stored and page.json:
    rows = {", ".join(who): timing.Timings((), (dict(+n),)) for who, n in counted.items()}
    page.keep(rows, unit="integer")


def row(name: str, mode: str, kinds: Counter[str]) -> dict[str, object]:
    """A line of the table: in percent, or in numbers where there are few."""
    enough = kinds.total() >= ENOUGH
    told = {kind: percent(kinds, kind) if enough else str(kinds[kind]) for kind in KINDS}
    return {"exporter": name, "mode": mode, **told, "runs": kinds.total()}


show.table([row(*who, kinds) for who, kinds in sorted(counted.items())])

# %%
# The hardest families of cases
# -----------------------------
#
# For each family, the cases with dynamic dimensions that each exporter gets right, and those that are wrong without a warning. A family
# is a file of the test suite.

moving = [record for record in stored if record.mode == "dynamic"]
family_of = {case.name: case.family for case in zoo.cases()}
tried = totals(moving, lambda record: (family_of.get(record.case, ""), record.exporter))
names = list(by_exporter(moving))


def told(kinds: Counter[str] | None) -> str:
    """`5 of 9, 2 silent`; nothing where nothing was tried."""
    if kinds is None:
        return ""
    silent = f", {kinds['silent']} silent" if kinds["silent"] else ""
    return f"{kinds['right']} of {kinds.total()}{silent}"


hard = list(by_family(moving))[:HARD]
show.table([{"family": f, **{name: told(tried.get((f, name))) for name in names}} for f in hard])

# %%
# Comparison with the stored sweep
# --------------------------------
#
# A few cases, chosen to cover as many outcomes as possible, are run again, each in its own process with a time limit. Differences are
# listed. ``make matrix-check`` reruns all cases in an hour or more.

AGAIN, CASES = ("to_onnx", "torchscript"), 8


def covering(found: Sequence[Record]) -> list[str]:
    """Cases that show every outcome of these exporters that so many cases can show; the large ones are left out."""
    shows: dict[str, set[tuple[str, str, str]]] = {}
    small = {case.name for case in zoo.cases() if "transformers" not in case.topics}
    for record in found:
        if record.exporter in AGAIN and record.case in small:
            seen = record.exporter, record.mode, record.outcome
            shows.setdefault(record.case, set()).add(seen)
    chosen: list[str] = []
    while len(chosen) < min(CASES, len(shows)):
        shown = set().union(*(shows[case] for case in chosen))
        left = [case for case in shows if case not in chosen]
        chosen.append(max(left, key=lambda case: len(shows[case] - shown)))
    return chosen


def again(found: Sequence[Record]) -> list[str]:
    """A line for each run that did not come out as stored, and one that counts."""
    expected = {record.key[:3]: record.outcome for record in found}
    tasks = grid([zoo.get(name) for name in covering(found)], AGAIN)
    known = [task for task in tasks if task.key[:3] in expected]
    with tempfile.TemporaryDirectory() as folder, muffled():
        seen = sweep(known, Path(folder) / "again.jsonl", processes=1, limits=Limits(seconds=120))
    lines = [
        f"{r.case}, {r.exporter}, {r.mode}: {r.outcome}, {expected[r.key[:3]]} is stored"
        for r in seen
        if r.outcome != expected[r.key[:3]]
    ]
    count = f"{len(seen) - len(lines)} of {len(seen)} runs came out as stored"
    outcomes = Counter(record.outcome for record in seen)
    return [f"{count}: {', '.join(f'{n} {o}' for o, n in outcomes.most_common())}", *lines]


if page.quick and stored:
    print("\n".join(again(stored)))
elif not page.quick:
    print("The whole sweep: make matrix; held against the stored one: make matrix-check")

# %%
# What this does not show
# -----------------------
#
# How common your kind of model is: each case counts once, and we chose them. Many were written during the development of ``to_onnx``.
# :doc:`The atlas </docs/atlas>` tests models from other libraries.
#
# Prefer an exporter without silent failures for models like yours to the one with the most correct exports, because an error names the
# line. Look up your kind of model in :doc:`the support matrix </docs/support>`, and verify the exported model at other sizes. Next:
# :doc:`a Llama by number of layers <llama_layers>`.
