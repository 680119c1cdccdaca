"""Determine whether an exporter honours an option by exporting with it and without it."""

from __future__ import annotations

import inspect
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from enum import StrEnum
from functools import cache
from typing import Any, NamedTuple

import torch

from exportlab import to_onnx

from .observed import Left, left
from .tried import Tiny, Try, X

WAYS: Mapping[str, tuple[Callable[..., Any], Mapping[str, Any]]] = {
    "torch.onnx.export": (torch.onnx.export, {}),
    "dynamo=False": (torch.onnx.export, {"dynamo": False}),
    "to_onnx": (to_onnx, {}),
}
REFUSALS = ("UnsupportedArgument", "TypeError")
"""The message that rejects an argument, for options that affect messages."""
NAMED = 3  # maximum number of removed and of added items to name


class Verdict(StrEnum):
    """The effect of an option."""

    HONOURED = "honoured"
    IGNORED = "ignored"
    REFUSED = "refused"
    NO_PARAMETER = "not a parameter"


class Found(NamedTuple):
    """A verdict, and the difference that the option makes."""

    verdict: Verdict
    differs: str


def found(way: str, tried: Try) -> Found:
    """Export with the option and without it.

    Raises:
        AssertionError: both exports fail with the same error, so the option can't be judged.
    """
    export, base = WAYS[way]
    if tried.name not in inspect.signature(export).parameters:
        return Found(Verdict.NO_PARAMETER, "")
    before = run_export(way, base | tried.given) if tried.given else plain(way)
    after = run_export(way, {**base, **tried.given, tried.name: tried.value})
    assert not before["error"] or before["error"] != after["error"], f"{tried} by {way}: {after['error']}"
    return judge_option(tried.about, before, after)


@cache
def plain(way: str) -> Left:
    """Return the observations of an export without options."""
    return run_export(way, WAYS[way][1])


def run_export(way: str, options: Mapping[str, Any]) -> Left:
    """Return the observations of an export with these options. The model is `Tiny` unless the options name another."""
    torch.manual_seed(0)
    return left(WAYS[way][0], **{"model": Tiny().eval(), "args": (X,), **options})


def judge_option(about: str, before: Left, after: Left) -> Found:
    """Return the verdict: refused if there is an unexpected error, honoured if the expected observation differs."""
    differs = {kind: difference(before.get(kind, []), there) for kind, there in after.items() if before.get(kind, []) != there}
    error = "".join(after["error"])
    if error and (about != "says" or error.startswith(REFUSALS)):
        return Found(Verdict.REFUSED, error)
    if about in differs:
        return Found(Verdict.HONOURED, f"{about}: {differs[about]}")
    return Found(Verdict.IGNORED, "; ".join(f"{kind}: {difference}" for kind, difference in differs.items()))


def difference(before: Sequence[str], after: Sequence[str]) -> str:
    """Describe in a few words what was removed and added."""
    old, new = Counter(before), Counter(after)
    gone, came = list((old - new).elements()), list((new - old).elements())
    if len(gone) == len(came) == 1:
        return f"{gone[0]} → {came[0]}"
    return " ".join(f"{sign} {_few(names)}" for sign, names in (("−", gone), ("+", came)) if names) or "in a different order"


def _few(names: Sequence[str]) -> str:
    return ", ".join(names[:NAMED]) + (f" and {len(names) - NAMED} more" if len(names) > NAMED else "")
