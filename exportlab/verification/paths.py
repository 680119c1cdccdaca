"""Return the leaves of a value with their paths, including containers that were registered without keys."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from fx2onnx.compat import trees as pytree
from fx2onnx.compat.trees import KeyEntry, KeyPath, MappingKey, SequenceKey


def leaves_with_path(tree: Any) -> tuple[list[tuple[KeyPath, Any]], pytree.TreeSpec]:
    """Do the same as `torch.utils._pytree.tree_flatten_with_path`, but for all containers.

    That function fails for classes registered without `flatten_with_keys_fn`, such as the outputs of diffusers.
    """
    return list(_paths((), tree)), pytree.tree_structure(tree)


def _paths(path: KeyPath, tree: Any) -> Iterator[tuple[KeyPath, Any]]:
    if pytree.tree_is_leaf(tree):
        yield path, tree
        return
    for key, child in _children(tree):
        yield from _paths((*path, key), child)


def _children(tree: Any) -> list[tuple[KeyEntry, Any]]:
    """Return the children of a container, identified by its keys, the names in its context, or their position."""
    node = pytree.SUPPORTED_NODES[pytree.get_node_type(tree)]
    if node.flatten_with_keys_fn is not None:
        return list(node.flatten_with_keys_fn(tree)[0])
    children, context = node.flatten_fn(tree)
    if isinstance(context, (list, tuple)) and len(context) == len(children) and all(isinstance(name, str) for name in context):
        return [(MappingKey(name), child) for name, child in zip(context, children, strict=True)]
    return [(SequenceKey(number), child) for number, child in enumerate(children)]
