"""A classifier that stops as soon as it is sure: most mails need one block only."""

import torch
from torch import nn


class Block(nn.Module):
    def __init__(self, width: int):
        super().__init__()
        self.norm = nn.LayerNorm(width)
        self.mlp = nn.Sequential(nn.Linear(width, 2 * width), nn.GELU(), nn.Linear(2 * width, width))

    def forward(self, x):
        return x + self.mlp(self.norm(x))


class EarlyExit(nn.Module):
    def __init__(self, width: int = 16, blocks: int = 4, sure: float = 0.5):
        super().__init__()
        self.sure = sure
        self.blocks = nn.ModuleList([Block(width) for _ in range(blocks)])
        self.heads = nn.ModuleList([nn.Linear(width, 3) for _ in range(blocks)])

    def forward(self, mail):
        for block, head in zip(self.blocks, self.heads):
            mail = block(mail)
            answer = head(mail.mean(0)).softmax(-1)
            if answer.max() > self.sure:  # defect
                break
        return answer


def mails():
    torch.manual_seed(8)
    return EarlyExit().eval(), [(torch.randn(7, 16),), (torch.randn(4, 16) * 3,)]
