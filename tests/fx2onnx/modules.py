"""Modules of one function: of the module itself and an input, of one input, of any."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from torch import Tensor, nn


class With(nn.Module):
    """A function of the module, which has these attributes, and of one input."""

    def __init__(self, function: Callable[..., Any], **attributes: Any) -> None:
        super().__init__()
        self.function = function
        for name, value in attributes.items():
            setattr(self, name, value)

    def forward(self, x: Tensor) -> Any:
        return self.function(self, x)


class Of(nn.Module):
    """A function of one input."""

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__()
        self.function = function

    def forward(self, x: Tensor) -> Any:
        return self.function(x)


class Op(nn.Module):
    """A module of one function."""

    def __init__(self, function: Any) -> None:
        super().__init__()
        self.function = function

    def forward(self, *args: Any) -> Any:
        return self.function(*args)
