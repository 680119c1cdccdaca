"""Runs the benchmarks into build/bench/: what each found, its figures as PNG and SVG, its run as pyperf JSON, and a page that shows them.

usage: bench_pages.py [NAME …] [--full] [-o FOLDER]        NAME: latency, memory, …; all without one
"""

from __future__ import annotations

import argparse
import json
import os
import runpy
import subprocess
import sys
import time
from dataclasses import asdict, dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]
SCRIPTS = ROOT / "benchmarks"
SEEN = "seen.json"
PNG, SVG = "png", "svg"


@dataclass(frozen=True)
class Ran:
    """One benchmark that ran to its end: how, how long, and how it ended."""

    name: str
    kind: str
    seconds: float
    code: int

    def figures(self, folder: Path) -> list[str]:
        """Return the names of its figures, without their endings."""
        return [path.stem for path in sorted(folder.glob(f"{self.name}-*.{SVG}"))]

    def said(self, folder: Path) -> str:
        """Return what it printed."""
        return (folder / f"{self.name}.txt").read_text(encoding="utf-8").strip()


def names() -> list[str]:
    """Return the benchmarks that there are."""
    return sorted(path.stem for path in SCRIPTS.glob("*.py"))


def main() -> int:
    """Run them one after the other; Ctrl-C leaves those that are done."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0], allow_abbrev=False)
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(names()))
    parser.add_argument("--full", action="store_true", help="the whole measurement, of hours, and not the quick one")
    parser.add_argument("-o", "--output", type=Path, default=ROOT / "build/bench", metavar="FOLDER", help="build/bench by default")
    parser.add_argument("--one", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if unknown := set(given.names) - set(names()):
        parser.error(f"no benchmark {', '.join(sorted(unknown))}: there are {', '.join(names())}")
    if given.one:
        return draw_one(given.names[0], given.full, given.output)
    given.output.mkdir(parents=True, exist_ok=True)
    return run_all(given.names or names(), "full" if given.full else "quick", given.output)


def run_all(chosen: list[str], kind: str, folder: Path) -> int:
    """Run each, and write the page anew after each."""
    seen = before(folder)
    print(f"{len(chosen)} benchmarks, {kind}, into {folder}; Ctrl-C keeps those that are done", flush=True)
    failed = []
    for number, name in enumerate(chosen, 1):
        print(f"{number} of {len(chosen)}: {name}, {describe_expected_time(seen.get(name), kind)}", flush=True)
        try:
            ran = run_one(name, kind, folder)
        except KeyboardInterrupt:
            print(f"interrupted in {name}; what is done is on {folder / 'index.html'}", flush=True)
            return 130
        print(f"  {'done' if ran.code == 0 else 'failed'} after {ran.seconds:.0f} s", flush=True)
        failed += [name] * bool(ran.code)
        seen[name] = ran
        write_page(seen, folder)
    print(f"the page is {folder / 'index.html'}; figures, what was said and pyperf JSON are beside it")
    if failed:
        print(f"{', '.join(failed)} failed: the end of what was said is on the page", file=sys.stderr)
    return int(bool(failed))


def describe_expected_time(last: Ran | None, kind: str) -> str:
    """Say how long it may take, as far as that is known."""
    if last is None or last.kind != kind:
        return "which may take hours" if kind == "full" else "which may take some minutes"
    return f"which took {last.seconds:.0f} s the last time"


def before(folder: Path) -> dict[str, Ran]:
    """Return what was run into this folder before."""
    path = folder / SEEN
    return {row["name"]: Ran(**row) for row in json.loads(path.read_text(encoding="utf-8"))} if path.exists() else {}


def run_one(name: str, kind: str, folder: Path) -> Ran:
    """Run one in a process of its own."""
    for old in folder.glob(f"{name}-*"):
        old.unlink()
    command = [sys.executable, str(Path(__file__)), name, "--one", "-o", str(folder), *(["--full"] if kind == "full" else [])]
    start = time.perf_counter()
    with (folder / f"{name}.txt").open("w", encoding="utf-8") as said:
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, [str(ROOT), os.environ.get("PYTHONPATH")]))}
        stderr = None if kind == "full" else subprocess.STDOUT  # a full run tells its progress there
        code = subprocess.run(command, stdout=said, stderr=stderr, cwd=ROOT, env=environment, check=False).returncode
    return Ran(name, kind, time.perf_counter() - start, code)


def draw_one(name: str, full: bool, folder: Path) -> int:
    """Run the script in this process, and write every figure that it drew."""
    import matplotlib

    matplotlib.use("agg")
    from matplotlib import pyplot

    from exportlab.measure import benchmark

    benchmark.Page.open = lambda *_: None  # type: ignore[method-assign]  # it shows the stored run, which the site has; here stands this one
    script = SCRIPTS / f"{name}.py"
    sys.argv = [str(script), *([] if full else ["--quick"]), "--json", str((folder / f"{name}.json").resolve())]
    runpy.run_path(str(script), run_name="__main__")
    for place, number in enumerate(pyplot.get_fignums(), 1):
        for suffix in (PNG, SVG):
            pyplot.figure(number).savefig(folder / f"{name}-{place}.{suffix}", dpi=150)
    return 0


def write_page(seen: dict[str, Ran], folder: Path) -> None:
    """Write the page of all that ran, and the list that the next call reads."""
    from exportlab.files import atomic_write
    from exportlab.show.templates import environment

    page = environment(Path(__file__).parent).get_template("bench_pages.html.j2").render(ran=list(seen.values()), folder=folder)
    for path, text in ((folder / "index.html", page), (folder / SEEN, json.dumps([asdict(one) for one in seen.values()], indent=1))):
        with atomic_write(path) as draft:
            draft.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())
