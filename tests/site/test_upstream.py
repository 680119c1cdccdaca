"""What is told of others on docs/upstream.md: each script still fails, each is on the page, and the table of hunts is what is stored."""

from __future__ import annotations

import json
import re
import runpy
from pathlib import Path

import pytest

from exportlab.messages import root

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs/upstream.md").read_text(encoding="utf-8")
SCRIPTS = sorted((ROOT / "docs/upstream").glob("*.py"))
HUNTS = [json.loads(line) for line in (ROOT / "docs/data/hunts.jsonl").read_text(encoding="utf-8").splitlines()]
FAILS = {
    "adaptive_pool_of_a_moving_size": (AssertionError, r"torch.Size\(\[1, 2, 4, 4\]\) != torch.Size\(\[1, 2, 3, 3\]\)"),
    "aimv2_without_a_causal_mask": (AssertionError, r"\('sdpa', 'a mask of ones'\): 0\.0\d"),
    "antialiasing_with_corners": (AssertionError, "Mismatched elements: 3 / 4"),
    "attention_of_three_axes": (AssertionError, "only 4D query, key, and value are supported"),
    "cast_to_float32_twice": (Exception, r"two nodes with same node name \(h_cast_to_fp32_node\)"),
    "clamps_of_one_tensor": (Exception, "Node input 'mul_min_1' is not a graph input, initializer, or output of a previous node"),
    "comparison_of_int64": (AssertionError, "wrong: Max, Min, Clip, Sign, ReduceMax, ReduceMin"),
    "group_norm_far_from_zero": (AssertionError, "Mismatched elements: 61 / 64"),
    "gru_of_a_moving_length": (AssertionError, r"torch.Size\(\[6, 3, 5\]\) != torch.Size\(\[9, 2, 5\]\)"),
    "hamming_window": (AssertionError, "Mismatched elements: 7 / 8"),
    "logcumsumexp_loses_small_numbers": (AssertionError, "Mismatched elements: 3 / 4"),
    "lstm_of_an_empty_batch": (AssertionError, "the process ended with -6"),
    "number_of_a_size": (AssertionError, r"torch.Size\(\[1, 2, 3, 3\]\) != torch.Size\(\[1, 2, 2, 3\]\)"),
    "quantize_dynamic_and_value_info": (Exception, r"Inferred shape and existing shape differ in dimension 0: \(4\) vs \(8\)"),
    "rotary_of_one_row": (Exception, "'cos_cache' and 'sin_cache' are expected to have the same shape as input 'x', got 1 and 5"),
    "sigmoid_is_zero_too_soon": (AssertionError, "Mismatched elements: 1 / 3"),
    "scale_that_leaves_a_size": (AssertionError, r"Mismatched elements: \d+ / 150"),
    "shape_inference_of_reduce_max": (TypeError, "object of type 'NoneType' has no len"),
    "text_of_a_number": (AssertionError, "Mismatched elements: 2 / 2"),
}
OF_THE_PROCESSOR = {"comparison_of_int64"}


@pytest.mark.parametrize("script", SCRIPTS, ids=lambda script: script.stem)
def test_a_script_still_shows_its_bug(script: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    raised = _raised_by(script)
    if raised is None and script.stem in OF_THE_PROCESSOR:
        pytest.skip("not seen on this processor")
    assert raised is not None, f"{script.name} runs: it is fixed upstream, and the page is to say so"
    kind, said = FAILS[script.stem]
    assert isinstance(raised, kind)
    assert re.search(said, str(raised))


def _raised_by(script: Path) -> BaseException | None:
    try:
        runpy.run_path(str(script))
    except Exception as error:  # noqa: BLE001 - whatever it raises is held against what it is known by
        return root(error)
    return None


def test_every_script_has_its_place_on_the_page() -> None:
    shown = re.findall(r"```\{literalinclude\} upstream/(\w+)\.py", PAGE)
    assert sorted(shown) == sorted(FAILS) == [script.stem for script in SCRIPTS]


def test_the_page_names_the_versions_that_are_pinned() -> None:
    pinned = dict(line.split("==") for line in (ROOT / "constraints.txt").read_text(encoding="utf-8").splitlines() if "==" in line)
    told = dict(re.findall(r"(torch|onnxscript|onnxruntime|transformers|onnx) (\d+\.\d+\.\d+)", PAGE))
    assert told == {name: pinned[name].partition("+")[0] for name in told}
    assert told.keys() == {"torch", "onnxscript", "onnxruntime", "transformers", "onnx"}


def test_the_table_of_hunts_is_what_is_stored() -> None:
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in PAGE.splitlines() if re.match(r"\| (torch\.|to_onnx)", line)]
    names = {"dynamo": "torch.onnx.export"}
    by_exporter: dict[str, list[float]] = {}
    for hunt in HUNTS:
        for exporter, counts in hunt["exporters"].items():
            told = by_exporter.setdefault(names.get(exporter, exporter), [0] * 5)
            for i, count in enumerate([sum(counts.values()), *(counts[column] for column in ("right", "refused", "wrong", "crashed"))]):
                told[i] += count
    assert {row[0]: row[1:] for row in rows} == {name: [str(count) for count in counts] for name, counts in by_exporter.items()}
    programs, minutes = (sum(hunt[name] for hunt in HUNTS) for name in ("programs", "minutes"))
    assert f"{programs} programs in {minutes:g} minutes" in re.sub(r"\s+", " ", PAGE)
