"""The guards of a program that is passed in are limits of its file: at each size the file is right, or a limit excludes the size."""

from __future__ import annotations

import io
import math
import re
from collections.abc import Callable
from typing import Any

import pytest
import torch
from torch import Tensor, nn
from torch.export import Dim, ExportedProgram

from exportlab import to_onnx

CAPTURED = "the program was captured for "
LIMIT = re.compile(CAPTURED + r"(?P<test>.+); the exported model does not check this$")
ENDS = re.compile(r'"(?P<name>[^"]+)" of (?P<ends>.+)')


class One(nn.Module):
    """A function of one input."""

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__()
        self.function = function

    def forward(self, x: Tensor) -> Any:
        return self.function(x)


class Two(One):
    """A function of two inputs."""

    def forward(self, x: Tensor, y: Tensor) -> Any:  # type: ignore[override]
        return self.function(x, y)


def either(test: Callable[..., bool]) -> Callable[..., Tensor]:
    return lambda x, *others: x * 2 if test(x.shape[0], *(other.shape[0] for other in others)) else x * 3


OF_ONE: dict[str, Callable[[Tensor], Any]] = {
    "modulo": either(lambda n: n % 2 == 0),
    "not equal": either(lambda n: n != 5),
    "threshold": either(lambda n: n <= 7),
    "far threshold": either(lambda n: n <= 5000),
    "float": either(lambda n: int(0.5 * n) == 3),
    "product with a float": either(lambda n: n * 0.3 > 1.5),
    "ceil": either(lambda n: math.ceil(n / 4) == 2),
    "floor": either(lambda n: n // 4 == 1),
    "root": either(lambda n: n**0.5 > 2.3),
    "square": either(lambda n: n * n > 30),
    "largest": either(lambda n: max(n, 8) == 8),
    "two tests": either(lambda n: n > 5 and n % 3 == 0),
    "a slice's length": lambda x: x[:4].sum(0) / x[:4].shape[0],
}
OF_TWO: dict[str, Callable[[Tensor, Tensor], Any]] = {
    "not equal": either(lambda n, m: n != m),
    "less": either(lambda n, m: m < n),
    "product": either(lambda n, m: n * m > 20),
    "difference": either(lambda n, m: n - m > 1),
    "derived": either(lambda n, m: n == m + 2),
}
FUNCTIONS = {"math": math, "float": float, "max": max, "min": min}


def allows(limits: tuple[str, ...], sizes: dict[str, int]) -> bool:
    """Return whether these sizes, by the names of axes, are within all limits."""
    for limit in limits:
        found = LIMIT.search(limit)
        assert found is not None, limit
        if ends := ENDS.match(found["test"]):
            size = sizes[ends["name"]]
            bounds = {kind: int(number) for kind, number in re.findall(r"at (least|most) (\d+)", ends["ends"])}
            if not bounds.get("least", 0) <= size <= bounds.get("most", size):
                return False
            continue
        text = found["test"]
        for name, size in sizes.items():
            text = text.replace(name, str(size))
        if not eval(text, {"__builtins__": {}}, FUNCTIONS):
            return False
    return True


def loaded(program: ExportedProgram) -> ExportedProgram:
    file = io.BytesIO()
    torch.export.save(program, file)
    file.seek(0)
    return torch.export.load(file)


def rows(*sizes: int) -> tuple[Tensor, ...]:
    return tuple(torch.arange(1.0, 3 * size + 1).reshape(size, 3) for size in sizes)


def check_each_size(model: nn.Module, program: ExportedProgram, example: tuple[int, ...], others: list[tuple[int, ...]]) -> None:
    made = to_onnx(program)
    names = ["axis 0 of x", "axis 0 of y"]
    excluded = 0
    for sizes in (example, *others):
        inputs = rows(*sizes)
        if allows(made.report.limits, dict(zip(names, sizes, strict=False))):
            torch.testing.assert_close(made(*inputs)[0], model(*inputs))
        else:
            excluded += 1
    assert allows(made.report.limits, dict(zip(names, example, strict=False)))
    assert excluded
    assert str(made.model.metadata_props["fx2onnx.limits"]).count(CAPTURED) == len(made.report.limits)


@pytest.mark.parametrize("strict", [False, True])
@pytest.mark.parametrize("name", OF_ONE)
def test_each_size_of_one_axis_is_right_or_excluded(name: str, strict: bool) -> None:
    model = One(OF_ONE[name])
    program = torch.export.export(model, rows(6), dynamic_shapes=({0: Dim.DYNAMIC},), strict=strict)
    others = [(n,) for n in (2, 3, 4, 5, 7, 8, 9, 12, 13, 5001)]
    check_each_size(model, program, (6,), others)
    check_each_size(model, loaded(program), (6,), others)


@pytest.mark.parametrize("strict", [False, True])
@pytest.mark.parametrize("name", OF_TWO)
def test_each_size_of_two_axes_is_right_or_excluded(name: str, strict: bool) -> None:
    model = Two(OF_TWO[name])
    program = torch.export.export(model, rows(6, 4), dynamic_shapes=({0: Dim.DYNAMIC}, {0: Dim.DYNAMIC}), strict=strict)
    others = [(n, m) for n in (2, 3, 5, 6, 9) for m in (2, 3, 4, 5, 9)]
    check_each_size(model, program, (6, 4), others)
    check_each_size(model, loaded(program), (6, 4), others)


def test_a_guard_is_told_by_its_line_and_the_names_that_are_given() -> None:
    program = torch.export.export(One(OF_ONE["modulo"]), rows(6), dynamic_shapes=({0: Dim.DYNAMIC},))
    (limit,) = to_onnx(program, dynamic_shapes=({0: "batch"},)).report.limits
    assert re.fullmatch(
        r"\S*test_program_guards\.py:\d+ in <lambda>: "
        r"the program was captured for \(batch % 2\) == 0; the exported model does not check this",
        limit,
    )


def test_what_the_ranges_imply_is_no_limit() -> None:
    program = torch.export.export(One(either(lambda n: n > 1)), rows(6), dynamic_shapes=({0: Dim.DYNAMIC},))
    assert to_onnx(program).report.limits == ()


def test_a_static_program_has_no_limits() -> None:
    assert to_onnx(torch.export.export(One(OF_ONE["modulo"]), rows(6))).report.limits == ()


def test_a_guard_that_is_written_in_an_unknown_way_is_a_limit_as_it_stands() -> None:
    program = torch.export.export(One(OF_ONE["modulo"]), rows(6), dynamic_shapes=({0: Dim.DYNAMIC},))
    program._guards_code.append("unknown(L['x'].size()[0])")
    assert CAPTURED + "unknown(L['x'].size()[0]); the exported model does not check this" in to_onnx(program).report.limits


class _MoreThanFive(torch.nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x * 3 if x.shape[0] > 5 else x


def test_a_branch_that_is_lost_under_auto_is_a_limit() -> None:
    exported = to_onnx(_MoreThanFive(), (torch.ones(4, 2),), dynamic_shapes=({0: torch.export.Dim.AUTO},))
    (limit,) = exported.report.limits
    assert 'captured for "axis 0 of x" of at most 5' in limit
