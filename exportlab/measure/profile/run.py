"""Run a model in ONNX Runtime with profiling, and return the events of all runs and the optimised graph."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from ...exporters.onnx_file import read_proto
from ...exporters.session import (
    count_nodes_by_provider,
    describe_provider_shares,
    get_requested_providers,
    instead,
    running_on,
    session,
    session_options,
)
from ...messages import first_line
from .attribution import graphs
from .inlining import inline_functions
from .inputs import Declared, NoInputs, list_declared_inputs, ort_value

if TYPE_CHECKING:
    import onnx
    import onnxruntime

FOLDER = "session.model_external_initializers_file_folder_path"  # folder of the external weights
WEIGHTS, WEIGHTS_FROM = (f"session.optimized_model_external_initializers_{what}" for what in ("file_name", "min_size_in_bytes"))
COMPILED = "compiled nodes"  # ONNX Runtime can't save an optimised graph in which a provider compiled a part

Feed = Callable[[Sequence[Declared]], Mapping[str, Any]]


class Refused(Exception):
    """ONNX Runtime can't load the model. The message is one line."""


@dataclass(frozen=True)
class Ran:
    """A profiled session: the model, its optimised graph if known, the events, and the notes.

    Attributes:
        notes: a line for each requested provider that is not used, or that computes only a part.
    """

    file: onnx.ModelProto
    graph: onnx.ModelProto | None
    events: list[Mapping[str, Any]]
    notes: tuple[str, ...]


def ran(path: Path, feed: Feed, runs: int, threads: int, providers: Sequence[str]) -> Ran:
    """Run a model `runs` times.

    Args:
        feed: receives the declared inputs of the model and returns their values.

    Raises:
        OSError, ValueError: the file cannot be read. Refused: ONNX Runtime rejects the model. NoInputs: the model fails on the inputs from
            `feed`.
    """
    file = assign_node_names(inline_functions(read_proto(path)))
    with TemporaryDirectory() as draft, running_on(providers, threads):
        made, graph = _session(file, path.parent, Path(draft), threads)
        feeds = {name: ort_value(value) for name, value in feed(list_declared_inputs(made)).items()}
        _run(made, feeds, runs)
        events = json.loads(Path(made.end_profiling()).read_text(encoding="utf-8"))
        where = instead(get_requested_providers(), made.get_providers()) or describe_provider_shares(
            get_requested_providers(), count_nodes_by_provider(made)
        )
        return Ran(file, graph, events, (where,) if where else ())


def _run(made: onnxruntime.InferenceSession, feeds: Mapping[str, Any], runs: int) -> None:
    names = [value.name for value in made.get_outputs()]
    try:
        for _ in range(runs):
            made.run_with_ort_values(names, feeds)
    except Exception as error:
        raise NoInputs(f"ONNX Runtime fails with these inputs: {first_line(error)}") from error


def _session(file: onnx.ModelProto, folder: Path, draft: Path, threads: int) -> tuple[onnxruntime.InferenceSession, onnx.ModelProto | None]:
    """Return the session and its optimised graph. The graph is None if it can't be saved."""
    import onnx

    graph = draft / "graph.onnx"
    try:
        made = session(file.SerializeToString(), _options(folder, draft, threads, graph))
    except Exception as error:
        if COMPILED not in str(error):
            raise Refused(f"ONNX Runtime rejects the file: {first_line(error)}") from error
        return session(file.SerializeToString(), _options(folder, draft, threads, None)), None
    return made, onnx.load(graph, load_external_data=False)


def _options(folder: Path, draft: Path, threads: int, graph: Path | None) -> onnxruntime.SessionOptions:
    options = session_options(threads)
    options.log_severity_level = 4
    options.enable_profiling, options.profile_file_prefix = True, str(draft / "profile")
    options.add_session_config_entry(FOLDER, str(folder.resolve()))
    if graph is not None:
        options.optimized_model_filepath = str(graph)
        options.add_session_config_entry(WEIGHTS, "weights")
        options.add_session_config_entry(WEIGHTS_FROM, "1024")
    return options


def assign_node_names(file: onnx.ModelProto) -> onnx.ModelProto:
    """Give each node a name that is unique across all graphs, in place. A profile identifies nodes only by name.

    Duplicates within a graph stay, because ONNX Runtime rejects such a file.
    """
    taken: set[str] = set()
    for graph in graphs(file.graph):
        here = {node.name for node in graph.node if node.name}
        for place, node in enumerate(graph.node):
            if not node.name or node.name in taken:
                node.name = _unique(node.name or f"{node.op_type}_{place}", taken | here)
                here.add(node.name)
        taken |= here
    return file


def _unique(name: str, taken: set[str]) -> str:
    number, found = 2, name
    while found in taken:
        found, number = f"{name}_{number}", number + 1
    return found
