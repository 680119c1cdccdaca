"""What Python asks of a number beside its value, its text or its type, is refused where a symbol would say something else."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from exportlab import to_onnx
from fx2onnx.errors import CaptureError

Asks = Callable[[Tensor, Any], Tensor]
AXES = ({0: "rows"}, None)


class Asking(nn.Module):
    """Asks for something of a number: of the one that it is given, or of the rows."""

    def __init__(self, asks: Asks, of_rows: bool) -> None:
        super().__init__()
        self.asks, self.of_rows = asks, of_rows

    def forward(self, x: Tensor, number: Tensor) -> Tensor:
        return self.asks(x, x.shape[0] if self.of_rows else number.item()) + number


TEXT: dict[str, Asks] = {
    "a text": lambda x, n: x + 1 if f"{n}" == "3" else x,
    "in a list": lambda x, n: x + 1 if f"{[n]}" == "[3]" else x,
    "str": lambda x, n: x + 1 if str(n) == "3" else x,
    "percent": lambda x, n: x + 1 if "%s" % n == "3" else x,  # noqa: UP031
    "among others": lambda x, n: x * {"3": 1.0, "5": 2.0}.get(str(n), 3.0),
}
LENGTH: dict[str, Asks] = {"its length": lambda x, n: x + len(str(n)), "the length of repr": lambda x, n: x + len(repr(n))}
TYPE: dict[str, Asks] = {
    "isinstance": lambda x, n: x + 1 if isinstance(n, int) else x,
    "type": lambda x, n: x + 1 if type(n) is int else x,
    "hasattr": lambda x, n: x + 1 if hasattr(n, "bit_length") else x,
}


def right_or_refused(asks: Asks, of_rows: bool, capture: str = "auto") -> None:
    model = Asking(asks, of_rows)
    try:
        program = to_onnx(model, (torch.rand(4, 2), torch.tensor(5)), dynamic_shapes=AXES, capture=capture)
    except CaptureError as error:
        refused = str(error)
    else:
        refused = ""
        check(program, model)
    assert not refused or "test_sym_to_string.py:" in refused


def check(program: Any, model: nn.Module) -> None:
    for rows, number in ((4, 5), (3, 3), (4, 3), (6, 4), (2, 8), (12, 10)):
        x, n = torch.rand(rows, 2), torch.tensor(number)
        torch.testing.assert_close(program(x, n)[0], model(x, n))


@pytest.mark.parametrize("of_rows", [True, False])
@pytest.mark.parametrize("capture", ["auto", "torch.export", "run"])
@pytest.mark.parametrize("name", TEXT)
def test_the_text_of_a_number_is_not_that_of_a_symbol(name: str, capture: str, of_rows: bool) -> None:
    with pytest.raises(CaptureError, match=r"text|__str__|__repr__|__format__"):
        to_onnx(Asking(TEXT[name], of_rows), (torch.rand(4, 2), torch.tensor(5)), dynamic_shapes=AXES, capture=capture)


@pytest.mark.parametrize("of_rows", [True, False])
@pytest.mark.parametrize("name", [*LENGTH, *TYPE])
def test_a_number_is_what_python_takes_it_for_or_is_refused(name: str, of_rows: bool) -> None:
    right_or_refused((LENGTH | TYPE)[name], of_rows)


@pytest.mark.parametrize("capture", ["torch.export", "run"])
@pytest.mark.parametrize("name", TYPE)
def test_so_is_one_that_is_read_by_either_capture(name: str, capture: str) -> None:
    right_or_refused(TYPE[name], of_rows=False, capture=capture)


class Cached(nn.Module):
    """Keeps positions by the text of their number, and says what it does."""

    def __init__(self) -> None:
        super().__init__()
        self.kept: dict[str, Tensor] = {}

    def forward(self, x: Tensor) -> Tensor:
        print(f"{x.shape} has {x.shape[0]} rows")
        key = f"pos2d_{x.shape[0]}"
        if key not in self.kept:
            self.kept[key] = torch.arange(x.shape[0])[:, None]
        return x + self.kept[key]


def test_the_text_of_a_size_is_given_where_it_is_a_key_or_printed() -> None:
    program = to_onnx(Cached(), (torch.rand(4, 2),), dynamic_shapes=({0: "rows"},))
    for rows in (1, 4, 7):
        x = torch.rand(rows, 2)
        torch.testing.assert_close(program(x)[0], Cached()(x))
