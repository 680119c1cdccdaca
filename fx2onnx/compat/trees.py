"""Torch's trees of containers."""

from __future__ import annotations

from collections.abc import Sequence

from torch.fx import _pytree as fx_pytree
from torch.utils import _pytree
from torch.utils._pytree import (
    CONSTANT_NODES,
    SERIALIZED_TYPE_TO_PYTHON_TYPE,
    SUPPORTED_NODES,
    SUPPORTED_SERIALIZED_TYPES,
    KeyEntry,
    KeyPath,
    MappingKey,
    SequenceKey,
    TreeSpec,
    keystr,
    register_pytree_node,
    tree_flatten,
    tree_flatten_with_path,
    tree_is_leaf,
    tree_leaves,
    tree_leaves_with_path,
    tree_map,
    tree_map_only,
    tree_structure,
    tree_unflatten,
)

__all__ = [
    "CONSTANT_NODES",
    "SERIALIZED_TYPE_TO_PYTHON_TYPE",
    "SUPPORTED_NODES",
    "SUPPORTED_SERIALIZED_TYPES",
    "KeyEntry",
    "KeyPath",
    "MappingKey",
    "SequenceKey",
    "TreeSpec",
    "children_of",
    "cxx_pytree_pending_imports",
    "fx_pytree",
    "get_node_type",
    "keystr",
    "register_pytree_node",
    "tree_flatten",
    "tree_flatten_with_path",
    "tree_is_leaf",
    "tree_leaves",
    "tree_leaves_with_path",
    "tree_map",
    "tree_map_only",
    "tree_structure",
    "tree_unflatten",
]  # fmt: skip

get_node_type = _pytree._get_node_type
cxx_pytree_pending_imports = _pytree._cxx_pytree_pending_imports


def children_of(spec: TreeSpec) -> Sequence[TreeSpec]:
    """Return the children of a tree spec."""
    return spec.children() if hasattr(spec, "children") else spec.children_specs
