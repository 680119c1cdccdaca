"""How often a model is run, and that it is run further where that does not tell enough."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from torch import nn

from exportlab import to_onnx, verify
from fx2onnx.paths import concrete_runs, trace_driver


@pytest.mark.parametrize(("rows", "refused", "sizes"), [(2, (), [7, 1, 2]), (1, (), [7, 1, 2]), (2, (7,), [7, 1, 5, 2])])
def test_it_is_run_at_few_sizes_and_at_more_where_few_tell(
    rows: int, refused: tuple[int, ...], sizes: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    run: list[int] = []
    traced = trace_driver.trace

    def noted(model: nn.Module, arguments: Any, *rest: Any, **named: Any) -> Any:
        run.append(len(arguments[0][0]))
        if run[-1] in refused:
            raise RuntimeError("a size that the model does not take")
        return traced(model, arguments, *rest, **named)

    for module in (concrete_runs, trace_driver):
        monkeypatch.setattr(module, "trace", noted)
    model = nn.Sequential(nn.Linear(4, 4), nn.ReLU())
    program = to_onnx(model, (torch.randn(rows, 4),), dynamic_shapes=({0: "rows"},), capture="run")
    assert run == sizes
    verify(program, model, [(torch.randn(n, 4),) for n in (1, 3, 50)]).check()
