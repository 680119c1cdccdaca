"""Silencing what torch says and the reader cannot act on, in one place. Not here: any warning about the reader's own model."""

from __future__ import annotations

import logging
import warnings

LOGGERS = (
    "torch.onnx._internal.exporter._registration",  # "torchvision is not installed"
    "torchao",  # which transformers imports where it finds it, and which tries to load libraries for other processors
    "torch.utils._pytree",  # about torchao's enums
)
WARNINGS = (
    (FutureWarning, r".*isinstance\(treespec, LeafSpec\)"),  # raised by torch, about torch
    (UserWarning, r"# The axis name: .* will not be used"),  # two axes were found equal, and one name is kept
    (UserWarning, r"torch\.compile is ignored when called inside"),  # torch calls it itself
    (DeprecationWarning, r".*(legacy TorchScript-based ONNX export|torch\.jit\.)"),  # said on the pages instead
    (DeprecationWarning, r"The feature will be removed"),  # the same exporter, about its own logging
    (FutureWarning, r".*(legacy TorchScript-based ONNX export|torch\.jit\.)"),
)


def quiet() -> None:
    """Hides, for the rest of this process, the messages listed in this module; notebooks and the command line call it first."""
    for name in LOGGERS:
        logging.getLogger(name).setLevel(logging.ERROR)
    for category, message in WARNINGS:
        warnings.filterwarnings("ignore", message=message, category=category)
