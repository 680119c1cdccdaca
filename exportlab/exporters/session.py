"""Create ONNX Runtime sessions with default warnings, on the CPU unless other providers are requested."""

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
USUAL = ("cpu", CPU)  # the default device and provider
RECORD_NODES = "session.record_ep_graph_assignment_info"  # makes the session record each node's provider; off by default
IN_NAMES = "ExecutionProvider"  # suffix of provider names
Options = Mapping[str, Mapping[str, str]]  # provider options by provider name
#: Options for full float32 precision. By default the CUDA provider uses TF32, which has 10 mantissa bits.
EXACT: Options = {"CUDAExecutionProvider": {"use_tf32": "0"}}
_asked: ContextVar[tuple[tuple[str, ...], int, Options]] = ContextVar("asked", default=((CPU,), 0, {}))


class ProviderError(ValueError):
    """An ONNX Runtime provider cannot be used; the one-line message lists the available ones."""


def can_fork(providers: Sequence[str], device: str = "cpu") -> bool:
    """Return whether these providers and this device work in a forked process. CUDA and other accelerators don't."""
    return set(providers) <= {CPU} and device == "cpu"


@contextmanager
def running_on(providers: Sequence[str] = (CPU,), threads: int = 0, options: Options | None = None) -> Iterator[None]:
    """Make sessions in a block use these providers, in order of priority, and this number of threads; 0 means one per core.

    Raises:
        ProviderError: a name is not a provider of any build of ONNX Runtime.
    """
    check_known(providers)
    token = _asked.set((tuple(providers), threads, options or {}))
    try:
        yield
    finally:
        _asked.reset(token)


def get_requested_providers() -> tuple[str, ...]:
    """Return the providers requested by the enclosing `running_on`."""
    return _asked.get()[0]


def check_known(providers: Sequence[str]) -> None:
    """Check that each name is a provider of some build of ONNX Runtime.

    Raises:
        ProviderError: a name is unknown; the message suggests the closest match.
    """
    import onnxruntime

    known = {*onnxruntime.get_all_providers(), *onnxruntime.get_available_providers()}
    for name in (name for name in providers if name not in known):
        short = {one.lower().removesuffix(IN_NAMES.lower()): one for one in sorted(known)}
        near = get_close_matches(name.lower().removesuffix(IN_NAMES.lower()), short, 1, 0.5)
        meant = f": did you mean {short[near[0]]}?" if near else f". Known providers: {', '.join(sorted(known))}"
        raise ProviderError(f"{name} is not a provider of ONNX Runtime{meant}")


def check_present(providers: Sequence[str]) -> None:
    """Check that this build of ONNX Runtime has each provider.

    Raises:
        ProviderError: this build lacks a provider.
    """
    import onnxruntime

    check_known(providers)
    there = onnxruntime.get_available_providers()
    if absent := [name for name in providers if name not in there]:
        raise ProviderError(f"{', '.join(absent)} is not in this ONNX Runtime, which has {', '.join(there)}: install a build that has it")


def present(providers: Sequence[str]) -> tuple[tuple[str, ...], str]:
    """Return the available providers, or the CPU's if none is available, and a line that describes the missing ones."""
    import onnxruntime

    known = onnxruntime.get_available_providers()
    found = tuple(name for name in providers if name in known) or (CPU,)
    return found, instead(providers, found)


def instead(providers: Sequence[str], used: Sequence[str]) -> str:
    """Describe which of these providers were not used, why, and what was used instead; empty if all were used.

    A provider that is built into ONNX Runtime but not used failed to start. The session continues without it, with no error.
    """
    import onnxruntime

    known, unused = onnxruntime.get_available_providers(), [name for name in providers if name not in used]
    absent, broken = [name for name in unused if name not in known], [name for name in unused if name in known]
    why = [f"{', '.join(absent)} is not in this ONNX Runtime, which has {', '.join(known)}"] * bool(absent)
    why += [f"{', '.join(broken)} is in this ONNX Runtime, but did not start"] * bool(broken)
    return f"{'; '.join(why)}: {', '.join(used)} was used instead" if why else ""


def count_nodes_by_provider(made: onnxruntime.InferenceSession) -> Counter[str]:
    """Return the number of nodes that run on each provider; empty if only the CPU's is registered or no nodes are left.

    A session's list of providers includes those without any nodes.
    """
    if made.get_providers() == [CPU]:
        return Counter()
    found: Counter[str] = Counter()
    for part in made.get_provider_graph_assignment_info():
        found[part.ep_name] += len(part.get_nodes())
    return found


def describe_provider_shares(providers: Sequence[str], nodes: Counter[str]) -> str:
    """Describe the number of nodes per provider if the requested ones don't run all of them; empty otherwise."""
    asked_for = [name for name in providers if name != CPU]
    if not nodes or not asked_for or set(nodes) <= set(asked_for):
        return ""
    parts = [f"{name} computes {nodes[name]}" for name in dict.fromkeys([*asked_for, *nodes])]
    return f"of {sum(nodes.values())} nodes {', '.join(parts)}"


def session_options(threads: int = 0) -> onnxruntime.SessionOptions:
    """Return session options with this number of threads.

    Args:
        threads: the maximum number of threads for a run; 0 means one per core.
    """
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = threads
    return options


def session(file: bytes | Path, options: onnxruntime.SessionOptions | None = None) -> onnxruntime.InferenceSession:
    """Create a session for a model, given as a path or as bytes.

    Raises:
        onnxruntime.capi.onnxruntime_pybind11_state.Fail (and its siblings): ONNX Runtime rejects the model.
    """
    import onnxruntime

    providers, threads, of_providers = _asked.get()
    found, options = list(present(providers)[0]), options or session_options(threads)
    if found != [CPU]:
        options.add_session_config_entry(RECORD_NODES, "1")
    given = [(name, dict(of_providers[name])) if name in of_providers else name for name in found]
    return onnxruntime.InferenceSession(file, options, providers=given)


def settings(made: onnxruntime.InferenceSession) -> str:
    """Return the session's provider options that were set here, such as `use_tf32=0`."""
    if not (given := _asked.get()[2]):
        return ""
    has = made.get_provider_options()
    return ", ".join(f"{key}={has[name].get(key, value)}" for name in given if name in has for key, value in given[name].items())
