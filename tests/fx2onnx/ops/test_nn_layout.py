"""Rearrangements of images and bags of embeddings: right in ONNX Runtime at the export's size and at another."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from inputs import OWN, normal
from operators import check, check_both


def image(*sizes: int) -> torch.Tensor:
    return normal(*(sizes or (2, 3, 7, 8)))


LAYOUTS = {
    "pixel shuffle": (F.pixel_shuffle, image(2, 8, 3, 5), 2),
    "pixel shuffle of one": (F.pixel_shuffle, image(8, 3, 5), 2),
    "pixel shuffle of integers": (F.pixel_shuffle, torch.arange(72).reshape(1, 8, 3, 3), 2),
    "pixel unshuffle": (F.pixel_unshuffle, image(1, 3, 4, 6), 2),
    "channel shuffle": (F.channel_shuffle, image(2, 6, 3), 3),
    "im2col": (F.unfold, image(2, 3, 5, 6), (2, 3), (1, 2), 1, (2, 1)),
    "im2col of one": (F.unfold, image(3, 5, 6), 2),
    "col2im": (F.fold, image(2, 12, 20), (5, 6), 2),
}


@pytest.mark.parametrize("name", LAYOUTS)
def test_rearrangements_give_what_eager_gives(name: str) -> None:
    check_both(*LAYOUTS[name], options=OWN)


@pytest.mark.parametrize("mode", ["sum", "mean", "max"])
def test_embedding_bags_leave_out_padding_and_keep_empty_bags(mode: str) -> None:
    def bag(w: torch.Tensor, i: torch.Tensor, o: torch.Tensor) -> list[torch.Tensor]:
        return [F.embedding_bag(i, w, o, mode=mode, padding_idx=padding) for padding in (None, 4)]

    check(bag, normal(5, 3), torch.tensor([1, 2, 4, 3, 4, 1, 0]), torch.tensor([0, 2, 2, 5]), options=OWN)
