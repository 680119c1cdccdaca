"""torchvision imported without its binary part, which its wheel may lack for the torch that is here."""

from __future__ import annotations

import importlib.util

import torch

OPERATORS = {  # what its Python code needs to be defined
    "nms": "(Tensor dets, Tensor scores, float iou_threshold) -> Tensor",
    "qnms": "(Tensor dets, Tensor scores, float iou_threshold) -> Tensor",
}


def import_torchvision() -> None:
    """Import torchvision where it is installed, as transformers and timm do; operators that are missing are defined, and fail when called.

    Raises:
        RuntimeError: it cannot be imported for another reason.
    """
    if importlib.util.find_spec("torchvision") is None:
        return
    try:
        import torchvision
    except RuntimeError as error:
        if "torchvision::nms" not in str(error):
            raise
        for name, signature in OPERATORS.items():  # only now: its binary part, where it can be loaded, defines them itself
            torch.library.define(f"torchvision::{name}", signature)
        import torchvision  # noqa: F401
