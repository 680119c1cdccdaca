"""Run eager on the device that runs the exported model. Kernels round differently there than on the CPU, so `verify` compares with both."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn

from fx2onnx.compat import trees as pytree

from ..cases import Sample
from ..checks import kind_of
from ..eager import copied_whole, run_calls
from ..exporters.session import EXACT
from .values import map_tensors

Provider = str | tuple[str, Mapping[str, str]]  # an ONNX Runtime provider: its name, or a pair of name and options
ON_CUDA = ("CUDAExecutionProvider", "TensorrtExecutionProvider", "NvTensorRTRTXExecutionProvider")


@dataclass(frozen=True)
class Device:
    """A torch device, and whether it may use TF32 for float32 products, as the exported model does."""

    name: str
    tf32: bool = False


def named_options(providers: Sequence[Provider]) -> tuple[tuple[str, ...], dict[str, dict[str, str]]]:
    """Return the providers' names and their options: the given options, and those that give full float32 precision.

    Raises:
        TypeError: an item is neither a name nor a pair of a name and its options.
    """
    if isinstance(providers, str) or not isinstance(providers, Sequence):
        raise TypeError(f"providers must be a list of names, not {kind_of(providers)}")
    pairs = [(one, {}) if isinstance(one, str) else one for one in providers]
    for pair in pairs:
        if not isinstance(pair, tuple) or len(pair) != 2 or not isinstance(pair[0], str) or not isinstance(pair[1], Mapping):
            raise TypeError(f"providers must be a list of names, or of pairs of a name and its options, not of {kind_of(pair)}")
    options = {name: {**EXACT.get(name, {}), **given} for name, given in pairs}
    return tuple(options), {name: given for name, given in options.items() if given}


def device_of(providers: Sequence[str], options: Mapping[str, Mapping[str, str]]) -> Device | None:
    """Return the torch device of these providers, or None for the CPU or if torch doesn't have the device.

    The providers use TF32 unless an option disables it, and eager then uses the same setting.
    """
    if not torch.cuda.is_available() or not set(providers) & set(ON_CUDA):
        return None
    return Device("cuda", tf32=all(given.get("use_tf32") != "0" for given in options.values()))


def returned_on(device: Device, module: nn.Module, calls: Sequence[Sample]) -> Any:
    """Run the calls on a device with a copy of the module, and return the last result on the CPU. Errors are passed through."""
    own = copied_whole(module).to(device.name)
    with _tf32(device.tf32):
        returned = run_calls(own, [map_tensors(call, lambda tensor: tensor.to(device.name)) for call in calls])
    return pytree.tree_map_only(torch.Tensor, torch.Tensor.cpu, returned)


@contextmanager
def _tf32(allowed: bool) -> Iterator[None]:
    """Enable or disable TF32 for CUDA products and convolutions, and restore the settings afterwards."""
    cuda, cudnn = torch.backends.cuda.matmul, torch.backends.cudnn
    kept = {name: getattr(cudnn, name) for name in ("enabled", "benchmark", "deterministic")}
    before, cuda.allow_tf32 = cuda.allow_tf32, allowed
    try:
        with cudnn.flags(**kept, allow_tf32=allowed):
            yield
    finally:
        cuda.allow_tf32 = before
