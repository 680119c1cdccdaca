"""
Who exports what, and what is silently wrong?
=============================================

Every case of the zoo goes through every exporter, with every size as in the example (*static*) and with the named axes moving (*dynamic*),
and the result is held against eager. First come the totals of the stored sweep: what is right, what is refused, and what is wrong without a
word. Then a few cases are run again, to see whether they come out as stored.
"""

import tempfile
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from datetime import datetime
from pathlib import Path

from matplotlib import pyplot
from matplotlib.axes import Axes

from exportlab import show, zoo
from exportlab.files import written_whole
from exportlab.measure import benchmark, figures, timing
from exportlab.messages import muffled
from exportlab.outcomes import Outcome
from exportlab.sweep import Limits, grid, records, sweep
from exportlab.sweep.changes import worst
from exportlab.sweep.records import Record

page = benchmark.page(
    "coverage",
    "Who exports what, and what is silently wrong?",
    quick="also runs 8 cases again by 2 exporters",
)
STORED = benchmark.DATA.parent.parent / "docs" / "data" / "matrix.jsonl"
KINDS = {
    "silent": [Outcome.WRONG, Outcome.FROZEN],
    "failed": [Outcome.RUN, Outcome.LOAD, Outcome.TIMEOUT, Outcome.CRASH],
    "refused": [Outcome.CAPTURE, Outcome.CONVERT],
    "right": [Outcome.OK],
}
COLORS = {kind: outcomes[0].color for kind, outcomes in KINDS.items()}
KIND = {outcome: kind for kind, outcomes in KINDS.items() for outcome in outcomes}
HARD, LEAST = 8, 3  # families that are shown; cases that a family needs to be among them

Name = str | tuple[str, str]
Totals = dict[Name, Counter[str]]


def totals(found: Iterable[Record], by: Callable[[Record], Name]) -> Totals:
    """How many runs were of each kind, by whatever they are counted by."""
    counted: Totals = {}
    for record in found:
        counted.setdefault(by(record), Counter())[KIND[record.outcome]] += 1
    return counted


def shares(counted: Counter[str]) -> dict[str, float]:
    """Each kind in percent of all runs."""
    return {kind: 100 * counted[kind] / counted.total() for kind in KINDS}


def by_family(found: Iterable[Record]) -> Totals:
    """All exporters together, those with the smallest share of right ones first; small families are left out."""
    of = {case.name: case.family for case in zoo.cases()}
    known = [record for record in found if record.case in of]
    sizes = Counter(of[name] for name in {record.case for record in known})
    counted = totals(
        [r for r in known if sizes[of[r.case]] >= LEAST], lambda record: of[record.case]
    )
    return dict(sorted(counted.items(), key=lambda item: shares(item[1])["right"]))


def by_exporter(found: Iterable[Record]) -> Totals:
    """Those that are silent least often first, then those that are right most often."""
    counted = totals(found, lambda record: record.exporter)
    parts = {name: shares(kinds) for name, kinds in counted.items()}
    ranked = sorted(counted, key=lambda name: (parts[name]["silent"], -parts[name]["right"]))
    return {name: counted[name] for name in ranked}


def finding(found: Sequence[Record]) -> benchmark.Lines:
    """Where axes move: each exporter, then the families."""
    moving = [record for record in found if record.mode == "dynamic"]
    parts = {name: shares(kinds) for name, kinds in by_exporter(moving).items()}
    told = [
        f"{n}: right {p['right']:.0f} %, silently wrong {p['silent']:.0f} %, refused {p['refused']:.0f} %"
        for n, p in parts.items()
    ]
    families = {name: shares(kinds) for name, kinds in by_family(moving).items()}
    hard = [f"{name} {families[name]['right']:.0f} %" for name in list(families)[:3]]
    silent = max(families, key=lambda name: families[name]["silent"])
    least, most = (choose(parts, key=lambda name: parts[name]["silent"]) for choose in (min, max))
    return (
        f"With axes that move, {least} writes a file that is silently wrong for {parts[least]['silent']:.0f} % of the cases, "
        f"{most} for {parts[most]['silent']:.0f} %",
        *told,
        f"hardest families, all exporters together: {', '.join(hard)} right",
        f"most often silently wrong: {silent}, {families[silent]['silent']:.0f} %",
    )


def draw(found: Sequence[Record]) -> None:
    """By exporter and by family, where axes move."""
    moving = [record for record in found if record.mode == "dynamic"]
    names, families = by_exporter(moving), by_family(moving)
    height = 1.6 + 0.3 * max(len(names), min(len(families), HARD))
    left, right = figures.panels("Outcomes where axes move, % of the runs", 2, height=height)
    stacked(left, names, "by exporter")
    stacked(right, dict(list(families.items())[:HARD]), "hardest families")
    handles, labels = left.get_legend_handles_labels()
    left.figure.legend(
        handles, labels, loc="outside lower center", ncols=4, frameon=False, fontsize=figures.SIZE
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
    return [worst(rounds) for rounds in records.groups(records.read(STORED)).values()]


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
# A run is one case, by one exporter, in one mode. *right* is ``ok``. *silent* is ``wrong`` or ``frozen``: a file that runs, and answers something
# else than the model. *refused* is ``capture`` or ``convert``: you know at once. *failed* is what the runtime did not take, and what never ended.
# :doc:`The outcomes </docs/outcomes>` are explained word by word.
#
# The cases are small and chosen to be difficult, one difficulty each. So the shares compare exporters with each other; they are not how
# often *your* model fails. Every share counts the cases that the exporter was tried on.

if stored and page.plot:
    with written_whole(page.plot) as draft:
        pyplot.savefig(draft, dpi=150)
counted = totals(stored, lambda record: (record.exporter, record.mode))
if stored and page.json:
    rows = {", ".join(who): timing.Timings((), (dict(+n),)) for who, n in counted.items()}
    page.keep(rows, unit="integer")


def row(name: str, mode: str, kinds: Counter[str]) -> dict[str, object]:
    """A line of the table, in percent."""
    percent = {kind: f"{part:.0f} %" for kind, part in shares(kinds).items()}
    return {"exporter": name, "mode": mode, **percent, "runs": kinds.total()}


show.table([row(*who, kinds) for who, kinds in sorted(counted.items())])

# %%
# Which families are hard, and for whom
# -------------------------------------
# What each exporter gets right of the hardest families, and what it gets silently wrong, where axes move. A family is a file of the zoo.

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
# Does it come out the same here?
# -------------------------------
# A few cases, chosen so that between them they show as many outcomes as they can, are run again: each in a process of its own, with a time
# limit. What differs is listed. All of them take an hour or more: ``make matrix-check``.

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
# Take the exporter that is never silent on what you do, before the one that is right most often: a refusal tells you its line. Look up your
# own kind of model in :doc:`the support matrix </docs/support>`, and verify your file at sizes that the export did not see. Next, one such model
# in depth: :doc:`a Llama by number of layers <llama_layers>`.
