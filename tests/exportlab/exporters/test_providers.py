"""Where an artifact runs, as records and benches are told."""

from __future__ import annotations

import json
from collections import Counter

import onnxruntime
import pytest
import torch
from torch import nn

from exportlab import export
from exportlab.bench.result import Bench
from exportlab.bench.ways import Eager
from exportlab.exporters.session import CPU, count_nodes_by_provider, describe_provider_shares, running_on
from exportlab.outcomes import Outcome
from exportlab.sweep import Limits
from exportlab.sweep.observe import where_it_ran
from exportlab.sweep.records import Record, environment
from exportlab.verification.comparison import Attempt

CUDA = "CUDAExecutionProvider"
LINE = f"{CUDA} is in this ONNX Runtime, but did not start: {CPU} was used instead"
MODEL, SAMPLE = nn.Linear(3, 2).eval(), (torch.ones(4, 3),)


def test_a_provider_that_does_not_start_is_in_the_record(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("onnxruntime.get_available_providers", lambda: [CUDA, CPU])
    artifact = export("to_onnx", MODEL, SAMPLE)
    with running_on([CUDA]):
        assert artifact.ran_on() == ()
        artifact.load()
        if artifact.ran_on()[0] == CUDA:
            pytest.skip("this machine has a GPU that ONNX Runtime can use")
        found = where_it_ran(Attempt("to_onnx", Outcome.OK, artifact))
    assert found == {"ran_on": (CPU,), "instead": LINE}


def test_a_provider_that_is_there_runs_it() -> None:
    there = [name for name in onnxruntime.get_available_providers() if name not in (CPU, CUDA)]
    if not there:
        pytest.skip("this ONNX Runtime has no provider beside the CPU's")
    artifact = export("to_onnx", MODEL, SAMPLE)
    artifact.load()
    with running_on(there[:1]):
        again = artifact.unloaded()
        again.load()
        nodes = count_nodes_by_provider(again.session)
        assert again.ran_on() == tuple(name for name, _ in nodes.most_common())
        assert again.instead() == describe_provider_shares(there[:1], nodes)
    assert artifact.ran_on() == (CPU,)


def test_a_provider_that_is_registered_and_computes_nothing_is_told() -> None:
    azure = "AzureExecutionProvider"
    if azure not in onnxruntime.get_available_providers():
        pytest.skip(f"this ONNX Runtime has no {azure}, which is registered and takes no node")
    artifact = export("to_onnx", MODEL, SAMPLE)
    with running_on([azure]):
        artifact.load()
        assert artifact.session.get_providers() == [azure, CPU]
        assert artifact.ran_on() == (CPU,)
        assert artifact.instead() == f"of 1 nodes {azure} computes 0, {CPU} computes 1"


def test_nodes_are_counted_where_one_provider_does_not_compute_all() -> None:
    assert (
        describe_provider_shares([CUDA], Counter({CUDA: 5}))
        == describe_provider_shares([CPU], Counter({CPU: 2}))
        == describe_provider_shares([CUDA], Counter())
        == ""
    )
    assert describe_provider_shares([CUDA, CPU], Counter({CUDA: 5, CPU: 2})) == f"of 7 nodes {CUDA} computes 5, {CPU} computes 2"


def test_what_torch_runs_has_a_device_and_no_provider() -> None:
    with running_on([CUDA]):
        assert "which does not run models of torch.export: cpu was used" in export("torch.export", MODEL, SAMPLE).instead()
    assert export("torch.export", MODEL, SAMPLE).instead() == ""
    assert Eager().export(MODEL).ran_on() == ("cpu",)
    assert Eager().export(nn.Linear(3, 2, device="meta")).ran_on() == ("meta",)


def test_records_on_another_provider_are_of_another_environment() -> None:
    assert environment(1)["id"] == environment(1, providers=(CPU,))["id"] != environment(1, providers=(CUDA,))["id"]
    assert environment(1, providers=(CUDA, CPU))["providers_asked"] == f"{CUDA}, {CPU}"
    with pytest.raises(TypeError, match="providers"):
        Limits(providers=CUDA)  # type: ignore[arg-type]


def test_a_record_keeps_where_it_ran_and_one_of_before_has_nothing() -> None:
    kept = Record("mlp", "to_onnx", "static", Outcome.OK, ran_on=(CUDA, CPU), instead=LINE)
    assert Record.of(json.loads(kept.line())) == kept
    assert Record.of({"case": "mlp", "exporter": "to_onnx", "mode": "static", "outcome": "ok"}).ran_on == ()


def test_a_bench_says_what_ran_where() -> None:
    eager = Record("m", "eager", "dynamic", Outcome.OK, ran_on=("cpu",))
    fallen = Record("m", "to_onnx", "dynamic", Outcome.OK, ran_on=(CPU,), instead=LINE)
    moved = Record("m", "dynamo", "dynamic", Outcome.OK, ran_on=(CUDA, CPU))
    assert Bench([eager, fallen]).places() == "all ran on the CPU"
    assert Bench([eager, fallen]).findings()[-1] == f"to_onnx: {LINE}"
    assert Bench([eager, moved]).places() == f"eager ran on the CPU; torch.onnx.export ran on {CUDA}"
    assert Bench([eager, fallen], [LINE]).elsewhere() == []
