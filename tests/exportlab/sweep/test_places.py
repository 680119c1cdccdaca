"""Where records were made: said of a sweep, and of two that were made in different places."""

from __future__ import annotations

from exportlab.outcomes import Outcome
from exportlab.sweep.changes import changes
from exportlab.sweep.devices import places
from exportlab.sweep.page.counts import Sweep
from exportlab.sweep.records import Record

CUDA = "CUDAExecutionProvider"


def record(exporter: str, *ran_on: str) -> Record:
    return Record("mlp", exporter, "static", Outcome.OK, ran_on=ran_on)


def test_what_ran_where_is_said_once_for_each_exporter() -> None:
    assert places([record("dynamo", CUDA), record("dynamo", CUDA), record("torch.export", "cpu")]) == (
        f"torch.onnx.export ran on {CUDA}; torch.export ran on the CPU"
    )
    assert places([record("dynamo", "CPUExecutionProvider"), record("torch.export", "cpu")]) == "all ran on the CPU"
    assert places([record("dynamo")]) == ""


def test_a_sweep_says_where_it_ran() -> None:
    environment = {"date": "2026-11-02 09:13:22", "torch_version": "2.13.0"}
    assert Sweep([record("dynamo", CUDA)], [environment]).made_with() == [
        *("torch 2.13.0", "2026-11-02", f"torch.onnx.export ran on {CUDA}"),
    ]
    assert Sweep([record("dynamo")], [environment]).made_with() == ["torch 2.13.0", "2026-11-02"]


def test_two_sweeps_that_ran_in_different_places_say_so() -> None:
    here, there = record("dynamo", "CPUExecutionProvider"), record("dynamo", CUDA)
    found = changes([here], [there])
    said = f"They did not run on the same device. First: all ran on the CPU. Second: torch.onnx.export ran on {CUDA}."
    assert str(found).startswith(said)
    assert said in repr(found)
    assert changes([here], [here]).moved == changes([record("dynamo")], [there]).moved == ""
