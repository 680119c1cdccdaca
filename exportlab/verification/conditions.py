"""Record the value-dependent decisions of a module in eager: conditions, masks and numbers that it reads, with their lines."""

from __future__ import annotations

import linecache
import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from types import FrameType
from typing import Any, NamedTuple

import torch
from torch import nn

from fx2onnx.compat.dispatch import TorchDispatchMode

from ..cases import Sample
from ..eager import fresh, run_calls
from .condition_source import part_of

TORCH = str(Path(torch.__file__).parent)
OURS = str(Path(__file__).parent)
ATTENTION = "scaled_dot_product_attention"
MASK_AT = {"where": 0, "masked_fill": 1, "masked_fill_": 1, "masked_scatter": 1, "masked_scatter_": 1, "masked_select": 1, ATTENTION: 3}
COUNTED = ("to", "_to_copy", "type_as", "mul", "mul_", "sum", "cumsum")  # operators that convert a mask to numbers
INDEXED = ("index", "index_put", "index_put_", "_index_put_impl_")
TESTS = ("isnan", "isinf", "isfinite", "nan_to_num", "nan_to_num_")
READS = ("item", "allclose", "_local_scalar_dense", "equal", "is_nonzero")
LONG = 70  # maximum number of characters of a source line


class Site(NamedTuple):
    """The location of a decision: the user's file and line, and its kind: a `condition`, a `number` or a `mask`.

    `part` is the expression of the condition if the line has several.
    """

    file: str
    line: int
    kind: str
    part: str = ""

    def shown(self) -> str:
        """Return the line with its source, or the part of it; include the file's name if there is a file."""
        source = self.part or linecache.getline(self.file, self.line).strip()
        source = source if len(source) <= LONG else f"{source[:LONG]}…"
        return f"{self.named()} `{source}`" if source else self.named()

    def named(self) -> str:
        """Return the line; include the file's name if there is a file."""
        name = f"{Path(self.file).name}:" if Path(self.file).suffix == ".py" and "ipykernel" not in self.file else "line "
        return f"{name}{self.line}"


Decisions = list[tuple[Site, Any]]
BySite = dict[Site, tuple[Any, ...]]
Shapes = tuple[torch.Size, ...]


@dataclass
class Conditions:
    """The values recorded at each site over all runs. For a mask: whether any element was masked, and whether all were.

    Attributes:
        runs: the sequence of decisions of each run at a site, by input shapes.
    """

    seen: dict[Site, set[Any]] = field(default_factory=dict)
    runs: dict[tuple[Site, Shapes], set[tuple[Any, ...]]] = field(default_factory=dict)

    def never_changed(self) -> dict[Site, Any]:
        """Return the sites with the same value in all runs, with that value."""
        return {site: next(iter(values)) for site, values in self.seen.items() if len(values) == 1}

    def open(self) -> set[Site]:
        """Return the sites with only one recorded value."""
        return set(self.never_changed())

    def moved(self) -> set[Site]:
        """Return the conditions and masks whose decisions changed between runs with the same shapes."""
        return {site for (site, _), runs in self.runs.items() if len(runs) > 1 and site.kind != "number"}

    @property
    def numbers(self) -> bool:
        """Whether the module reads a number, such as a loop count."""
        return any(site.kind == "number" for site in self.seen)

    def watch(self, module: nn.Module, calls: Sequence[Sample]) -> Decisions:
        """Run a copy of the module, record its decisions and return them in order.

        Raises:
            Errors of the module.
        """
        noted = record_decisions(lambda: run_calls(fresh(module), calls))
        for site, values in group_by_site(noted).items():
            self.seen.setdefault(site, set()).update(values)
            self.runs.setdefault((site, _shapes(calls)), set()).add(values)
        return noted


def _shapes(calls: Sequence[Sample]) -> Shapes:
    return tuple(leaf.shape for call in calls for leaf in call.leaves() if isinstance(leaf, torch.Tensor))


def record_decisions(run: Callable[[], Any]) -> Decisions:
    """Run a function and return the decisions in order. Errors are passed through."""
    watcher = _Watcher()
    with torch.compiler.set_stance("force_eager"), watcher:  # code that was compiled under a mode would fail without it
        run()
    return watcher.noted


def group_by_site(noted: Decisions) -> BySite:
    """Group decisions by site, in order."""
    found: dict[Site, list[Any]] = {}
    for site, value in noted:
        found.setdefault(site, []).append(value)
    return {site: tuple(values) for site, values in found.items()}


def describe_site(site: Site, value: Any) -> str:
    """Describe in words the value that a site had in all runs."""
    if site.kind == "mask":
        where = site.shown()
        return f"no sample reaches the mask at {where}" if not value else f"the mask at {where} is true everywhere in each sample"
    return f"{'the condition' if isinstance(value, bool) else 'the number read'} at {site.shown()} was {value} every time"


class _Watcher(TorchDispatchMode):
    """Record the decisions of operators. A mask is recorded as True if any element is set, and as False if any isn't."""

    supports_higher_order_operators = True

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.noted: Decisions = []

    def __torch_dispatch__(self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None) -> Any:
        name = getattr(getattr(func, "overloadpacket", func), "__name__", "")
        if name == "cond":
            return self._branch(*args)
        returned = func(*args, **(kwargs or {}))
        if name in READS:
            self._note("condition" if isinstance(returned, bool) else "number", returned)
        for mask in _masks(name, (*args, *(kwargs or {}).values()), returned):
            self._note("mask", bool(mask.any()), bool(mask.all()))
        return returned

    def _branch(self, condition: Any, taken: Callable[..., Any], other: Callable[..., Any], operands: Sequence[Any]) -> Any:
        """Run the chosen branch of `torch.cond`, and record its decisions too."""
        self._note("condition", bool(condition))
        with self:
            return (taken if condition else other)(*operands)

    def _note(self, kind: str, *values: Any) -> None:
        frame = _users()
        part = part_of(frame.f_code, frame.f_lasti) if kind == "condition" else ""
        site = Site(frame.f_code.co_filename, frame.f_lineno, kind, part)
        self.noted += [(site, value) for value in dict.fromkeys(values)]


def _masks(name: str, args: Sequence[Any], returned: Any) -> list[torch.Tensor]:
    if name in TESTS:
        found = [returned if returned.dtype == torch.bool else ~args[0].isfinite()]
    elif name in COUNTED:
        found = [arg for arg in args[:2] if isinstance(arg, torch.Tensor)]
    elif name in MASK_AT and len(args) > MASK_AT[name]:
        found = [args[MASK_AT[name]]]
    else:
        found = list(args[1]) if name in INDEXED and len(args) > 1 else []
    return [m for m in found if isinstance(m, torch.Tensor) and m.dtype == torch.bool and m.numel()]


def _users() -> FrameType:
    """Return the innermost frame outside torch and this package."""
    frame = sys._getframe(3)
    while frame.f_back is not None and frame.f_code.co_filename.startswith((TORCH, OURS, "<")):
        frame = frame.f_back
    return frame
