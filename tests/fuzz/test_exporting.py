"""Hostile arguments of what exports, of what was exported, and of where it is saved to."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from hostile import KINDS_OF_PATH, NAMES, X, in_folder, made, modules, mostly, of_kind, path_in, tensors, values
from hypothesis import given
from hypothesis import strategies as st
from promise import promised
from torch import nn
from torch.export import Dim

from exportlab import export, to_onnx
from exportlab.exporters import artifact_of
from exportlab.patches import as_containers, for_model
from fx2onnx.program import Program

LINEAR = made("linear")
PROGRAM = to_onnx(LINEAR, (X,))
ARTIFACT = export("to_onnx", LINEAR, (X,))
CAPTURED = torch.export.export(LINEAR, (X,))
FLOOR = artifact_of(CAPTURED)

models = st.one_of(st.just(LINEAR), modules)
args = st.one_of(st.just((X,)), st.tuples(tensors))
shapes = st.one_of(st.none(), st.sampled_from([({0: "batch"},), {"input": {0: "batch"}}, [{0: Dim.AUTO}], ({0: Dim("b", min=2)},)]))
kinds = st.sampled_from(KINDS_OF_PATH)


@given(
    mostly(
        exporter=st.sampled_from(["to_onnx", "torch.export"]),
        module=models,
        args=args,
        kwargs=st.none(),
        dynamic_shapes=shapes,
        train=st.booleans(),
        input_names=st.none(),
    )
)
def test_export(given: dict[str, Any]) -> None:
    said = Exception if given["exporter"] == "torch.export" else ()  # what an exporter raises is raised as it is
    promised(lambda: export(**given), module=given["module"], passes=(said,) if said else ())


TRAINING = [torch.onnx.TrainingMode.EVAL, torch.onnx.TrainingMode.PRESERVE, torch.onnx.TrainingMode.TRAINING]
OPTIONS: dict[str, st.SearchStrategy[Any]] = {
    "model": models, "args": args, "f": st.none(), "kwargs": st.none(), "verbose": st.none(), "input_names": st.none(),
    "output_names": st.none(), "opset_version": st.none() | st.integers(17, 27), "dynamo": st.just(True), "external_data": st.booleans(),
    "dynamic_shapes": shapes, "custom_translation_table": st.none(), "report": st.booleans(), "optimize": st.booleans(),
    "verify": st.booleans(), "profile": st.booleans(), "dump_exported_program": st.booleans(), "artifacts_dir": st.just("."),
    "export_params": st.just(True), "keep_initializers_as_inputs": st.just(False), "dynamic_axes": st.none(),
    "training": st.sampled_from(TRAINING), "operator_export_type": st.just(torch.onnx.OperatorExportTypes.ONNX),
    "do_constant_folding": st.just(True), "custom_opsets": st.none(), "export_modules_as_functions": st.just(False),
    "autograd_inlining": st.just(True), "strict": st.just(False), "functions": st.sampled_from([(), True, (nn.Linear,)]),
    "mutations": st.sampled_from(["error", "outputs"]), "fallback": st.booleans(), "accept_ranges": st.just(()),
}  # fmt: skip


@given(mostly(**OPTIONS))
def test_to_onnx(given: dict[str, Any]) -> None:
    with in_folder() as folder:
        promised(lambda: to_onnx(**given), module=given["model"], writes=folder, passes=(OSError,))


@given(
    st.sampled_from([PROGRAM, ARTIFACT]),
    args | values.map(lambda value: (value,)),
    st.dictionaries(st.sampled_from(NAMES), values, max_size=1),
)
def test_a_call_of_what_was_exported(exported: Any, args: Any, kwargs: Any) -> None:
    promised(lambda: exported(*args, **kwargs))


@given(st.sampled_from([PROGRAM, ARTIFACT, FLOOR]), kinds | values, st.sampled_from([str, Path]))
def test_save(exported: Any, place: Any, typed: Any) -> None:
    with in_folder() as folder:
        path = typed(path_in(folder, place)) if of_kind(place) else place
        promised(lambda: exported.save(path), writes=folder)


@given(kinds | values)
def test_to_onnx_saved(place: Any) -> None:
    with in_folder() as folder:
        path = path_in(folder, place) if of_kind(place) else place
        promised(lambda: to_onnx(LINEAR, (X,), path), writes=folder)


@given(st.dictionaries(st.sampled_from(["weight", "bias", "other", ""]), values, max_size=2) | values)
def test_apply_weights(weights: Any) -> None:
    program = Program(PROGRAM.model.clone(), CAPTURED, PROGRAM.report)
    promised(lambda: program.apply_weights(weights))


@given(mostly(model=models, args=args, kwargs=st.none()))
def test_for_model(given: dict[str, Any]) -> None:
    def use() -> None:
        with for_model(**given):
            pass

    promised(use, module=given["model"])


@given(st.lists(values, max_size=2))
def test_as_containers(classes: Any) -> None:
    def use() -> None:
        with as_containers(*classes):
            pass

    promised(use)
