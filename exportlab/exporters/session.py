"""Sessions of ONNX Runtime as every file here is run: with the warnings that it gives by default, and on CPU unless asked otherwise."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import onnxruntime


CPU = "CPUExecutionProvider"
USUAL = ("cpu", CPU)  # where things run unless asked otherwise
RECORD_NODES = "session.record_ep_graph_assignment_info"  # whose nodes are whose; off unless asked for
IN_NAMES = "ExecutionProvider"  # how the name of each provider ends
Options = Mapping[str, Mapping[str, str]]  # of providers, by name
#: Options for full float32: by default the CUDA provider multiplies in TF32, which has 10 bits.
EXACT: Options = {"CUDAExecutionProvider": {"use_tf32": "0"}}
_asked: ContextVar[tuple[tuple[str, ...], int, Options]] = ContextVar("asked", default=((CPU,), 0, {}))


class ProviderError(ValueError):
    """A provider of ONNX Runtime cannot be used; the message is one line that lists those that can."""


def can_fork(providers: Sequence[str], device: str = "cpu") -> bool:
    """Return whether what runs on these works in a fork: what uses CUDA, or another accelerator, does not."""
    return set(providers) <= {CPU} and device == "cpu"


@contextmanager
def running_on(providers: Sequence[str] = (CPU,), threads: int = 0, options: Options | None = None) -> Iterator[None]:
    """Make the sessions of a block run on these providers, the first one first, and on so many threads; 0: as many as there are cores.

    Raises:
        ProviderError: ONNX Runtime has no provider of such a name in any build.
    """
    check_known(providers)
    token = _asked.set((tuple(providers), threads, options or {}))
    try:
        yield
    finally:
        _asked.reset(token)


def get_requested_providers() -> tuple[str, ...]:
    """Return the providers that sessions shall run on here."""
    return _asked.get()[0]


def check_known(providers: Sequence[str]) -> None:
    """Check that each name is a provider of some build of ONNX Runtime.

    Raises:
        ProviderError: a name is unknown; the message has the nearest one.
    """
    import onnxruntime

    known = {*onnxruntime.get_all_providers(), *onnxruntime.get_available_providers()}
    for name in (name for name in providers if name not in known):
        short = {one.lower().removesuffix(IN_NAMES.lower()): one for one in sorted(known)}
        near = get_close_matches(name.lower().removesuffix(IN_NAMES.lower()), short, 1, 0.5)
        meant = f": did you mean {short[near[0]]}?" if near else f", which knows {', '.join(sorted(known))}"
        raise ProviderError(f"{name} is not a provider of ONNX Runtime{meant}")


def check_present(providers: Sequence[str]) -> None:
    """Check that this build of ONNX Runtime has each provider.

    Raises:
        ProviderError: there is one.
    """
    import onnxruntime

    check_known(providers)
    there = onnxruntime.get_available_providers()
    if absent := [name for name in providers if name not in there]:
        raise ProviderError(f"{', '.join(absent)} is not in this ONNX Runtime, which has {', '.join(there)}: install a build that has it")


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


def count_nodes_by_provider(made: onnxruntime.InferenceSession) -> Counter[str]:
    """Return how many nodes of a session each provider computes; nothing where only the CPU's could, or where no node is left to compute.

    A session lists the providers that it registered, and one of those may have been given no node.
    """
    if made.get_providers() == [CPU]:
        return Counter()
    found: Counter[str] = Counter()
    for part in made.get_provider_graph_assignment_info():
        found[part.ep_name] += len(part.get_nodes())
    return found


def describe_provider_shares(providers: Sequence[str], nodes: Counter[str]) -> str:
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

    providers, threads, of_providers = _asked.get()
    found, options = list(present(providers)[0]), options or session_options(threads)
    if found != [CPU]:
        options.add_session_config_entry(RECORD_NODES, "1")
    given = [(name, dict(of_providers[name])) if name in of_providers else name for name in found]
    return onnxruntime.InferenceSession(file, options, providers=given)


def settings(made: onnxruntime.InferenceSession) -> str:
    """Return the provider options of a session that were set here, as `use_tf32=0`."""
    if not (given := _asked.get()[2]):
        return ""
    has = made.get_provider_options()
    return ", ".join(f"{key}={has[name].get(key, value)}" for name in given if name in has for key, value in given[name].items())
