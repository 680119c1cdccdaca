"""What `to_onnx` returns: torch's own ONNXProgram, saved whole or not at all, with a report."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field

import onnx_ir as ir
import torch

from .files import written_whole

EXTERNAL_DATA_ABOVE = 500_000_000  # bytes of weights; a single file is made in memory, three times over, before it is written


@dataclass(frozen=True)
class ConversionReport:
    """How a program came to be.

    Attributes:
        sources: where the translation of each operator call came from, counted: `own`, `custom`, `torchlib`, `decomposed`.
        fallbacks: the operators that were not translated by our own table or the caller's, with the source used.
        functions: how often each local function is called.
        shared: the blocks that were not captured, and the one whose capture they stand on.
        not_shared: the blocks that were captured alone, and why.
        mutations: the inputs and buffers that the model changes, whose new values are further outputs.
    """

    sources: Mapping[str, int] = field(default_factory=dict)
    fallbacks: Mapping[str, str] = field(default_factory=dict)
    functions: Mapping[str, int] = field(default_factory=dict)
    shared: Mapping[str, str] = field(default_factory=dict)
    not_shared: Mapping[str, str] = field(default_factory=dict)
    mutations: tuple[str, ...] = ()


class Program(torch.onnx.ONNXProgram):
    """A `torch.onnx.ONNXProgram` with a `report`, whose file is written whole or not at all."""

    def __init__(self, model: ir.Model, exported_program: torch.export.ExportedProgram, report: ConversionReport) -> None:
        super().__init__(model, exported_program)
        self.report = report

    def save(
        self,
        destination: str | os.PathLike[str],
        *,
        include_initializers: bool = True,
        keep_initializers_as_inputs: bool = False,
        external_data: bool | None = None,
    ) -> None:
        """Save as `torch.onnx.ONNXProgram.save` does; the weights are streamed into a file beside the model when they are large.

        Raises:
            OSError: the folder does not exist or cannot be written; nothing is left behind.
        """
        path = os.fspath(destination)
        if not include_initializers or keep_initializers_as_inputs:
            with written_whole(path) as draft:
                super().save(
                    draft,
                    include_initializers=include_initializers,
                    keep_initializers_as_inputs=keep_initializers_as_inputs,
                    external_data=external_data,
                )
            return
        beside = external_data or (external_data is None and self._bytes() > EXTERNAL_DATA_ABOVE)
        with written_whole(path) as draft:
            ir.save(self.model, draft, external_data=f"{draft.name}.data" if beside else None)

    def _bytes(self) -> int:
        return sum(value.const_value.nbytes for value in self.model.graph.initializers.values() if value.const_value is not None)
