"""Import torchvision even if its compiled extension doesn't match the installed torch."""

from __future__ import annotations

import importlib.util

import torch

OPERATORS = {  # must be defined before torchvision's Python code can be imported
    "nms": "(Tensor dets, Tensor scores, float iou_threshold) -> Tensor",
    "qnms": "(Tensor dets, Tensor scores, float iou_threshold) -> Tensor",
}


def import_torchvision() -> None:
    """Import torchvision if it is installed, as transformers and timm do. Missing operators are defined, but fail when called.

    Raises:
        RuntimeError: the import fails for another reason.
    """
    if importlib.util.find_spec("torchvision") is None:
        return
    try:
        import torchvision
    except RuntimeError as error:
        if "torchvision::nms" not in str(error):
            raise
        for name, signature in OPERATORS.items():  # only after a failed import, because a working extension defines them itself
            torch.library.define(f"torchvision::{name}", signature)
        import torchvision  # noqa: F401
