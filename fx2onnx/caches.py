"""Registers the caches of transformers as pytree nodes while a model is captured or called."""

from __future__ import annotations

import importlib.util
import sys
import warnings
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from itertools import zip_longest
from typing import Any

from .compat import trees as pytree
from .locking import CAPTURE_LOCK
from .patches.registry import apply_patches, register_context


@contextmanager
def containers_kept() -> Iterator[None]:
    """Restore torch's pytree registries at the end of the context."""
    found = registries()
    before = [registry.copy() for registry in found]
    try:
        yield
    finally:
        _forget_in_optree(set(found[0]) - set(before[0]))
        for registry, own in zip(found, before, strict=True):
            registry.clear()
            registry.extend(own) if isinstance(registry, list) else registry.update(own)


@contextmanager
def caches_known() -> Iterator[None]:
    """Register each cache of transformers as a pytree node: the keys of all layers, then their values.

    This does nothing if transformers is not imported, or is older than its registrations (5.0). If the registrations cannot be imported,
    because they need packages that no cache needs, such as torchvision, it only warns.
    """
    if "transformers" not in sys.modules or importlib.util.find_spec("transformers.exporters") is None:
        yield
        return
    if not _can_be_registered():
        yield
        return
    with CAPTURE_LOCK, apply_patches("caches"):
        yield


def _can_be_registered() -> bool:
    """Return whether the registrations of transformers can be imported; warn if not."""
    try:
        import transformers.exporters.exporter_dynamo
        import transformers.integrations.executorch  # noqa: F401
    except (ImportError, RuntimeError) as error:  # an incomplete torchvision raises a RuntimeError
        warnings.warn(f"caches of transformers are not supported, because its import fails: {str(error).strip()}", stacklevel=3)
        return False
    return True


@register_context(
    "caches",
    "torch.utils._pytree.SUPPORTED_NODES",
    reason="the caches of transformers are not registered as pytree nodes",
    issue="pytorch#155862",
)
@contextmanager
def _register_caches() -> Iterator[None]:
    """Register all caches."""
    from transformers import Cache, DynamicCache, StaticCache
    from transformers.exporters.exporter_dynamo import register_pytree_node
    from transformers.integrations.executorch import _unflatten_dynamic_cache, register_dynamic_cache_export_support

    with containers_kept():
        register_dynamic_cache_export_support()
        for kind in _subclasses(Cache):
            register_pytree_node(kind)
        known = pytree.SUPPORTED_NODES[DynamicCache]
        if known.unflatten_fn is _unflatten_dynamic_cache:  # other code may have registered it already, with another context
            known = known._replace(unflatten_fn=_put_together_from(known.unflatten_fn))
            pytree.SUPPORTED_NODES[DynamicCache] = _flatten_all_layers(known, pytree.SUPPORTED_NODES[StaticCache])
        yield


def _flatten_all_layers(usual: Any, general: Any) -> Any:
    """Return the node of `DynamicCache` that flattens the states of linear attention too, for which the one of transformers raises.

    Args:
        usual: the node for caches that have only keys and values.
        general: the node of other caches, which flattens all attributes.
    """
    from transformers.cache_utils import DummyLayer, DynamicLayer, DynamicSlidingWindowLayer

    def node_of(cache: Any) -> Any:
        has_states = any(type(layer) not in (DynamicLayer, DynamicSlidingWindowLayer, DummyLayer) for layer in cache.layers)
        return general if has_states else usual

    def unflatten(values: Iterable[Any], context: Any) -> Any:
        return (general if isinstance(context, dict) else usual).unflatten_fn(values, context)

    return usual._replace(
        flatten_fn=lambda cache: node_of(cache).flatten_fn(cache),
        unflatten_fn=unflatten,
        flatten_with_keys_fn=lambda cache: node_of(cache).flatten_with_keys_fn(cache),
    )


def _put_together_from(own: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function that makes a `DynamicCache` of its tensors without an operator.

    Transformers' own function calls `update`, which torch captures. The captured call starts from a constant, which
    `run_decompositions` misses, and cuts tensors to the window even if they are not longer.
    """
    from transformers import DynamicCache

    def put_together(values: Iterable[Any], context: list[Any]) -> Any:
        names, windows = context
        if isinstance(windows, str):  # older releases store only the names
            return own(values, context)
        parts = dict(zip(names, values, strict=True))
        cache = DynamicCache()
        cache.layers.extend(_layer(*each) for each in zip_longest(parts["key_cache"], parts["value_cache"], windows))
        return cache

    return put_together


def _layer(keys: Any, values: Any, window: int | None) -> Any:
    from transformers.cache_utils import DynamicLayer, DynamicSlidingWindowLayer

    layer = DynamicLayer() if window is None else DynamicSlidingWindowLayer(window)
    if keys is not None:
        layer.keys, layer.values, layer.is_initialized = keys, values, True
        layer.dtype, layer.device = keys.dtype, keys.device
        if window is not None:
            layer.cumulative_length = keys.shape[-2]
    return layer


def is_cache(value: Any) -> bool:
    """Return whether a value is a cache of transformers."""
    return "transformers" in sys.modules and isinstance(value, sys.modules["transformers"].Cache)


def flatten_call(args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[list[Any], pytree.TreeSpec]:
    """Return the leaves and the tree of the arguments, with caches registered only if there is one."""
    if not any(is_cache(value) for value in (*args, *kwargs.values())):
        return pytree.tree_flatten((args, kwargs))
    with caches_known():
        return pytree.tree_flatten((args, kwargs))


def _subclasses(kind: type) -> Iterator[type]:
    one: type
    for one in kind.__subclasses__():
        yield one
        yield from _subclasses(one)


def registries() -> list[Any]:
    """Return all registries of pytree nodes in torch."""
    of_fx = pytree.fx_pytree
    of_torch = (pytree.SUPPORTED_NODES, pytree.SUPPORTED_SERIALIZED_TYPES, pytree.SERIALIZED_TYPE_TO_PYTHON_TYPE)
    return [*of_torch, pytree.CONSTANT_NODES, pytree.cxx_pytree_pending_imports, of_fx.SUPPORTED_NODES, of_fx.SUPPORTED_NODES_EXACT_MATCH]


def _forget_in_optree(classes: set[type]) -> None:
    """Unregister classes in optree, where torch registers them if optree is in use."""
    if "torch.utils._cxx_pytree" in sys.modules:
        import optree

        for kind in classes:
            optree.unregister_pytree_node(kind, namespace="torch")


def entries_told(arguments: dict[str, Any]) -> str:
    """Return sentences about how to write the `dynamic_shapes` of each cache among these arguments."""
    caches = [(name, value) for name, value in arguments.items() if is_cache(value)]
    return "".join(f" For {name} ({type(value).__name__}), pass {_entry_of_cache(value)}." for name, value in caches)


def _entry_of_cache(cache: Any) -> str:
    if type(cache).__name__ == "DynamicCache":
        return "[[keys of each layer], [values of each layer]]"
    return f"a list of {len(flatten_call((cache,), {})[0])} entries, one per tensor"
