"""What one exporter leaves behind does not reach another: the outcome of a run does not depend on who else is swept."""

from __future__ import annotations

from pathlib import Path

import pytest

from exportlab.outcomes import Outcome
from exportlab.sweep import Task, sweep
from exportlab.sweep.process_worker import Limits, Setup


def test_an_exporter_that_changes_others_has_workers_of_its_own() -> None:
    setup = Setup(Limits(), ("dynamo", "to_onnx", "transformers"), True)
    assert setup.of("dynamo") == setup.of("to_onnx") == Setup(Limits(), ("dynamo", "to_onnx"), True)
    assert setup.of("transformers") == Setup(Limits(), ("transformers",), True)


@pytest.mark.parametrize("others", [(), ("transformers",)])
def test_a_run_ends_alike_whoever_else_is_swept(tmp_path: Path, others: tuple[str, ...]) -> None:
    tasks = [Task("llama_with_cache", exporter, "dynamic") for exporter in (*others, "dynamo")]
    assert sweep(tasks, tmp_path / "records.jsonl", processes=1)[-1].outcome is Outcome.CONVERT
