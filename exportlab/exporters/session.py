"""Sessions of ONNX Runtime as every file here is run: with the warnings that it gives by default, and on CPU unless asked otherwise."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import onnxruntime


CPU = "CPUExecutionProvider"
USUAL = ("cpu", CPU)  # where things run unless asked otherwise
RECORD_NODES = "session.record_ep_graph_assignment_info"  # whose nodes are whose; off unless asked for
_asked: ContextVar[tuple[tuple[str, ...], int]] = ContextVar("asked", default=((CPU,), 0))


def can_fork(providers: Sequence[str], device: str = "cpu") -> bool:
    """Return whether what runs on these works in a fork: what uses CUDA, or another accelerator, does not."""
    return set(providers) <= {CPU} and device == "cpu"


@contextmanager
def running_on(providers: Sequence[str] = (CPU,), threads: int = 0) -> Iterator[None]:
    """Make the sessions of a block run on these providers, the first one first, and on so many threads; 0: as many as there are cores."""
    token = _asked.set((tuple(providers), threads))
    try:
        yield
    finally:
        _asked.reset(token)


def asked() -> tuple[str, ...]:
    """Return the providers that sessions shall run on here."""
    return _asked.get()[0]


def present(providers: Sequence[str]) -> tuple[tuple[str, ...], str]:
    """Return those that this ONNX Runtime has, the CPU's where there is none, and in a line what is absent and was taken instead."""
    import onnxruntime

    known = onnxruntime.get_available_providers()
    found = tuple(name for name in providers if name in known) or (CPU,)
    return found, instead(providers, found)


def instead(providers: Sequence[str], used: Sequence[str]) -> str:
    """Say in a line which of these providers were not used, why, and what was; nothing where all were.

    One that was built into ONNX Runtime and is not used could not be started: the session goes on without it, and says nothing.
    """
    import onnxruntime

    known, unused = onnxruntime.get_available_providers(), [name for name in providers if name not in used]
    absent, broken = [name for name in unused if name not in known], [name for name in unused if name in known]
    why = [f"{', '.join(absent)} is not in this ONNX Runtime, which has {', '.join(known)}"] * bool(absent)
    why += [f"{', '.join(broken)} is in this ONNX Runtime, but did not start"] * bool(broken)
    return f"{'; '.join(why)}: {', '.join(used)} was used instead" if why else ""


def computed(made: onnxruntime.InferenceSession) -> Counter[str]:
    """Return how many nodes of a session each provider computes; nothing where only the CPU's could, or where no node is left to compute.

    A session lists the providers that it registered, and one of those may have been given no node.
    """
    if made.get_providers() == [CPU]:
        return Counter()
    found: Counter[str] = Counter()
    for part in made.get_provider_graph_assignment_info():
        found[part.ep_name] += len(part.get_nodes())
    return found


def shared(providers: Sequence[str], nodes: Counter[str]) -> str:
    """Say in a line how many nodes each provider computes, where one that was asked for does not compute all; else nothing."""
    asked_for = [name for name in providers if name != CPU]
    if not nodes or not asked_for or set(nodes) <= set(asked_for):
        return ""
    parts = [f"{name} computes {nodes[name]}" for name in dict.fromkeys([*asked_for, *nodes])]
    return f"of {sum(nodes.values())} nodes {', '.join(parts)}"


def session_options(threads: int = 0) -> onnxruntime.SessionOptions:
    """Return options to be completed where more is wanted.

    Args:
        threads: how many a run may take; 0 for as many as there are cores.
    """
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = threads
    return options


def session(file: bytes | Path, options: onnxruntime.SessionOptions | None = None) -> onnxruntime.InferenceSession:
    """Return the session of a file, or of its bytes.

    Raises:
        onnxruntime.capi.onnxruntime_pybind11_state.Fail (and its siblings): ONNX Runtime refuses the file.
    """
    import onnxruntime

    providers, threads = _asked.get()
    found, options = list(present(providers)[0]), options or session_options(threads)
    if found != [CPU]:
        options.add_session_config_entry(RECORD_NODES, "1")
    return onnxruntime.InferenceSession(file, options, providers=found)
