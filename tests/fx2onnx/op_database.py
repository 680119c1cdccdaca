"""Export and verify all operators of the database in torch's tests: `python tests/fx2onnx/op_database.py`."""

from __future__ import annotations

import argparse
import json
import sys
import time
import unittest
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import asdict, dataclass, replace
from functools import partial
from itertools import islice
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import torch
from crew import Lost, done
from operators import Call, longer, report_of
from torch.utils import _pytree as pytree

from exportlab.messages import first_line
from exportlab.outcomes import Outcome
from exportlab.verification.report import Report
from fx2onnx.errors import FrozenDimension, ToOnnxError

STORED = Path(__file__).with_suffix(".json")
DTYPES = {
    "float32": torch.float32,
    "int64": torch.int64,
    "float16": torch.float16,
    "bfloat16": torch.bfloat16,
    "bool": torch.bool,
}
MODES = ("static", "dynamic")
LEFT_OUT = "left out"
SERIOUS = (*Outcome, LEFT_OUT)
SAMPLES, WORKERS, LIMIT = 3, 2, 60  # samples of an operator, processes, seconds an operator may take
SEEDS = 8  # results that differ between them are random
ROUNDING = 1e-6  # of the largest element of a result: less is no error
LOOKED_AT = 40  # samples of which the ones to export are chosen
UNINITIALISED = {"empty", "empty_like", "empty_permuted", "empty_strided", "new_empty", "new_empty_strided", "resize_", "resize_as_"}
ANY_SIGN = {"linalg.eigh"}  # vectors, which are held by what they make, in ops/test_linalg_eigen.py
# Positions are not defined where elements are equal, as some integers are: eager sorts them otherwise where the processor has AVX-512.
VALUES_AND_POSITIONS = {"sort", "topk", "kthvalue", "mode"}
UNDEFINED = {  # checks that give an operator what it has no defined result for
    "bucketize": {"other values", "unseen size"},  # boundaries that do not ascend
    "searchsorted": {"other values", "unseen size"},  # the same
    "nn.functional.embedding_bag": {"unseen size"},  # offsets that do not ascend: eager returns what memory holds
    "masked.argmax": {"other values"},  # the mask moved along, so that it lets NaN through: any position
    "masked.argmin": {"other values"},  # the same
    # Segments that end behind the axis: eager returns what memory holds.
    **{f"_segment_reduce.{given}": {"other values", "unseen size"} for given in ("lengths", "offsets")},
    "take_along_dim": {"other values"},  # positions behind the axis: eager reads past the tensor
    # Singular matrices, of which info says that the result is none.
    **{f"linalg.{name}_ex": {"other values", "unseen size"} for name in ("inv", "solve", "cholesky")},
    "linalg.cond": {"unseen size"},  # rows that are repeated: the condition number of a singular matrix is what rounding leaves
    "matrix_exp": {"other values"},  # exponentials beyond the largest float32: infinite, or NaN of infinity minus infinity
    "sinh": {"other values"},  # 89, of which half the exponential is a float32, and the exponential that eager halves is not
    "special.laguerre_polynomial_l": {"other values"},  # products beyond the largest float32, which eager subtracts unrounded
    # Equal whole numbers, whose transform is one large number and zeros: a product leaves 4e-8 of that in their places.
    **{name: {"other values"} for name in ("fft.irfft", "fft.irfft2", "fft.irfftn", "fft.hfft", "fft.hfft2", "fft.hfftn")},
}


@dataclass(frozen=True)
class Task:
    """One operator in one dtype, static or with every axis free."""

    op: str
    dtype: str
    mode: str

    def __str__(self) -> str:
        return f"{self.op} {self.dtype} {self.mode}"


@dataclass(frozen=True)
class Result:
    """The most serious outcome of its samples, what was seen there, and how long all took."""

    task: Task
    outcome: str
    detail: str = ""
    seconds: float = 0.0


def database() -> dict[str, Any]:
    """torch's descriptions of operators, by name and variant."""
    sys.modules.setdefault("expecttest", SimpleNamespace(TestCase=unittest.TestCase))  # torch's tests derive a class from it
    from torch.testing._internal import common_methods_invocations as described

    described.wrapper_set_seed = lambda op, *args, **kwargs: op(*args, **kwargs)  # so that two seeds tell what is random
    return {f"{op.name}.{op.variant_test_name}".rstrip("."): op for op in described.op_db}


def tasks(names: Iterable[str] = (), dtypes: Iterable[str] = DTYPES, modes: Iterable[str] = MODES) -> list[Task]:
    """What there is to do for these operators (all when none is named), in the dtypes that torch's CPU kernels take."""
    ops, dtypes, modes = database(), list(dtypes), list(modes)
    wanted = list(names) or list(ops)
    return [Task(n, d, m) for n in wanted for d in dtypes for m in modes if DTYPES[d] in ops[n].supported_dtypes("cpu")]


def samples(op: Any, dtype: torch.dtype, count: int) -> list[Any]:
    """This many of an operator's samples, spread over all of them, the same ones each time."""
    found = list(islice(op.sample_inputs("cpu", dtype, requires_grad=False), LOOKED_AT))
    return [found[i * len(found) // count] for i in range(count)] if len(found) > count else found


def outcome_of(task: Task, count: int = SAMPLES) -> Result:
    """Exports and verifies the samples of one task."""
    op, begin = database()[task.op], time.perf_counter()
    seen = [sample_outcome(op, sample, task) for sample in samples(op, DTYPES[task.dtype], count)]
    outcome, detail = min(seen, key=lambda pair: SERIOUS.index(pair[0]), default=(LEFT_OUT, "no samples"))
    return Result(task, outcome, detail, round(time.perf_counter() - begin, 2))


def sample_outcome(op: Any, sample: Any, task: Task, report_of: Callable[..., Report] = report_of) -> tuple[str, str]:
    """Returns the outcome of one sample, as `report_of` exports and verifies it, and what was seen."""
    args, kwargs = (sample.input, *sample.args), dict(sample.kwargs)
    if reason := _left_out(op, args, kwargs, task):
        return LEFT_OUT, reason
    try:
        report = report_of(
            lambda a, k: _defined(task, op.op(*a, **k)), args, kwargs, dynamic=task.mode == "dynamic", options={"mutations": "outputs"}
        )
    except FrozenDimension as error:
        return Outcome.CAPTURE, first_line(error)
    except ToOnnxError as error:
        return error.stage, _refusal(error)
    except Exception as error:  # noqa: BLE001 - whatever the converter raises is what this database reports
        return Outcome.CONVERT, f"bug: {first_line(error)}"
    report = replace(report, checks=tuple(check for check in report.checks if check.name not in UNDEFINED.get(task.op, ())))
    failed = next((check for check in report.checks if check.outcome == report.outcome and report.outcome is not Outcome.OK), None)
    unseen = failed is not None and failed.name == "unseen size"
    if unseen and _captured_for_some_sizes(Call(op.op, args, kwargs), args, kwargs):
        return Outcome.CAPTURE, "torch.export: what it captures is not right at the unseen size either"
    shown = map(longer, _tensors(args, kwargs)) if unseen else _tensors(args, kwargs)
    if failed and _is_rounding(report, _eager(Call(op.op, args, kwargs), [*shown], 0)):
        return Outcome.OK, "rounding"
    return report.outcome, f"{failed.name}: {failed.detail}" if failed else ""


def _is_rounding(report: Report, expected: Any) -> bool:
    """Whether all that is off is far smaller than the largest element, as where large numbers cancel, or one smallest float."""
    off = [check.worst for check in report.failed]
    leaves = [leaf for leaf in pytree.tree_leaves(expected) if leaf.is_floating_point() and leaf.numel()]
    largest = max((leaf.abs().max().item() for leaf in leaves), default=0)
    steps = [torch.finfo(leaf.dtype).smallest_normal * torch.finfo(leaf.dtype).eps for leaf in leaves]
    return all(worst is not None and worst <= max(ROUNDING * largest, *steps, 0) for worst in off)


def _tensors(args: Any, kwargs: Any) -> list[torch.Tensor]:
    return [leaf for leaf in pytree.tree_leaves((args, kwargs)) if isinstance(leaf, torch.Tensor)]


def _captured_for_some_sizes(call: Call, args: Any, kwargs: Any) -> bool:
    """Whether the program that torch.export captures does not do at the longer size what eager does."""
    tensors = tuple(_tensors(args, kwargs))
    axes = tuple({axis: torch.export.Dim.AUTO for axis, size in enumerate(tensor.shape) if size >= 2} for tensor in tensors)
    program = torch.export.export(call, tensors, dynamic_shapes=(axes,)).module()
    further = [longer(tensor) for tensor in tensors]
    outputs = [_eager(call, further, 0), _eager(program, further, 0)]
    if isinstance(outputs[1], Exception):
        return True
    sizes = [[leaf.shape for leaf in pytree.tree_leaves(output)] for output in outputs]
    return sizes[0] != sizes[1]


def _defined(task: Task, result: Any) -> Any:
    """The results that are defined: not the sign of vectors, nor positions of equal values, as where they make an axis longer."""
    some_are_equal = task.mode == "dynamic" or task.dtype in ("bool", "int64")
    return result[0] if (some_are_equal and task.op in VALUES_AND_POSITIONS) or task.op in ANY_SIGN else result


def _refusal(error: ToOnnxError) -> str:
    """The operators that are refused, and why, without where they are called."""
    lines = [line.strip() for line in str(error).splitlines() if line.startswith("  ") and not line.startswith("    ")]
    return " | ".join(lines) or first_line(error)


def _left_out(op: Any, args: Any, kwargs: Any, task: Task) -> str:
    """Why a sample says nothing about an export; empty when it does."""
    inputs = _tensors(args, kwargs)
    if task.op in UNINITIALISED:
        return "its values are what memory holds"
    if task.op == "argsort" and (task.mode == "dynamic" or task.dtype == "bool"):
        return "the order of equal values is not defined"
    if not inputs and task.mode == "dynamic":
        return "no tensor among the inputs"
    call = Call(op.op, args, kwargs)
    outputs = [_eager(call, inputs, seed) for seed in range(SEEDS)]
    if any(isinstance(output, Exception) for output in outputs):
        return f"eager refuses it: {first_line(outputs[0])}"
    first, *others = (pytree.tree_leaves(output) for output in outputs)
    if not first or not all(isinstance(leaf, torch.Tensor) for leaf in first):
        return "a result is no tensor"
    if any(leaf.is_complex() or leaf.layout != torch.strided for leaf in (*inputs, *first)):
        return "complex or sparse"
    if any(leaf.dtype == torch.bfloat16 for leaf in first):
        return "a result is bfloat16, which ONNX Runtime does not hand to numpy"
    same = all(torch.equal(a.nan_to_num(), b.nan_to_num()) for other in others for a, b in zip(first, other, strict=True))
    return "" if same else "random"


def _eager(call: Any, inputs: list[torch.Tensor], seed: int) -> Any:
    torch.manual_seed(seed)
    try:
        with torch.no_grad():
            return call(*[tensor.clone() for tensor in inputs])
    except Exception as error:  # noqa: BLE001 - torch's own samples for tests of errors
        return error


def run(wanted: list[Task], count: int = SAMPLES, workers: int = WORKERS) -> Iterator[Result]:
    """The results of all tasks, as they come."""
    database()
    for task, result in done(wanted, partial(outcome_of, count=count), workers, LIMIT):
        yield Result(task, **asdict(result)) if isinstance(result, Lost) else result


def stored() -> list[Result]:
    """What the stored list says: every task whose outcome is not ok."""
    return [Result(Task(**entry.pop("task")), **entry) for entry in json.loads(STORED.read_text())["not ok"]]


def store(results: Iterable[Result], count: int) -> None:
    """Writes the list: totals, and every task whose outcome is neither ok nor left out."""
    results = sorted(results, key=lambda r: str(r.task))
    entries = [asdict(r) for r in results if r.outcome not in (Outcome.OK, LEFT_OUT)]
    for entry in entries:
        del entry["seconds"]
    lines = ",\n".join(json.dumps(entry) for entry in entries)
    head = json.dumps({"torch": torch.__version__, "samples": count, "totals": totals(results)})[1:-1]
    STORED.write_text(f'{{{head},\n"not ok": [\n{lines}\n]}}\n')


def totals(results: Iterable[Result]) -> dict[str, dict[str, int]]:
    """How many tasks of each dtype and mode had each outcome."""
    counts = Counter((f"{r.task.dtype} {r.task.mode}", r.outcome) for r in results)
    kinds = sorted({kind for kind, _ in counts})
    return {kind: {outcome: counts[kind, outcome] for outcome in SERIOUS if counts[kind, outcome]} for kind in kinds}


def main() -> None:
    """The command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--dtype", nargs="+", choices=list(DTYPES), default=list(DTYPES))
    parser.add_argument("--static", action="store_true", help="only with the sizes of the samples")
    parser.add_argument("--dynamic", action="store_true", help="only with every axis free")
    parser.add_argument("--ops", nargs="+", default=[])
    parser.add_argument("--samples", type=int, default=SAMPLES)
    parser.add_argument("--write", action="store_true", help=f"store the list in {STORED.name}")
    asked = parser.parse_args()
    modes = [mode for mode in MODES if getattr(asked, mode)] or MODES
    results = []
    for result in run(tasks(asked.ops, asked.dtype, modes), asked.samples):
        results.append(result)
        if result.outcome not in (Outcome.OK, LEFT_OUT):
            print(f"{result.outcome:8} {result.task} ({result.seconds} s): {result.detail[:240]}", flush=True)
    for kind, counts in totals(results).items():
        print(kind, counts)
    if asked.write:
        store(results, asked.samples)


if __name__ == "__main__":
    main()
