"""`verify=True`: compare the exported model in ONNX Runtime with the PyTorch model. `exportlab.verify` tests more inputs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import nn
from torch.export.graph_signature import ConstantArgument, OutputKind

from .compat import trees as pytree
from .copies import copy_sharing_parameters
from .errors import UnsupportedArgument, WrongNumbers, first_sentence
from .program import Program

Model = nn.Module | torch.export.ExportedProgram
TOLERANCES = {torch.float64: (1e-9, 1e-10), torch.float32: (1e-4, 1e-5), torch.float16: (1e-2, 1e-3), torch.bfloat16: (3e-2, 1e-2)}


def check_numbers(program: Program, model: Model, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> None:
    """Compare the outputs of both models, within the `TOLERANCES` of their dtype; integers and booleans must be equal.

    Raises:
        WrongNumbers: the outputs differ, or ONNX Runtime refuses the exported model.
        UnsupportedArgument: there are no arguments, the PyTorch model raises an error, or onnxruntime is not installed.
    """
    if isinstance(model, torch.export.ExportedProgram) and not (args or kwargs):
        args, kwargs = _example(model)
    expected = _results_in_file(program, _run_model(model, args, kwargs))
    found = _run(program, args, kwargs)  # followed by the new values of buffers
    if len(found) != len(expected) + len(program.report.mutations):
        raise WrongNumbers(f"verify=True: the exported model has {len(found)} outputs, but the model returns {len(expected)}")
    for number, (wanted, own) in enumerate(zip(expected, found, strict=False)):
        _check_close(
            f"verify=True: output {number} of the exported model is wrong for the arguments of the export: ", torch.as_tensor(wanted), own
        )


def _check_close(said: str, wanted: torch.Tensor, own: torch.Tensor) -> None:
    rtol, atol = TOLERANCES.get(wanted.dtype, (0.0, 0.0))
    finite = wanted[wanted.isfinite()]
    largest = max(1.0, float(finite.abs().max())) if rtol and finite.numel() else 1.0
    try:
        torch.testing.assert_close(own, wanted.cpu(), rtol=rtol, atol=atol * largest, equal_nan=True)
    except AssertionError as error:
        raise WrongNumbers(said + str(error)) from error


def _results_in_file(program: Program, returned: Any) -> list[Any]:
    """Return the leaves of a return value that are outputs of the exported model: all except constant numbers."""
    assert program.exported_program is not None
    specs = program.exported_program.graph_signature.output_specs
    results = [spec.arg for spec in specs if spec.kind == OutputKind.USER_OUTPUT]
    leaves = pytree.tree_leaves(returned)
    return [leaf for leaf, given in zip(leaves, results, strict=True) if not isinstance(given, ConstantArgument)]


def _example(program: torch.export.ExportedProgram) -> tuple[tuple[Any, ...], dict[str, Any]]:
    if program.example_inputs is None:
        raise UnsupportedArgument("verify=True needs arguments: pass args, because the program has no example_inputs")
    return program.example_inputs


def _run_model(model: Model, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
    """Call a copy of the model, with the same parameters, on copies of the arguments: a call may change buffers and inputs."""
    module = model.module() if isinstance(model, torch.export.ExportedProgram) else model
    try:
        return _call_copy(module, args, kwargs)
    except Exception as error:
        raise UnsupportedArgument(
            f"verify=True calls the model with these arguments, but the model raises {_format_error(error)}"
        ) from error


def _call_copy(module: torch.nn.Module, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
    module = copy_sharing_parameters(module)
    args, kwargs = pytree.tree_map_only(torch.Tensor, lambda tensor: tensor.detach().clone(), (args, dict(kwargs)))
    with torch.no_grad(), torch.random.fork_rng(devices=()):
        return module(*args, **kwargs)


def _format_error(error: Exception) -> str:
    return f"{type(error).__name__}: {first_sentence(error)}"


def _run(program: Program, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> list[torch.Tensor]:
    try:
        return list(program(*args, **kwargs))
    except ModuleNotFoundError as error:
        raise UnsupportedArgument(f"verify=True runs the exported model, which needs {error.name}: pip install {error.name}") from error
    except Exception as error:
        raise WrongNumbers(f"verify=True: ONNX Runtime cannot run the exported model: {first_sentence(error)}") from error
    finally:
        program.release()
