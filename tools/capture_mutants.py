"""Small changes of the code of capture, branches and loops, and which tests notice each: `python tools/capture_mutants.py [WORD …]`.

Each is made in a copy of the packages, never here. Words choose those whose file or description has one of them; all take half an hour.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parent.parent
CAPTURE = "fx2onnx/capture"
TESTS = "tests/fx2onnx/capture"
COPIED = ("fx2onnx", "exportlab", "tests", "pyproject.toml")
SECONDS = 300  # for the tests of one mutant

RUNNING = "running/test_by_running.py"
SILENT = "running/test_nothing_silent.py"
BRANCHES = "running/branches/test_branches.py"
REGIONS = "running/branches/test_regions.py"
LOOPS = "running/loops/test_loops.py"
BLOCKS = "running/test_equal_blocks.py"
INNER = "running/test_inner_graphs.py"
COPIES = "running/test_recorder.py"
UNIFIED = "running/test_unify.py"
EXPLAINED = "running/test_explain.py"
ATTRIBUTES = "test_attribute_mutation.py"
SHAPES = "test_dynamic_shapes.py"
PLAIN = "test_plain_numbers.py"


@dataclass(frozen=True)
class Mutant:
    """One change of a file: what it does in words, the text as it is, the text instead, and the tests that should notice.

    `survives` says why none does, where that is known.
    """

    file: str
    what: str
    old: str
    new: str
    tests: str
    survives: str = ""

    def changed(self, folder: Path) -> str:
        """Return the text of its file, changed.

        Raises:
            ValueError: the old text is not in it exactly once.
        """
        text = (folder / CAPTURE / self.file).read_text(encoding="utf-8")
        if text.count(self.old) != 1:
            raise ValueError(f"{self.file}: {self.old!r} is found {text.count(self.old)} times, for the mutant: {self.what}")
        return text.replace(self.old, self.new)


MUTANTS = (
    Mutant(
        "__init__.py",
        "what runs alone see is left to torch.export",
        "use)\n    except SeenByRunsAlone:\n        raise\n    except ToOnnxError as error:\n",
        "use)\n    except ZeroDivisionError:\n        raise\n    except ToOnnxError as error:\n",
        SILENT,
    ),
    Mutant(
        "dims.py",
        "accept_ranges may name no axis",
        "set(accept_ranges) - {",
        "set() - {",
        "../test_to_onnx.py::test_bad_arguments_are_refused_in_one_line",
    ),
    Mutant("guards.py", "what is undecided counts as implied", "return Decision(not boxes)", "return Decision(True)", "test_guards.py"),
    Mutant("program_guards.py", "guards of a program are dropped", "if kept:", "if False:", "test_program_guards.py"),
    Mutant("running/as_written.py", "long slices are left out", "if not isinstance(index, tuple) or", "if True or", "test_guards.py"),
    Mutant(
        "padded_encoders.py",
        "padding on the left is cleared, too",
        'getattr(self._encoder, "mask_check", True)',
        "False",
        "test_padded_encoders.py",
    ),
    Mutant("attribute_mutation.py", "what grows is no change", "if _extent(used, changed) != left:", "if False:", ATTRIBUTES),
    Mutant(
        "attribute_mutation.py",
        "attributes that a run made stay",
        "for name in attributes(child).keys() - kept.get(path, {}).keys():",
        "for name in ():",
        ATTRIBUTES,
    ),
    Mutant("dynamic_shapes.py", "parts may differ", "counterexample is not None or not (", "counterexample is not None and not (", SHAPES),
    Mutant("dynamic_shapes.py", "a test for one row is lost", "goal = found.test if own else", "goal = found.test if False else", SHAPES),
    Mutant("guards.py", "a number that is below one counts as a size", "and not is_of_a_number", "", PLAIN),
    Mutant("plain_numbers.py", "no guard is marked", "if len(guards) > before:", "if False:", PLAIN),
    Mutant("plain_numbers.py", "floats are not looked at", '("guard_int", "guard_float")', '("guard_int",)', PLAIN),
    Mutant("running/recorder.py", "autocast is not seen", 'if torch.is_autocast_enabled("cpu"):', "if False:", SILENT),
    Mutant("running/recorder.py", "a copy is read after what it was made of is written", "if self._stale and", "if False and", COPIES),
    Mutant("running/recorder.py", "a contiguous copy of a buffer may be written", "if tensor.is_contiguous() and", "if False and", COPIES),
    Mutant("running/recorder.py", "writes into inputs are not noted", "self.changed.update(", "set().update(", RUNNING),
    Mutant(
        "running/recorder.py",
        "sizes that values decide are taken",
        "if effects.decides_a_size(",
        "if False and effects.decides_a_size(",
        RUNNING,
    ),
    Mutant("running/trace.py", "buffers that are replaced are not seen", "check_buffers(model, buffers, recorder)", "pass", SILENT),
    Mutant("running/trace.py", "a refusal that the model catches is none", "raise recorder.refused\n", "pass\n", RUNNING),
    Mutant(
        "running/unify.py",
        "a constant is that of the first run",
        "if any(other is not first and (other is None or not equal(first, other)) for other in others):",
        "if False:",
        RUNNING,
    ),
    Mutant(
        "running/unify.py", "a call takes the tensor of the first run", "if any(value != first for value in values):", "if False:", UNIFIED
    ),
    Mutant("running/unify.py", "other runs may call more", "if len(other.rows) > len(self._rows):", "if False:", UNIFIED),
    Mutant("running/unify.py", "a size is what all runs show", "if sizes is None and special:", "if False:", UNIFIED),
    Mutant(
        "running/unify.py",
        "an equal block takes the tensors of the first run",
        "if any(a != b for a, b in zip(row.leaves, other.leaves, strict=True)",
        "if any(False for a, b in zip(row.leaves, other.leaves, strict=True)",
        UNIFIED,
    ),
    Mutant(
        "running/explain.py",
        "two terms explain three values",
        "if len(values) < 5:",
        "if len(values) < 3:",
        EXPLAINED,
    ),
    Mutant("running/explain.py", "a size is special only everywhere", "self._special[size] = any(", "self._special[size] = all(", RUNNING),
    Mutant(
        "running/explain.py",
        "what the first run says is not held against others",
        "not value.is_number or value != other",
        "not value.is_number",
        UNIFIED,
    ),
    Mutant(
        "running/sample.py",
        "all runs have the same values",
        "return made.mul_(1 - run / 64) if run and made.is_floating_point() else made",
        "return made",
        RUNNING,
    ),
    Mutant("running/sample.py", "it is never run at ones", "yield self.within(dict.fromkeys(self.example, 1))", "yield from ()", SILENT),
    Mutant("running/memory.py", "memory that is shared at some sizes is written", "if self._unsure and", "if False and", SILENT),
    Mutant(
        "running/memory.py",
        "inputs may be written at some sizes",
        "if any(other.changed != trace.changed for other in others):",
        "if False:",
        SILENT,
    ),
    Mutant("running/effects.py", "counts are known", "    aten.repeat_interleave.self_Tensor,\n", "", RUNNING),
    Mutant(
        "running/effects.py",
        "what a batch norm in training writes is not seen",
        "if func in HIDDEN_WRITES and args[TRAINING]:",
        "if False:",
        SILENT,
    ),
    Mutant(
        "running/operator_sizes.py",
        "what torch decides by sizes holds at all",
        "if seen and other is not None and",
        "if False and",
        SILENT,
    ),
    Mutant(
        "running/operator_sizes.py",
        "a slice may be shorter than nothing",
        "length, step = _positive(last - first),",
        "length, step = last - first,",
        SILENT,
    ),
    Mutant(
        "running/tracked_sizes.py",
        "elements become a constant",
        "if given and any(all(tensor is not leaf",
        "if False and any(all(tensor is not leaf",
        SILENT,
    ),
    Mutant(
        "running/tracked_sizes.py",
        "strides are numbers",
        "if not all(isinstance(size, int) for size in self._recorder.sizes(tensor)):",
        "if False:",
        RUNNING,
    ),
    Mutant("running/numbers.py", "a number changes with its tensor", "tensor.reshape(()).clone()", "tensor.reshape(())", BRANCHES),
    Mutant("running/numbers.py", "a number is given to integers", "or not tensors or not floats:", "or not tensors:", BRANCHES),
    Mutant(
        "running/inner_graphs.py",
        "sides may have other types",
        "if [t.dtype for t in answers] !=",
        "if False and [t.dtype for t in answers] !=",
        INNER,
    ),
    Mutant("running/inner_graphs.py", "what a function returns may be written", "if self._may_return_an_operand:", "if False:", INNER),
    Mutant(
        "running/equal_blocks.py",
        "blocks of one class are equal",
        "return same and difference(first.module, call.module, first.reads) is None",
        "return same",
        BLOCKS,
    ),
    Mutant(
        "running/equal_blocks.py",
        "a block that changes itself stands for others",
        "before != (snapshot(call.module), _versions(call.leaves)) or ",
        "",
        BLOCKS,
    ),
    Mutant(
        "running/equal_blocks.py",
        "notes of equal blocks need not agree",
        "self._agree.get((first.path, call.path), False)):",
        "True):",
        BLOCKS,
    ),
    Mutant(
        "running/as_written.py",
        "a mask takes one axis",
        "return entry.dim() if entry.dtype in MASKS else 1",
        "return 1",
        "running/test_as_written.py",
    ),
    Mutant(
        "running/runs.py",
        "few sizes on one side are enough",
        "if len(seen) < min(VARIETY",
        "if False and len(seen) < min(VARIETY",
        REGIONS,
    ),
    Mutant(
        "running/branches/paths.py",
        "another model at ones is as the others",
        "if all(guard.subs(setting) == sympy.true",
        "if False and all(guard.subs(setting) == sympy.true",
        SILENT,
    ),
    Mutant("running/runs.py", "libraries ask nothing", "if not self._run_asked():", "if True:", "test_of_libraries.py"),
    Mutant("of_libraries.py", "a library's side is the model's", "held.differs(dict(sizes))", "False", "test_of_libraries.py"),
    Mutant("running/runs.py", "one further run is enough", "FEWEST = 2 ", "FEWEST = 1 ", "running/test_settings.py"),
    Mutant(
        "running/numbered.py",
        "another number of axes is no error",
        "if leaf.dim() != len(value.sizes):",
        "if False:",
        "running/test_numbered.py",
    ),
    Mutant("running/work.py", "runs of any length are light", "self._left -= products", "self._left -= 0", "running/test_work.py"),
    Mutant("running/script.py", "an answer holds after a write", "any(_writes(row.op) for row in rows[asked:])", "False", BRANCHES),
    Mutant(
        "running/script.py",
        "an error made of another is deliberate",
        "error.__context__ is None and error.__cause__ is None and ",
        "",
        BRANCHES,
    ),
    Mutant(
        "running/branches/scope.py", "behind a test a view may be written", 'shown.count(changed.meta["val"].memory) > 1', "False", BRANCHES
    ),
    Mutant(
        "running/branches/joined.py",
        "the sides of a test of values are swapped",
        "for answer in (True, False)]\n            condition",
        "for answer in (False, True)]\n            condition",
        BRANCHES,
    ),
    Mutant(
        "running/branches/joined.py",
        "memory is that of one run",
        "setdefault(value.memory, memory) != memory:",
        "setdefault(value.memory, memory) < 0:",
        BRANCHES,
        "calls that paths share have equal sizes, and so equal memory; where strides of an argument decide that, a write is refused before",
    ),
    Mutant("running/branches/joined.py", "sizes of a side need fit once", "return all(_alike_at(", "return any(_alike_at(", REGIONS),
    Mutant(
        "running/branches/regions.py",
        "a size that became a number moves",
        "        self.limits |= dict.fromkeys(_constants_accepted(axes, self._symbols, self._accepted))\n",
        "",
        f"{RUNNING} {SILENT}",
    ),
    Mutant(
        "running/loops/checks.py",
        "numbers of further turns are not compared",
        "if found != (said := one.subs(at) if is_counted else first) and not alike(found, said):",
        "if False:",
        LOOPS,
    ),
    Mutant("running/loops/checks.py", "a test of a turn holds for all", "if used and not _holds", "if False and not _holds", LOOPS),
    Mutant("running/loops/turns.py", "counters of Python's own are not looked at", "if changed := [", "if changed := [] and [", LOOPS),
    Mutant("running/loops/turns.py", "a turn may read any before", "if made != loop.turn - 1:", "if False:", LOOPS),
    Mutant(
        "running/loops/replay.py",
        "loops are not held against the model at few turns",
        "if found is None or not equal_leaves(wanted, found):",
        "if False:",
        LOOPS,
    ),
    Mutant(
        "running/loops/rolling.py",
        "the first turn is dropped where it is read",
        "if user not in inside and not listed_beside_every(",
        "if False and not listed_beside_every(",
        LOOPS,
    ),
    Mutant(
        "running/loops/rolling.py",
        "a turn may read another view of what it writes",
        'if len({node.meta["val"].memory for node in found}) != len(found):',
        "if False:",
        LOOPS,
    ),
)


def noticed(mutant: Mutant, folder: Path) -> str:
    """Return the first test that fails in a copy in which this change is made; nothing if all pass."""
    file = folder / CAPTURE / mutant.file
    own = file.read_text(encoding="utf-8")
    file.write_text(mutant.changed(folder), encoding="utf-8")
    try:
        return first_failure(folder, mutant.tests.split())
    finally:
        file.write_text(own, encoding="utf-8")


def first_failure(folder: Path, tests: Sequence[str]) -> str:
    """Return which of these tests fails first, or that they take too long; nothing if all pass.

    Raises:
        RuntimeError: they could not be run.
    """
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-qx",
        "--no-header",
        "--tb=no",
        "-p",
        "no:cacheprovider",
        *(f"{TESTS}/{test}" for test in tests),
    ]
    environment = os.environ | {"PYTHONPATH": str(folder), "PYTHONDONTWRITEBYTECODE": "1", "OMP_NUM_THREADS": "1"}
    try:
        done = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=SECONDS, check=False)
    except subprocess.TimeoutExpired:
        return f"no end after {SECONDS} seconds"
    failed = [line.split(" - ")[0] for line in done.stdout.splitlines() if line.startswith(("FAILED", "ERROR"))]
    if done.returncode > 1 and not failed:
        raise RuntimeError(done.stdout + done.stderr)
    return failed[0] if failed else ""


def chosen(words: Sequence[str]) -> Iterator[Mutant]:
    """Yield the mutants whose file or description has one of these words; all if there are none."""
    return (mutant for mutant in MUTANTS if not words or any(word in f"{mutant.file} {mutant.what}" for word in words))


def main(words: Sequence[str]) -> int:
    """Print what became of each mutant; return how many came out otherwise than the table says."""
    mutants, killed, unexpected = list(chosen(words)), 0, 0
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        for part in COPIED:
            copy = shutil.copytree if (ROOT / part).is_dir() else shutil.copy
            copy(ROOT / part, folder / part)
        if failed := first_failure(folder, sorted({test for mutant in mutants for test in mutant.tests.split()})):
            raise SystemExit(f"without any change: {failed}")
        for mutant in mutants:
            failed = noticed(mutant, folder)
            killed += bool(failed)
            unexpected += bool(failed) == bool(mutant.survives)
            print(f"{mutant.file}: {mutant.what}: {failed or f'SURVIVES {mutant.survives}'}", flush=True)
    print(f"{killed} of {len(mutants)} killed, {unexpected} otherwise than the table says")
    return unexpected


if __name__ == "__main__":
    sys.exit(min(main(sys.argv[1:]), 1))
