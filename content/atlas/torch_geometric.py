"""torch_geometric: a few of its models on graphs whose nodes and edges both move in number."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import torch

from exportlab.cases import Case, Declaration
from exportlab.samples import Sample
from exportlab.torchvisions import import_torchvision

from .library import check_installed

MODELS = ["GCN", "GAT", "GraphSAGE", "GIN", "EdgeCNN"]
GRAPHS = ((6, 9), (11, 17), (3, 2))  # nodes and edges; the first is that of the export
FEATURES = 8


@dataclass(frozen=True)
class OnGraph:
    """Whether this model of graphs exports, with random weights."""

    model: str

    def __call__(self) -> Declaration:
        """Return the model, and a sample for each graph."""
        import_torchvision()  # which torch_geometric imports where it is installed
        from torch_geometric.nn import models

        from ..zoo.tiny import weighted

        made = getattr(models, self.model)(FEATURES, 16, num_layers=2, out_channels=4)
        samples: list[Any] = [graph(nodes, edges) for nodes, edges in GRAPHS]
        return weighted(made).eval(), samples


def graph(nodes: int, edges: int) -> Sample:
    """Return features of nodes, float32 `(nodes, 8)`, and edges, int64 `(2, edges)`, always the same."""
    generator = torch.Generator().manual_seed(nodes)
    return Sample(
        (torch.randn(nodes, FEATURES, generator=generator), torch.randint(0, nodes, (2, edges), generator=generator)),
    )


def cases() -> list[Case]:
    """Return a case for each model.

    Raises:
        NotInstalled: torch_geometric is not there.
    """
    check_installed("torch_geometric")
    return [Case(f"torch_geometric.{name}", OnGraph(name), topics=("graphs",), samples_move=True) for name in MODELS]
