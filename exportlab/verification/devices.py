"""Eager on the device that runs the file: kernels there round differently from the CPU, so a file is compared with both."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import torch
from torch import nn
from torch.utils import _pytree as pytree

from ..cases import Sample
from ..checks import kind_of
from ..eager import copied_whole, run_calls
from ..exporters.session import EXACT
from .values import map_tensors

Provider = str | tuple[str, Mapping[str, str]]  # of ONNX Runtime, by its name, or with options
ON_CUDA = ("CUDAExecutionProvider", "TensorrtExecutionProvider", "NvTensorRTRTXExecutionProvider")


@dataclass(frozen=True)
class Device:
    """A device of torch, and whether its products of float32 may be of TF32, as those of the file."""

    name: str
    tf32: bool = False


def named_options(providers: Sequence[Provider]) -> tuple[tuple[str, ...], dict[str, dict[str, str]]]:
    """Return the names of providers, and the options of each that has some: those that make it exact, and those that are given.

    Raises:
        TypeError: they are no sequence of names, or of pairs of a name and its options.
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
    """Return the device of torch on which these providers run; None where that is the CPU, or torch has no such device here.

    They compute in TF32 unless an option turns that off, and eager is compared at the same setting.
    """
    if not torch.cuda.is_available() or not set(providers) & set(ON_CUDA):
        return None
    return Device("cuda", tf32=all(given.get("use_tf32") != "0" for given in options.values()))


def returned_on(device: Device, module: nn.Module, calls: Sequence[Sample]) -> Any:
    """Return what the last of these calls returns when a copy of the module runs on a device, moved to the CPU. Raises what that raises."""
    own = copied_whole(module).to(device.name)
    with _tf32(device.tf32):
        returned = run_calls(own, [map_tensors(call, lambda tensor: tensor.to(device.name)) for call in calls])
    return pytree.tree_map_only(torch.Tensor, torch.Tensor.cpu, returned)


@contextmanager
def _tf32(allowed: bool) -> Iterator[None]:
    """Allow TF32 in products and convolutions of CUDA, or not; then as before."""
    cuda, cudnn = torch.backends.cuda.matmul, torch.backends.cudnn
    kept = {name: getattr(cudnn, name) for name in ("enabled", "benchmark", "deterministic")}
    before, cuda.allow_tf32 = cuda.allow_tf32, allowed
    try:
        with cudnn.flags(**kept, allow_tf32=allowed):
            yield
    finally:
        cuda.allow_tf32 = before
