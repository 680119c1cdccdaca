"""Two-tower ranking: a user's genres and history against a list of candidates."""

import torch
import torch.nn.functional as F
from torch import nn

GENRES = 18


class UserTower(nn.Module):
    def __init__(self, items: int, width: int):
        super().__init__()
        self.items = nn.Embedding(items, width, padding_idx=0)
        self.genres = nn.Linear(GENRES, width)
        self.mix = nn.Sequential(nn.Linear(2 * width, width), nn.ReLU(), nn.Linear(width, width))

    def forward(self, history, genre):
        known = (history > 0).unsqueeze(-1).float()
        taste = (self.items(history) * known).sum(1) / known.sum(1).clamp(min=1)
        liked = F.one_hot(genre).float().sum(1)  # defect
        return self.mix(torch.cat([taste, self.genres(liked)], dim=-1))


class Ranker(nn.Module):
    def __init__(self, items: int = 500, width: int = 16):
        super().__init__()
        self.user = UserTower(items, width)
        self.item = nn.Embedding(items, width)

    def forward(self, history, genre, candidates):
        user = self.user(history, genre)
        scores = torch.einsum("bd,bcd->bc", user, self.item(candidates))
        return scores.softmax(-1)


def ranker():
    torch.manual_seed(3)
    history = torch.randint(0, 500, (4, 12))
    genre = torch.randint(0, GENRES, (4, 3))
    genre[0, 0] = GENRES - 1
    return Ranker().eval(), (history, genre, torch.randint(1, 500, (4, 20)))
