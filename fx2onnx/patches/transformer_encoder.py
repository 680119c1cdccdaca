"""`nn.TransformerEncoder` with a padding mask: the exported model returns zeros at the padding, as torch does without gradients."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import torch
from torch import nn
from torch.utils.hooks import RemovableHandle


@contextmanager
def mask_padding_as_in_eager(model: Any) -> Iterator[None]:
    """Make each `nn.TransformerEncoder` return, inside the context, what it returns under `torch.no_grad()`.

    Without gradients, torch converts the values to a nested tensor if the padding is on the right, and returns zeros at the padding. A
    capture does neither, so the exported model would return values computed from the padding.
    """
    with ExitStack() as stack:
        for module in model.modules() if isinstance(model, nn.Module) else ():
            if _nests(module):
                for handle in Padding(module).hooks():
                    stack.callback(handle.remove)
        yield


def _nests(module: nn.Module) -> bool:
    """Return whether a module is an encoder that makes nested tensors for some arguments."""
    if getattr(type(module), "forward", None) is not nn.TransformerEncoder.forward or not torch.backends.mha.get_fastpath_enabled():
        return False
    return bool(getattr(module, "use_nested_tensor", False)) and not module.layers[0].training  # type: ignore[index,union-attr]


class Padding:
    """The padding of each call of an encoder, and the zeros that it causes."""

    def __init__(self, encoder: nn.Module) -> None:
        self._encoder = encoder
        self._padding: list[torch.Tensor | None] = []  # of the calls that have not returned

    def hooks(self) -> Iterator[RemovableHandle]:
        """Register hooks that store the mask of a call, and write zeros into what the last layer returns, before the norm."""
        yield self._encoder.register_forward_pre_hook(self._keep, with_kwargs=True)
        norm = self._encoder.norm
        if isinstance(norm, nn.Module):
            yield norm.register_forward_pre_hook(self._clear_before)
        else:
            yield self._encoder.register_forward_hook(self._clear_after)

    def _keep(self, encoder: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """Store the padding of a call that makes a nested tensor of the other elements."""
        given = dict(zip(("src", "mask", "src_key_padding_mask"), args, strict=False)) | kwargs
        mask, x = given.get("src_key_padding_mask"), given["src"]
        nests = given.get("mask") is None and x.dim() == 3 and not torch.is_autocast_enabled()
        self._padding.append(self._padding_of(mask) if mask is not None and nests else None)

    def _padding_of(self, mask: torch.Tensor) -> torch.Tensor:
        """Return the mask of the padding; all False if a value follows the padding in some row."""
        padding = mask if mask.dtype == torch.bool else mask != 0
        if not getattr(self._encoder, "mask_check", True):
            return padding
        return padding & ~(padding[:, :-1] & ~padding[:, 1:]).any()

    def _clear_before(self, norm: nn.Module, args: tuple[torch.Tensor, ...]) -> tuple[torch.Tensor, ...]:
        return self._zero_padding(args[0]), *args[1:]

    def _clear_after(self, encoder: nn.Module, args: Any, result: torch.Tensor) -> torch.Tensor:
        return self._zero_padding(result)

    def _zero_padding(self, x: torch.Tensor) -> torch.Tensor:
        padding = self._padding.pop() if self._padding else None
        return x if padding is None else x.masked_fill(padding[..., None], 0.0)
