"""Refusals name operators and lines of the user's, no folder of the machine."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from modules import Of, Op, With
from torch import Tensor, nn

from exportlab import to_onnx
from fx2onnx.errors import UnsupportedArgument, UnsupportedOps, shown_path

X = torch.randn(4, 3)


def test_unsupported_ops_are_listed_at_once_with_lines() -> None:
    module = Op(lambda x: torch.linalg.svdvals(x) + torch.linalg.eigvalsh(x.T @ x))
    with pytest.raises(UnsupportedOps) as caught:
        to_onnx(module, (X,), fallback=False)
    text = str(caught.value)
    assert "aten.linalg_svdvals.default" in text
    assert "aten.linalg_eigvalsh.default" in text
    assert "tests/fx2onnx/modules.py:" in text
    assert "custom_translation_table" in text


COMPLEX = torch.ones(3, dtype=torch.complex64)


@pytest.mark.parametrize("capture", ["run", "torch.export"])
def test_a_complex_argument_and_a_complex_result_are_refused_by_name(capture: str) -> None:
    with pytest.raises(UnsupportedArgument, match=r"^x: ONNX Runtime does not compute with torch\.complex64.*view_as_real"):
        to_onnx(Of(lambda x: x * 2), (COMPLEX,), capture=capture)
    with pytest.raises(UnsupportedArgument, match=r"^the output mul is torch\.complex64.*view_as_real"):
        to_onnx(With(lambda module, x: x * module.turn, turn=COMPLEX), (X,), capture=capture)


def test_a_line_of_a_library_is_named_by_its_package() -> None:
    assert shown_path(str(Path(torch.__file__).parents[1] / "transformers/models/vit.py")) == "transformers/models/vit.py"
    assert shown_path(str(Path.cwd() / "mymodel.py")) == "mymodel.py"
    assert shown_path("/elsewhere/site-packages/timm/models/vit.py") == "timm/models/vit.py"
    assert shown_path("/elsewhere/mymodel.py") == "/elsewhere/mymodel.py"


@pytest.mark.parametrize("capture", ["run", "torch.export"])
def test_an_operator_that_fails_without_gradients_is_named_where_its_result_is_read_outside(capture: str) -> None:
    class Quiet(nn.Module):
        def forward(self, x: Tensor) -> Tensor:
            with torch.no_grad():
                y = torch.linalg.eigvals(x).real * 2
            return y + 1

    with pytest.raises(UnsupportedOps, match=r"cannot export aten\.linalg_eigvals\.default"):
        to_onnx(Quiet(), (torch.rand(3, 3),), capture=capture)
