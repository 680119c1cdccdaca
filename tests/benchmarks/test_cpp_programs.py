"""What the page on programs in C++ says first, computed a second time from the JSON of its stored run."""

from __future__ import annotations

import statistics
from collections.abc import Callable

from recomputed import Lines, all_of, check, named, over, rows, takes

FILE = "torch.onnx.export's file in ONNX Runtime"


def test_each_way_is_held_against_the_official_file(headline: Callable[[str], Lines]) -> None:
    seen, facts = rows("cpp_programs")
    model = facts["models"][-1]

    def beside(part: str) -> dict[str, list[float]]:
        row = seen[f"{model}, {part}"]
        return {name: over(taken, row["dynamo"]) for name, taken in row.items() if name != "dynamo"}

    first = {name: 1000 * statistics.median(taken) for name, taken in seen[f"{model}, first answer"].items()}
    weights = {name: parts["program"] + parts["libraries"] + parts["file"] for name, parts in facts["MB"].items()}
    held = {name: statistics.median(peak) / 1e6 for name, peak in seen[f"memory, {model}"].items()}
    check(
        headline("cpp_programs"),
        [
            f"A C++ program gives the first answer of the {model} in {first['executorch']:.9f} ms with ExecuTorch, "
            f"{first['dynamo']:.9f} ms with ONNX Runtime and {first['aoti']:.9f} ms with AOTInductor",
            f"to give the first answer of the {model}, in processor time, {takes(beside('first answer'), FILE)}",
            f"for a later call, {takes(beside('later call'), FILE)}",
            f"program, libraries and the {model}'s file weigh together: {in_megabytes(weights)}",
            f"at its peak the process holds {in_megabytes(held)}",
            f"outputs differ from eager's by at most {facts['apart']:.9e}",
        ],
    )


def in_megabytes(sizes: dict[str, float]) -> str:
    return all_of([f"{named(name)} {size:.9f} MB" for name, size in sizes.items()])


def test_the_first_answer_is_the_sum_of_its_parts() -> None:
    seen, facts = rows("cpp_programs")
    for model in facts["models"]:
        for name, whole in seen[f"{model}, first answer"].items():
            parts = [seen[f"{model}, {part}"][name] for part in ("start", "load", "first call")]
            for one, *taken in zip(whole, *parts, strict=True):
                assert abs(one - sum(taken)) < 1e-5
