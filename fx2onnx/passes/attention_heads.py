"""Simplifies the inputs of Attention: heads without transposes, keys without repetition for shared heads, caches without Concat."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import takewhile

import onnx_ir as ir

from .graph_patterns import Nodes, producer_of, remove_nodes, replace_nodes, replace_value, sizes, whole_numbers

MOVED = [0, 2, 1, 3]  # between (batch, length, heads, width) and (batch, heads, length, width), both ways


def attention(graph: Nodes, node: ir.Node) -> None:
    """Remove the nodes that only prepare the inputs of an Attention with four axes."""
    keys_once(graph, node)
    heads_unmoved(graph, cache_taken(graph, node))


def keys_once(graph: Nodes, node: ir.Node) -> None:
    """Remove the repetition of keys and values for heads that share them, because Attention supports grouped heads."""
    given = [_match_repeated_heads(value) for value in node.inputs[1:3]]
    for at, value in enumerate(given, 1) if None not in given else ():
        before = producer_of(node.inputs[at], "Reshape")
        node.replace_input_with(at, value)
        if before is not None and before.graph is not None:
            remove_nodes(graph, before)


def _match_repeated_heads(repeated: ir.Value | None) -> ir.Value | None:
    """Return x (batch, heads, length, width) of Reshape(Expand(Unsqueeze(x, 2))), which repeats each head several times in a row."""
    shaped = producer_of(repeated, "Reshape")
    expanded = producer_of(shaped.inputs[0], "Expand") if shaped is not None else None
    raised = producer_of(expanded.inputs[0], "Unsqueeze") if expanded is not None else None
    if expanded is None or raised is None or whole_numbers(raised.inputs[1]) != [2]:
        return None
    x, wide, flat = sizes(raised.inputs[0], 4), sizes(expanded.outputs[0], 5), sizes(repeated, 4)
    if x is None or wide is None or flat is None or not isinstance(x[1], int) or not isinstance(wide[2], int):
        return None
    if (*wide[:2], *wide[3:]) != x or flat != (x[0], x[1] * wide[2], *x[2:]):
        return None
    return raised.inputs[0]


def cache_taken(graph: Nodes, node: ir.Node) -> ir.Node:
    """Pass a cache as `past_key` and `past_value` instead of a Concat, whose result becomes a further output of Attention."""
    joined = [_match_cache_concat(value) for value in node.inputs[1:3]]
    keys, values = joined
    if keys is None or values is None or keys is values or "is_causal" in node.attributes:
        return node  # causal counts from the end of the cache
    readers = {use.node for concat in (keys, values) for use in concat.outputs[0].uses()} - {node}
    if readers & _before(graph, node) or any(reader.graph is not node.graph for reader in readers):
        return node
    (past_keys, key), (past_values, value) = keys.inputs, values.inputs
    mask = node.inputs[3] if len(node.inputs) > 3 else None
    new = _beside(graph, node, [node.inputs[0], key, value, mask, past_keys, past_values], list(node.attributes.values()), 3)
    for old, made in zip((node, keys, values), new.outputs, strict=True):
        replace_value(old.outputs[0], made)
    for old in (node, keys, values):
        if old.graph is not None:
            remove_nodes(graph, old)
    return new


def _match_cache_concat(value: ir.Value | None) -> ir.Node | None:
    concat = producer_of(value, "Concat")
    if concat is None or len(concat.inputs) != 2 or sizes(value, 4) is None or concat.attributes.get_int("axis") not in (-2, 2):
        return None
    return concat


def _before(graph: Nodes, node: ir.Node) -> set[ir.Node]:
    return set(takewhile(lambda each: each is not node, graph))


def _beside(graph: Nodes, old: ir.Node, inputs: Sequence[ir.Value | None], attributes: Sequence[ir.Attr], outputs: int) -> ir.Node:
    new = ir.Node("", "Attention", inputs, attributes, num_outputs=outputs, name=old.name, metadata_props=dict(old.metadata_props))
    graph.insert_before(old, new)
    return new


def heads_unmoved(graph: Nodes, node: ir.Node) -> None:
    """Remove the transposes of heads if queries, keys and values are from (batch, length, heads · width), as the result is."""
    joined = _match_merged_heads(node)
    heads, shared, of_values = (_split(value) for value in node.inputs[:3])
    if joined is None or heads is None or shared is None or of_values is None:
        return
    flat = [_flat(graph, value) for value in node.inputs[:3]]
    said = [ir.AttrInt64("q_num_heads", heads), ir.AttrInt64("kv_num_heads", shared)]
    new = _beside(graph, node, [*flat, *node.inputs[3:]], [*node.attributes.values(), *said], len(node.outputs))
    for old, made in zip((joined.outputs[0], *node.outputs[1:]), new.outputs, strict=True):
        replace_value(old, made)
    remove_nodes(graph, joined)


def _match_merged_heads(node: ir.Node) -> ir.Node | None:
    """Return the Reshape to (batch, length, heads · width) after a Transpose, if they are the only readers of an Attention."""
    back = _only(node, "Transpose")
    if back is None or list(back.attributes["perm"].as_ints()) != MOVED:
        return None
    shaped, before = _only(back, "Reshape"), sizes(back.outputs[0], 4)
    after = sizes(shaped.outputs[0], 3) if shaped is not None else None
    if before is None or after is None or not isinstance(before[2], int) or not isinstance(before[3], int):
        return None
    return shaped if after == (*before[:2], before[2] * before[3]) else None


def _only(node: ir.Node, op_type: str) -> ir.Node | None:
    uses = list(node.outputs[0].uses())
    found = uses[0].node if len(uses) == 1 and not node.outputs[0].is_graph_output() else None
    return found if found is not None and found.op_type == op_type and found.domain == "" else None


def _split(value: ir.Value | None) -> int | None:
    """Return the number of heads of (batch, heads, length, width) that is a split, transposed and maybe rotated (batch, length, width)."""
    turned = producer_of(value, "RotaryEmbedding")
    if turned is not None and value is not None:
        value = turned.inputs[0] if len(value.uses()) == 1 and not value.is_graph_output() else None
    shaped = _match_split_heads(value)
    after, before = (sizes(shaped.outputs[0], 4), sizes(shaped.inputs[0], 3)) if shaped is not None else (None, None)
    if after is None or before is None or not isinstance(after[2], int) or not isinstance(after[3], int):
        return None
    return after[2] if before == (*after[:2], after[2] * after[3]) else None


def _match_split_heads(value: ir.Value | None) -> ir.Node | None:
    """Return the Reshape whose third axis, the heads, is transposed to the second."""
    moved = producer_of(value, "Transpose")
    return producer_of(moved.inputs[0], "Reshape") if moved is not None and list(moved.attributes["perm"].as_ints()) == MOVED else None


def _flat(graph: Nodes, value: ir.Value | None) -> ir.Value | None:
    """Return the (batch, length, heads · width) of the value whose heads `_split` counts."""
    turned, shaped = producer_of(value, "RotaryEmbedding"), _match_split_heads(value)
    if turned is None:
        return shaped.inputs[0] if shaped is not None else None
    flat = _flat(graph, turned.inputs[0])
    new = replace_nodes(graph, turned, "RotaryEmbedding", [flat, *turned.inputs[1:]], [ir.AttrInt64("num_heads", _split(value) or 0)])
    new.outputs[0].name, new.outputs[0].shape = f"{new.outputs[0].name}/flat", flat.shape if flat is not None else None
    return new.outputs[0]
