"""Of twelve models with a defect the doctor names the line, and what it prints is right when it is pasted."""

from __future__ import annotations

import importlib.util
import re
import sys
from functools import cache
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import torch
import twelve_models
from torch import nn

import exportlab
from exportlab import doctor, export, verify
from exportlab.cases import Sample
from exportlab.doctor import Diagnosis
from exportlab.doctor.findings import Finding
from exportlab.eager import called_once
from exportlab.exporters import from_file
from exportlab.verification.difference import difference_of

pytestmark = pytest.mark.usefixtures("as_if_nobody_had_registered_caches")
FILE = Path(twelve_models.__file__)
BOTH = ("to_onnx", "dynamo")
RECIPE, PASTE, WORDS = "the export that is right", "the lines", "advice alone"
CASES = {  # the exporters that are tried, whether it is silent in one of them, what is pasted, and the known error
    "running_norm": (BOTH, True, RECIPE, "buffer_that_stays"),
    "by_size": (BOTH, True, PASTE, "branch_on_a_size"),
    "ternary": (BOTH, True, PASTE, "branch_on_a_size"),
    "noisy": (BOTH, True, WORDS, None),
    "per_batch": (BOTH, True, RECIPE, "batch_norm_by_the_batch"),
    "early_return": (("dynamo",), False, PASTE, "branch_on_float"),
    "cached": (BOTH, False, RECIPE, "cache_of_transformers"),
    "custom_op": (BOTH, False, RECIPE, "custom_op_without_translation"),
    "row_by_row": (BOTH, False, RECIPE, "loop_over_rows"),
    "in_numpy": (BOTH, False, RECIPE, "numpy_in_forward"),
    "number": (("dynamo",), False, PASTE, "number_burnt_in"),
    "written": (("to_onnx",), False, RECIPE, None),
}


@cache
def diagnosis(name: str) -> Diagnosis:
    torch.set_num_threads(1)
    module, samples = getattr(twelve_models, name)()
    return doctor(module, *samples, exporters=CASES[name][0], seconds=600)


def first(name: str) -> Finding:
    return diagnosis(name).findings[0]


def line_of(name: str) -> int:
    return next(i for i, line in enumerate(FILE.read_text().splitlines(), 1) if line.endswith(f"# defect: {name}"))


@pytest.mark.parametrize("name", [name for name in CASES if name != "cached"])
def test_it_names_the_line_and_no_other_known_error(name: str) -> None:
    _, silent, _, known = CASES[name]
    finding = first(name)
    assert finding.place is not None
    assert finding.place.where.endswith(f"{FILE.name}:{line_of(name)}")
    assert finding.silent is silent
    assert (finding.known.name if finding.known else None) == known


@pytest.mark.parametrize("name", CASES)
def test_what_it_prints_is_right_when_it_is_pasted(name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    module, samples = getattr(twelve_models, name)()
    if CASES[name][2] is WORDS:
        assert (first(name).code, bool(first(name).fix)) == ("", True)
    elif CASES[name][2] is RECIPE:
        recipe_is_right(diagnosis(name), module, samples)
    elif first(name).code.startswith("# in place of"):
        lines_are_right(name, module, samples, tmp_path)
    else:
        argument_is_right(name, module, samples)


@pytest.mark.parametrize("name", ["by_size", "row_by_row"])
def test_it_says_that_to_onnx_is_right_as_it_stands_and_what_to_change_for_the_other(
    name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    found = diagnosis(name)
    assert (found.verdict.best.label if found.verdict.best else None) == "to_onnx"
    assert first(name).exporters == ("dynamo",)
    assert first(name).fix.endswith("; or use to_onnx, which exports this model correctly")
    recipe_is_right(found, *getattr(twelve_models, name)())


def test_a_cache_that_nobody_registered_is_taken_by_to_onnx_and_known_where_another_refuses_it() -> None:
    found = diagnosis("cached")
    assert found.verdict.best is not None
    assert found.verdict.best.label == "to_onnx"
    assert found.verdict.recipe[0].startswith("exportlab.export(")
    assert first("cached").exporters == ("dynamo",)
    assert first("cached").known is not None
    assert first("cached").known.name == "cache_of_transformers"


def test_a_file_that_leaves_an_argument_as_it_was_is_not_right_though_it_is_warned_of() -> None:
    finding = first("written")
    assert finding.stage == "warned"
    assert "the model writes into x, which the caller can read after the call; the exported model does not change it" in finding.defect
    assert [trial.label for trial in diagnosis("written").facts.tried if diagnosis("written").facts.is_right(trial)] == [
        'to_onnx, mutations="outputs"'
    ]


def recipe_is_right(found: Diagnosis, module: nn.Module, samples: list[Any]) -> None:
    names = {"exportlab": exportlab, "torch": torch, "module": module, "args": samples[0], "kwargs": {}}
    exec("\n".join(found.verdict.recipe), names)
    with exportlab.patches.for_model(module, samples[0]):
        artifact = from_file("model.onnx", samples[0], {}, called_once(module, Sample(samples[0])))
        verify(artifact, module, samples).check()


def lines_are_right(name: str, module: nn.Module, samples: list[Any], folder: Path) -> None:
    """The file with the lines in their place has the same answers, and can be exported."""
    fixed, _ = getattr(imported(replaced(first(name).code), folder), name)()
    given = [Sample(sample) for sample in samples]
    assert not any(difference_of(called_once(fixed, s), called_once(module, s)).problem for s in given)
    for exporter in CASES[name][0]:
        shapes = tuple({0: "batch"} for _ in samples[0])
        verify(export(exporter, fixed, given[0].args, given[0].kwargs, dynamic_shapes=shapes), fixed, given).check()


def replaced(code: str) -> str:
    """The file, with the lines in the place that their first line names."""
    head, _, new = code.partition("\n")
    found = re.fullmatch(r"# in place of \S+:(\d+)(?: to (\d+))?", head)
    assert found
    begin, end = int(found[1]), int(found[2] or found[1])
    lines = FILE.read_text().splitlines()
    text = "\n".join([*lines[: begin - 1], new, *lines[end:]])
    return text.replace("twelve::", "twelve_again::")  # an operator that is defined twice in a process may take the process with it


def imported(text: str, folder: Path) -> ModuleType:
    path = folder / "fixed_model.py"
    path.write_text(text)
    spec = importlib.util.spec_from_file_location("fixed_model", path)
    assert spec is not None
    assert spec.loader is not None
    module = sys.modules["fixed_model"] = importlib.util.module_from_spec(spec)  # TorchDynamo looks it up
    spec.loader.exec_module(module)
    return module


def argument_is_right(name: str, module: nn.Module, samples: list[Any]) -> None:
    given = []
    for x, temperature in samples:
        names = {"torch": torch, "temperature": temperature}
        exec(first(name).code, names)
        given.append((x, names["temperature"]))
    for exporter in BOTH:
        verify(export(exporter, module, given[0], dynamic_shapes=({0: "batch"}, None)), module, given).check()
