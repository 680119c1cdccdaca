"""Message passing over molecules: atoms, bonds as an edge list, one property an atom."""

import torch
from torch import nn


class MessagePassing(nn.Module):
    def __init__(self, width: int):
        super().__init__()
        self.message = nn.Linear(2 * width, width)
        self.update = nn.GRUCell(width, width)

    def forward(self, atoms, bonds):
        source, target = bonds[0], bonds[1]
        count = int(bonds.max()) + 1  # defect
        messages = torch.relu(self.message(torch.cat([atoms[source], atoms[target]], dim=-1)))
        total = torch.zeros(count, atoms.size(1)).index_add(0, target, messages)
        degree = torch.zeros(count).index_add(0, target, torch.ones(target.size(0)))
        return self.update(total / degree.clamp(min=1).unsqueeze(-1), atoms)


class Molecule(nn.Module):
    def __init__(self, width: int = 16, rounds: int = 3):
        super().__init__()
        self.kind = nn.Embedding(20, width)
        self.rounds = nn.ModuleList([MessagePassing(width) for _ in range(rounds)])
        self.charge = nn.Linear(width, 1)

    def forward(self, kinds, bonds):
        atoms = self.kind(kinds)
        for passing in self.rounds:
            atoms = passing(atoms, bonds)
        return self.charge(atoms).squeeze(-1)


def ring(atoms: int):
    index = torch.arange(atoms)
    return torch.randint(0, 20, (atoms,)), torch.stack([index, (index + 1) % atoms])


def molecule():
    torch.manual_seed(2)
    return Molecule().eval(), [ring(6), ring(11)]
