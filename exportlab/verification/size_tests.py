"""Find the tests of sizes in a module, in a run without data in which dynamic sizes are symbols."""

from __future__ import annotations

import builtins
import linecache
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from types import FrameType
from typing import Any

import sympy
import torch
from torch import nn

from fx2onnx.compat import trees as pytree
from fx2onnx.compat.dispatch import TorchDispatchMode, enable_python_dispatcher
from fx2onnx.compat.fake_tensors import FakeTensor, FakeTensorMode
from fx2onnx.compat.shape_env import ConstantSource, DimDynamic, ShapeEnv, StatelessSymbolicContext, free_unbacked_symbols

from ..cases import Sample
from ..eager import fresh
from ..messages import first_line, shown_file
from .conditions import OURS, TORCH
from .fast_path import disable_fast_path
from .values import mapped_leaves

SMALLEST, LARGEST = 2, 2**31  # range of sizes to check; exporters document what they do at 0 and 1
FEW = range(2, 65)
POWERS = [2**power for power in range(7, 32)]
SYMBOLS = torch.__file__  # the file of torch.SymBool, which is called when Python evaluates a test
OF_SYMBOLS = (str(Path(TORCH, "fx", "experimental")), SYMBOLS, str(Path(TORCH, "utils", "_stats.py")))
Axes = Mapping[tuple[int, int], str]  # dimension names by argument leaf and axis


@dataclass(frozen=True)
class SizeTest:
    """A test of named sizes, with its source line."""

    test: sympy.Basic
    line: str

    def holds(self, sizes: Mapping[str, int]) -> bool | None:
        """Return whether the test is true at these sizes; None if unknown."""
        found = self.test.xreplace({symbol: sympy.Integer(sizes[str(symbol)]) for symbol in self.test.free_symbols})
        return bool(found) if found in (sympy.true, sympy.false) else None

    def edges(self, name: str, sizes: Mapping[str, int]) -> list[tuple[int, int]]:
        """Return the pairs of neighbouring sizes at which the test changes, with the other sizes unchanged.

        All changes of a monotonic test are found. For other tests, changes between two powers of two may be missed.
        """
        near = {*FEW, *POWERS, sizes[name] - 1, sizes[name], sizes[name] + 1, *self._numbers()}
        places = sorted(place for place in near if SMALLEST <= place <= LARGEST)
        seen = {place: self.holds({**sizes, name: place}) for place in places}
        pairs = [(a, b) for a, b in pairwise(places) if None not in (seen[a], seen[b]) and seen[a] != seen[b]]
        return [self._narrowed(name, sizes, *pair) for pair in pairs]

    def _numbers(self) -> set[int]:
        numbers = {abs(int(number)) for number in self.test.atoms(sympy.Integer) if abs(int(number)) < LARGEST}
        return {number + more for number in numbers for more in (-1, 0, 1)}

    def _narrowed(self, name: str, sizes: Mapping[str, int], low: int, high: int) -> tuple[int, int]:
        below = self.holds({**sizes, name: low})
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if self.holds({**sizes, name: middle}) == below else (low, middle)
        return low, high


@dataclass(frozen=True)
class SizeTests:
    """The tests that were found, and the error that ended the run early, if any."""

    tests: tuple[SizeTest, ...] = ()
    problem: str = ""


class _Noting(ShapeEnv):
    """Evaluate tests with the sizes of this run, and record those that the model or its libraries make, except torch's."""

    def __init__(self, axes: Axes) -> None:
        super().__init__(specialize_zero_one=False, duck_shape=False)
        self.named: dict[sympy.Symbol, sympy.Symbol] = {}
        self.sizes: dict[sympy.Symbol, sympy.Integer] = {}
        self.noted: dict[sympy.Basic, str] = {}
        self.axes = axes

    def name(self, leaf: int, axis: int, size: Any) -> None:
        """Record the axis that a size belongs to."""
        self.sizes[size.node.expr] = sympy.Integer(size.node.hint)
        self.named[size.node.expr] = sympy.Symbol(self.axes[leaf, axis], positive=True, integer=True)

    def evaluate_expr(self, orig_expr: sympy.Basic, hint: Any = None, *args: Any, **kwargs: Any) -> sympy.Basic:
        """Return the value in this run without adding a guard."""
        if not isinstance(orig_expr, sympy.Basic) or not orig_expr.free_symbols or free_unbacked_symbols(orig_expr):
            return super().evaluate_expr(orig_expr, hint, *args, **kwargs)
        if isinstance(orig_expr, (sympy.Rel, sympy.logic.boolalg.BooleanFunction)) and (frame := _models_frame()) is not None:
            self.noted.setdefault(orig_expr.xreplace(self.named), _line_of(frame))
        return sympy.sympify(hint) if hint is not None else orig_expr.xreplace(self.sizes)


def _models_frame() -> FrameType | None:
    """Return the frame that makes a test; None if torch makes it, since all exporters trace those tests."""
    frame, by_python = sys._getframe(2), False
    while frame.f_back is not None and _is_of_symbols(frame.f_code.co_filename):
        by_python |= frame.f_code.co_filename == SYMBOLS
        frame = frame.f_back
    return frame if by_python and not frame.f_code.co_filename.startswith((TORCH, OURS)) else None


def _is_of_symbols(path: str) -> bool:
    return path.startswith(OF_SYMBOLS)


def _line_of(frame: FrameType) -> str:
    path, line = frame.f_code.co_filename, frame.f_lineno
    source = linecache.getline(path, line).strip()
    return f"{shown_file(path)}:{line}" + (f" `{source[:70]}`" if source else "")


def sizes_tested(module: nn.Module, sample: Sample, axes: Axes) -> SizeTests:
    """Return the tests of these axes' sizes that the module makes in a call, up to the point where the run fails."""
    environment = _Noting(axes)
    mode = FakeTensorMode(shape_env=environment, allow_non_fake_inputs=True)
    mode.cache_enabled = False  # no call is repeated, and a cache lookup with symbols is slower than the call
    problem = ""
    try:
        own = fresh(module)
        given = mapped_leaves(sample, lambda place, tensor: _symbolic(mode, environment, place, tensor))
        with (
            torch.compiler.set_stance("force_eager"),
            disable_fast_path(),
            torch.no_grad(),
            enable_python_dispatcher(),
            mode,
            _lengths_kept(),
        ):
            own(*given.args, **given.kwargs)
    except Exception as error:  # noqa: BLE001 - some modules need data to run; the report contains the error
        problem = f"{type(error).__name__}: {first_line(error)}"
    tests = (SizeTest(test, line) for test, line in environment.noted.items() if test.free_symbols <= set(environment.named.values()))
    return SizeTests(tuple(tests), problem)


@contextmanager
def _lengths_kept() -> Iterator[None]:
    """Make `len` return a tensor's first size as a symbol, because tests of a plain int would not be recorded."""
    plain = builtins.len

    def length(value: Any) -> Any:
        return value.shape[0] if isinstance(value, FakeTensor) and value.dim() else plain(value)

    builtins.len = length
    try:
        yield
    finally:
        builtins.len = plain


def _symbolic(mode: FakeTensorMode, environment: _Noting, place: int, tensor: torch.Tensor) -> torch.Tensor:
    """Return a tensor without data whose named sizes are symbols."""
    kinds = [DimDynamic.DYNAMIC if (place, axis) in environment.axes else DimDynamic.STATIC for axis in range(tensor.dim())]
    context: Any = StatelessSymbolicContext(dynamic_sizes=kinds, constraint_sizes=[None] * tensor.dim())
    made = mode.from_tensor(tensor.detach(), symbolic_context=context, source=ConstantSource(f"input{place}"))
    for axis, kind in enumerate(kinds):
        if kind is DimDynamic.DYNAMIC and isinstance(made.shape[axis], torch.SymInt):
            environment.name(place, axis, made.shape[axis])
    return made


@dataclass(frozen=True)
class Cost:
    """The bytes that a call computes: the largest result, and all results together."""

    largest: int
    together: int


def cost_of(module: nn.Module, sample: Sample) -> Cost:
    """Return the cost of a call without computing it. Errors of the module in a run without data are passed through."""
    mode = FakeTensorMode(allow_non_fake_inputs=True)
    own, given = fresh(module), mapped_leaves(sample, lambda _, tensor: mode.from_tensor(tensor.detach()))
    counting = _Counting()
    with torch.compiler.set_stance("force_eager"), disable_fast_path(), torch.no_grad(), mode, counting:
        own(*given.args, **given.kwargs)
    return Cost(max(counting.sizes, default=0), sum(counting.sizes))


class _Counting(TorchDispatchMode):
    supports_higher_order_operators = True

    def __init__(self) -> None:
        super().__init__()  # type: ignore[no-untyped-call]
        self.sizes: list[int] = []

    def __torch_dispatch__(self, func: Any, types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None) -> Any:
        returned = func(*args, **(kwargs or {}))
        self.sizes += [leaf.nbytes for leaf in pytree.tree_leaves(returned) if isinstance(leaf, torch.Tensor)]
        return returned


def is_covered(test: SizeTest, sizes: Sequence[Mapping[str, int]]) -> bool:
    """Return whether these sizes cover both sides of a test."""
    return len({test.holds(one) for one in sizes} - {None}) > 1
