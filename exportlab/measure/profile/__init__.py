"""Profile an ONNX model: ONNX Runtime times its nodes, and the times are summed by operator, source line and module."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from os import PathLike
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from ...checks import must_be, must_be_names, must_be_path, must_be_whole
from ...defaults import PROFILE_RUNS, PROFILE_WARMUP, TASK_THREADS
from ...exporters import Artifact
from ...exporters.session import CPU
from .attribution import Attribution
from .events import Run, runs_of
from .inputs import Declared, NoInputs, check_inputs, made_up
from .result import Group, NodeTime, Profile
from .run import Ran, Refused, ran

__all__ = ["Group", "NoInputs", "NodeTime", "Profile", "Refused", "profile"]

MADE_UP = "the inputs are generated: the time of nodes that depend on values, such as loops and branches, may differ with your inputs"


def profile(
    file: str | Path | Artifact,
    inputs: Mapping[str, Any] | None = None,
    *,
    sizes: Mapping[str, int] | None = None,
    runs: int = PROFILE_RUNS,
    warmup: int = PROFILE_WARMUP,
    threads: int = TASK_THREADS,
    providers: Sequence[str] = (CPU,),
) -> Profile:
    """Run an ONNX model and return the time by operator, by source line and by module, as far as the file contains this information.

    Args:
        file: a path, with external weights in the same folder, or the artifact of an exporter.
        inputs: arrays or tensors by input name. By default, floating-point inputs are random and integer inputs are 1.
        sizes: sizes of the named axes, for generated inputs.
        runs: number of recorded runs.
        warmup: number of earlier runs that are not recorded.
        threads: threads per run; 0 uses all cores.
        providers: providers of ONNX Runtime in order of preference. If one isn't available, the notes name the replacement.

    Raises:
        TypeError, ValueError: an argument is invalid, or the file is not an ONNX model. OSError: the file cannot be read. Refused: ONNX
            Runtime can't load the model. NoInputs: the inputs don't match the model, or can't be generated.
    """
    must_be(str, PathLike, Artifact, file=file)
    must_be(Mapping, type(None), inputs=inputs, sizes=sizes)
    must_be_whole(1, runs=runs)
    must_be_whole(0, warmup=warmup, threads=threads)
    must_be_names(providers=providers)
    if inputs is not None and sizes:
        raise ValueError("inputs have their own sizes: pass inputs or sizes, not both")

    def feed(declared: Sequence[Declared]) -> Mapping[str, Any]:
        return made_up(declared, sizes or {}) if inputs is None else check_inputs(declared, inputs)

    with TemporaryDirectory() as draft:
        path = _path(file, Path(draft))
        seen = ran(path, feed, warmup + runs, threads, tuple(providers) or (CPU,))
    made = [MADE_UP] if inputs is None and seen.file.graph.input else []
    return _profile(path.name, seen, runs_of(seen.events)[warmup:], made)


def _path(file: str | Path | Artifact, draft: Path) -> Path:
    if not isinstance(file, Artifact):
        must_be_path(file=file)
        return Path(file)
    if file.suffix != ".onnx":
        raise ValueError(f"{file.exporter} does not make an ONNX file, and ONNX Runtime only runs ONNX")
    return file.save(draft / "model.onnx")


def _profile(name: str, seen: Ran, runs: Sequence[Run], made: Sequence[str]) -> Profile:
    whence = Attribution(seen.file, seen.graph)
    own = [run.own() for run in runs]
    providers = {span.key: span.provider for run in runs for span in run.spans}
    nodes = [NodeTime(*key, provider, whence.of(*key), tuple(taken.get(key, 0.0) for taken in own)) for key, provider in providers.items()]
    return Profile(name, tuple(runs), tuple(nodes), (*made, *seen.notes))
