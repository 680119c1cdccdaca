"""Compute and draw after how many calls one way of running a model is ahead of another."""

from __future__ import annotations

from ..show.table import Table
from .benchmark import Run

MODELS = ("MLP", "ResNet-50", "BERT-base")


def summary(run: Run, model: str) -> str:
    return ""


def draw(run: Run) -> None: ...


def table(run: Run) -> list[Table]:
    return []
