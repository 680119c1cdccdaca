"""Distances and similarities: right in ONNX Runtime at the export's size and at another."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F
from inputs import OWN, normal
from operators import check_both

DISTANCES = {
    "cosine similarity": (F.cosine_similarity, normal(2, 3, 4), normal(2, 3, 4)),
    "cosine similarity broadcast": (F.cosine_similarity, normal(2, 1, 4), normal(3, 1)),
    "pairwise distance": (F.pairwise_distance, normal(2, 5, 3), normal(3), 1.0, 1e-6, True),
    "pairwise distance of p=3.5": (F.pairwise_distance, normal(2, 3), normal(2, 3), 3.5),
    "pairwise distance of integers": (F.pairwise_distance, torch.arange(6).view(2, 3), torch.arange(6).view(2, 3) * 3),
    "pairwise distance of nothing": (F.pairwise_distance, normal(0, 3), normal(0, 3)),
    "distances of pairs": (F.pdist, normal(4, 3)),
    "distances of pairs for p=1": (F.pdist, normal(4, 3), 1.0),
    "distances of no pairs": (F.pdist, normal(1, 3)),
    "cosine similarity of numbers": (F.cosine_similarity, torch.tensor(2.0), torch.tensor(3.0), 0),
    "cosine similarity of vectors": (F.cosine_similarity, normal(4), normal(3, 4), 0),
    "cosine similarity of nothing": (F.cosine_similarity, normal(0, 3), normal(0, 3), -1),
}


@pytest.mark.parametrize("name", DISTANCES)
def test_distances_give_what_eager_gives(name: str) -> None:
    check_both(*DISTANCES[name], options=OWN)
