"""One operator as a module: exported by `to_onnx`, static or with every axis free, and verified at both sizes."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import torch
from torch import nn
from torch.export import Dim
from torch.utils import _pytree as pytree

from exportlab import export
from exportlab.cases import Sample
from exportlab.exporters import Artifact
from exportlab.verification.difference import Tolerances
from exportlab.verification.report import Report
from exportlab.verification.verify import verify
from fx2onnx import to_onnx

FURTHER = 3  # how much longer every axis of two elements or more is at the unseen size


class Call(nn.Module):
    """A function of some arguments, of which only the tensors are inputs."""

    def __init__(self, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        super().__init__()
        self.function = function
        leaves, self.spec = pytree.tree_flatten((args, kwargs))
        self.others = [None if isinstance(leaf, torch.Tensor) else leaf for leaf in leaves]
        self.tensor_at = [isinstance(leaf, torch.Tensor) for leaf in leaves]

    def forward(self, *tensors: torch.Tensor) -> Any:
        given = iter(tensors)
        leaves = [next(given) if tensor else other for tensor, other in zip(self.tensor_at, self.others, strict=True)]
        args, kwargs = pytree.tree_unflatten(leaves, self.spec)
        return self.function(*args, **kwargs)


def longer(tensor: torch.Tensor) -> torch.Tensor:
    """The tensor with every axis of two or more elements made longer, its own values repeated."""
    for axis, size in enumerate(tensor.shape):
        if size >= 2:
            tensor = torch.cat([tensor] * (1 + -(-FURTHER // size)), axis).narrow(axis, 0, size + FURTHER)
    return tensor.contiguous()


def report_of(
    function: Callable[..., Any],
    *args: Any,
    dynamic: bool = False,
    options: dict[str, Any] | None = None,
    tolerances: Tolerances | None = None,
    **kwargs: Any,
) -> Report:
    """Exports `function(*args, **kwargs)` and verifies it; with every axis free, also at a longer size, where eager takes that."""
    module = Call(function, args, kwargs)
    tensors = tuple(leaf for leaf in pytree.tree_leaves((args, kwargs)) if isinstance(leaf, torch.Tensor))
    shapes = (tuple(dict.fromkeys(movable(tensor), Dim.AUTO) for tensor in tensors),) if dynamic else None
    return exported_and_verified(module, tensors, shapes, options, tolerances)[1]


def movable(tensor: torch.Tensor) -> list[int]:
    """Return the axes that are free where every axis is: those of two elements or more."""
    return [axis for axis, size in enumerate(tensor.shape) if size >= 2]


def exported_and_verified(
    module: Call,
    tensors: tuple[torch.Tensor, ...],
    shapes: tuple[tuple[dict[int, Any], ...]] | None,
    options: dict[str, Any] | None = None,
    tolerances: Tolerances | None = None,
) -> tuple[Artifact, Report]:
    """Return the export of a call and the report on it; with `shapes`, also of a longer size, where eager takes that."""
    further = Sample(tuple(map(longer, tensors)))
    samples = [Sample(tensors), further] if shapes and runs(module, further) else [Sample(tensors)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        exported = export("to_onnx", module, tensors, dynamic_shapes=shapes, **(options or {}))
    return exported, verify(exported, module, samples, tolerances=tolerances)


def check(function: Callable[..., Any], *args: Any, **kwargs: Any) -> None:
    """Raises `VerificationError` when the export is not right."""
    report_of(function, *args, **kwargs).check()


def check_both(function: Callable[..., Any], *args: Any, **kwargs: Any) -> None:
    """The same, static and dynamic."""
    check(function, *args, **kwargs)
    check(function, *args, dynamic=True, **kwargs)


def runs(module: nn.Module, sample: Sample) -> bool:
    """Whether eager takes these arguments."""
    try:
        module(*sample.args)
    except (RuntimeError, IndexError, ValueError, AssertionError):
        return False
    return True


def nodes_of(function: Callable[..., Any], *args: torch.Tensor, dynamic: bool = False, **options: Any) -> list[str]:
    """Return the operators of the ONNX graph that `function(*args)` becomes, in their order."""
    axes = tuple(dict.fromkeys(range(tensor.ndim), Dim.AUTO) for tensor in args)
    program = to_onnx(Call(function, args, {}), args, dynamic_shapes=(axes,) if dynamic else None, **options)
    return [node.op_type for node in program.model.graph]


def check_further(
    function: Callable[..., Any],
    example: tuple[torch.Tensor, ...],
    further: tuple[torch.Tensor, ...],
    axes: tuple[dict[int, Any], ...],
    *,
    opset_version: int = 20,
    **tolerance: float,
) -> None:
    """Export with `example` and compare the results of `further`, whose sizes `torch.export` itself would refuse."""
    program = to_onnx(Call(function, example, {}), example, dynamic_shapes=(axes,), opset_version=opset_version)
    wanted = function(*further)
    wanted = wanted if isinstance(wanted, tuple) else (wanted,)
    for actual, expected in zip(program(*further), wanted, strict=True):
        torch.testing.assert_close(torch.as_tensor(actual), expected, equal_nan=True, **tolerance)


def each(functions: list[Any]) -> Callable[..., Any]:
    """Return a function that calls all of these with its arguments, so that one graph holds them."""
    return lambda *args: [function(*args) for function in functions]


def named(function: Any) -> str:
    """Return the name of a function, for the name of its test."""
    return getattr(function, "__name__", str(function))


def as_pairs(function: Callable[[torch.Tensor], torch.Tensor]) -> Callable[..., torch.Tensor]:
    """The function of a complex tensor as one of its parts, whose complex result is a pair, too."""

    def call(real: torch.Tensor, imag: torch.Tensor) -> torch.Tensor:
        made = function(torch.complex(real, imag))
        return torch.view_as_real(made.resolve_conj()) if made.is_complex() else made

    return call
