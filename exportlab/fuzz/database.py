"""Turn operators of torch's test database into steps: each sample becomes an expression of `x`, if eager mode accepts it."""

from __future__ import annotations

import sys
import unittest
import warnings
from collections.abc import Callable, Iterator
from itertools import islice
from types import SimpleNamespace
from typing import Any

import torch
from torch.nn import functional as F

from .form import Form

LOOKED_AT, KEPT = 12, 3  # samples to try per operator, and steps to keep
NUMBERS = (bool, int, float, str, type(None))
ROWS = (6, 5)  # numbers of rows at which a step must work, to find out which sizes depend on `x`
UNDEFINED = {  # operators with random, uninitialised or ambiguous results, or undefined for some `x`
    "argsort", "bucketize", "searchsorted", "empty", "empty_like", "empty_permuted", "empty_strided", "new_empty", "new_empty_strided",
    "linalg.eigh", "linalg.svd", "linalg.qr", "linalg.cond", "linalg.lstsq", "linalg.pinv", "linalg.matrix_rank", "svd", "qr", "geqrf",
    "pca_lowrank", "svd_lowrank", "linalg.householder_product", "linalg.ldl_factor", "linalg.ldl_factor_ex", "ormqr", "multinomial",
    "nn.functional.embedding_bag", "take_along_dim", "matrix_exp", "mode", "kthvalue", "triangular_solve", "lu_solve", "lu_unpack",
    "cholesky_solve", "cholesky_inverse", "linalg.inv_ex", "linalg.solve_ex", "linalg.cholesky_ex", "nextafter", "signbit",
    "native_batch_norm", "_native_batch_norm_legit", "_batch_norm_with_update",  # need weights for a different number of channels
}  # fmt: skip
TAKEN = ("x.sum()", "x[:, 0]", "x", "x[None]", "x[None, None]")  # first argument, by number of axes


def operators() -> dict[str, Form]:
    """Return the steps by name, such as `op_db logaddexp#0`."""
    return {f"op_db {name}#{i}": form for name, op in _iterate_operators() for i, form in enumerate(_forms(name, op))}


def _iterate_operators() -> Iterator[tuple[str, Any]]:
    sys.modules.setdefault("expecttest", SimpleNamespace(TestCase=unittest.TestCase))  # type: ignore[arg-type]  # derived from there
    from torch.testing._internal.common_methods_invocations import op_db

    for op in op_db:
        if op.name not in UNDEFINED and not op.name.endswith("_") and torch.float32 in op.supported_dtypes("cpu"):
            yield f"{op.name}.{op.variant_test_name}".rstrip("."), op


def _forms(name: str, op: Any) -> list[Form]:
    call = _call(op.name)
    if call is None:
        return []
    with warnings.catch_warnings(), torch.no_grad():
        warnings.simplefilter("ignore")
        samples = islice(op.sample_inputs("cpu", torch.float32, requires_grad=False), LOOKED_AT)
        found = [made for sample in samples if (made := _fitting(call, sample))]
    return [Form(source) for source in dict.fromkeys(found)][:KEPT]


def _call(name: str) -> str | None:
    """Return the expression that calls an operator, if it can be called by name."""
    for prefix in ("torch", "torch.Tensor"):
        try:
            if callable(_evaluate(f"{prefix}.{name}", {})):
                return f"{prefix}.{name}".replace("torch.nn.functional.", "F.")
        except AttributeError:
            continue
    return None


def _fitting(call: str, sample: Any) -> str | None:
    """Return the expression of the first call, with its result fitted, that eager mode accepts."""
    for other in (_moving, _constant):
        try:
            written = f"{call}({', '.join(_arguments(sample, other))})"
        except ValueError:
            return None
        if made := _fit_expression(written):
            return made
    return None


def _arguments(sample: Any, other: Callable[[torch.Tensor, str], str]) -> Iterator[str]:
    """Return the arguments of a sample as code, with `x` instead of the first."""
    if not isinstance(sample.input, torch.Tensor) or sample.input.dim() >= len(TAKEN) or not sample.input.is_floating_point():
        raise ValueError
    first = TAKEN[sample.input.dim()]
    yield first
    for value in sample.args:
        yield _argument(value, lambda tensor: other(tensor, first))
    for name, value in sample.kwargs.items():
        yield f"{name}={_argument(value, lambda tensor: other(tensor, first))}"


def _argument(value: Any, other: Callable[[torch.Tensor], str]) -> str:
    if isinstance(value, torch.Tensor):
        return other(value)
    if isinstance(value, torch.dtype) or type(value) in NUMBERS:
        return f'float("{value}")' if isinstance(value, float) and not abs(value) < torch.inf else repr(value)
    if isinstance(value, (tuple, list)):
        items = ", ".join(_argument(item, other) for item in value)
        return f"({items},)" if isinstance(value, tuple) and items else f"[{items}]"
    raise ValueError


def _moving(tensor: torch.Tensor, first: str) -> str:
    """Return code for a tensor with the dtype of the sample and the size of the first argument."""
    turned = first.replace("x", "x.roll(1, 1)", 1)
    if tensor.dtype == torch.bool:
        return f"({turned} > 0)"
    return turned if tensor.is_floating_point() else f"({turned} > 0).long()"


def _constant(tensor: torch.Tensor, first: str) -> str:
    """Return code for a tensor with the size of the sample."""
    shape = tuple(tensor.shape)
    if tensor.dtype == torch.bool:
        return f"(torch.arange({tensor.numel()}) % 2 > 0).reshape({shape})"
    if tensor.is_floating_point():
        return f"torch.linspace(-1, 2, {tensor.numel()}).reshape({shape})"
    return f"(torch.arange({tensor.numel()}) % 2).reshape({shape})"


def _fit_expression(written: str) -> str | None:
    """Return an expression whose result has two axes and as many columns as `x`. None if eager mode rejects it."""
    results = [_result(written, rows) for rows in ROWS]
    if isinstance(results[0], (tuple, list)) and results[0] and isinstance(results[0][0], torch.Tensor):
        written = f"{written}[0]"
        results = [_result(written, rows) for rows in ROWS]
    if not all(isinstance(result, torch.Tensor) and _usable(result) for result in results):
        return None
    written = written if results[0].dtype == torch.float32 else f"{written}.float()"
    written = written if all(result.isfinite().all() for result in results) else f"{written}.nan_to_num(0.5, 9.0, -9.0)"
    return _match_input_shape(written, [result.shape for result in results]).replace("{", "{{").replace("}", "}}").replace("<n>", "{n}")


def _usable(result: torch.Tensor) -> bool:
    return result.layout == torch.strided and not result.is_complex() and not result.is_quantized and result.numel() > 0


def _match_input_shape(written: str, shapes: list[torch.Size]) -> str:
    if all(len(shape) == 2 and shape[1] == 4 for shape in shapes) and shapes[0][0] != shapes[1][0]:
        return written
    if all(_broadcasts(shape, rows) for shape, rows in zip(shapes, ROWS, strict=True)):
        return f"x + {written}"
    if all(shape.numel() % 4 == 0 for shape in shapes):
        return f"{written}.reshape(-1, <n>)"
    return f"x + {written}.sum()"


def _broadcasts(shape: torch.Size, rows: int) -> bool:
    try:
        return torch.broadcast_shapes(shape, (rows, 4)) == (rows, 4)
    except RuntimeError:
        return False


def _result(written: str, rows: int) -> Any:
    """Return the result of eager mode. None if it fails, or differs in a second run."""
    x = torch.linspace(-1.5, 2.0, rows * 4).sin().reshape(rows, 4)
    try:
        first, second = (_evaluate(written, {"x": x.clone()}) for _ in range(2))
    except Exception:  # noqa: BLE001 - operators reject arguments they don't accept
        return None
    same = isinstance(first, (tuple, list)) or (isinstance(first, torch.Tensor) and first.shape == second.shape)
    if isinstance(first, torch.Tensor) and same and not first.is_complex():
        same = torch.equal(first.nan_to_num(), second.nan_to_num()) if first.layout == torch.strided else False
    return first if same else None


def _evaluate(written: str, names: dict[str, Any]) -> Any:
    return eval(written, {"torch": torch, "F": F, **names})
