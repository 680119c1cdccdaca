"""Weights only load failed: Unsupported global: GLOBAL torch.export.exported_program.ExportedProgram was not an allowed global

`torch.save` can pickle an exported program. But since torch 2.6 `torch.load` loads only weights by default, and an exported program is a
graph. The message suggests `weights_only=False`. This doesn't work either: it fails with a `TypeError` about `scope_root`. The file suffix
makes no difference.
"""

import io

import torch
from torch import nn

from exportlab.errors.known import Claim, Fix, KnownError


class Doubled(nn.Module):
    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return x.sin() * 2


SAMPLES = [(torch.linspace(-1, 1, rows * 3).reshape(rows, 3),) for rows in (4, 7, 1, 0)]


def exported() -> torch.export.ExportedProgram:
    return torch.export.export(Doubled(), SAMPLES[0], dynamic_shapes=({0: torch.export.Dim.AUTO},))


def breaks() -> Claim:
    file = io.BytesIO()
    torch.save(exported(), file)
    file.seek(0)
    return torch.load(file), Doubled(), SAMPLES


def saved() -> Claim:
    """Use `torch.export.save` and `torch.export.load`. They have their own file format, which is kept between versions."""
    file = io.BytesIO()
    torch.export.save(exported(), file)
    file.seek(0)
    return torch.export.load(file), Doubled(), SAMPLES


ERROR = KnownError(
    stage="load",
    message=r"Unsupported global: GLOBAL torch\.(export\.exported_program\.ExportedProgram|fx\.graph_module\.\w+)",
    breaks=breaks,
    fixes=(Fix("change the call", saved),),
    threads=("pytorch/pytorch#186073",),
)
