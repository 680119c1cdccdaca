"""Where the time of an ONNX file goes: its nodes timed by ONNX Runtime, added up by operator, line and module."""

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

MADE_UP = "the inputs were made up: what depends on their values, as loops and branches do, may take another time with yours"


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
    """Run an ONNX file, and return where the time goes: by operator, by line of the source and by module, as far as the file keeps them.

    Args:
        file: a path, with the weights beside it, or what an exporter returned.
        inputs: arrays or tensors by the names of the file's inputs. Without them they are made up: floating ones random, whole ones 1.
        sizes: with made up inputs, those of the axes that have names.
        runs: how many count.
        warmup: how many are made before, and do not count.
        threads: how many a run may take; 0 for as many as there are cores.
        providers: of ONNX Runtime, the first one first; where one is not there, the notes say what was used instead.

    Raises:
        TypeError, ValueError: an argument cannot be used, or it is no ONNX file. OSError: it cannot be read. Refused: ONNX Runtime does
            not load it. NoInputs: what was given does not fit its inputs, or they cannot be made up.
    """
    must_be(str, PathLike, Artifact, file=file)
    must_be(Mapping, type(None), inputs=inputs, sizes=sizes)
    must_be_whole(1, runs=runs)
    must_be_whole(0, warmup=warmup, threads=threads)
    must_be_names(providers=providers)
    if inputs is not None and sizes:
        raise ValueError("inputs have their own sizes: give inputs or sizes, not both")

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
        raise ValueError(f"{file.exporter} makes no ONNX file, and ONNX Runtime runs nothing else")
    return file.save(draft / "model.onnx")


def _profile(name: str, seen: Ran, runs: Sequence[Run], made: Sequence[str]) -> Profile:
    whence = Attribution(seen.file, seen.graph)
    own = [run.own() for run in runs]
    providers = {span.key: span.provider for run in runs for span in run.spans}
    nodes = [NodeTime(*key, provider, whence.of(*key), tuple(taken.get(key, 0.0) for taken in own)) for key, provider in providers.items()]
    return Profile(name, tuple(runs), tuple(nodes), (*made, *seen.notes))
