"""Hostile arguments of what draws and prints."""

from __future__ import annotations

from typing import Any

import matplotlib.pyplot as plt
import torch
from hostile import KINDS_OF_PATH, NAMES, X, in_folder, made, mostly, of_kind, path_in, values
from hypothesis import given
from hypothesis import strategies as st
from promise import promised

from exportlab import show, to_onnx

LINEAR = made("linear")
PROGRAM = to_onnx(LINEAR, (X,))
CAPTURED = torch.export.export(LINEAR, (X,))
kinds = st.sampled_from(KINDS_OF_PATH)
sources = st.sampled_from([PROGRAM, CAPTURED, PROGRAM.model_proto, CAPTURED.graph_module])
rows = st.lists(
    st.fixed_dictionaries({"a": values, "b": st.text(max_size=3)}) | st.dictionaries(st.sampled_from(NAMES), values, max_size=2), max_size=3
)


@given(mostly(rows=rows, title=st.text(max_size=9)))
def test_table(given: dict[str, Any]) -> None:
    def use() -> None:
        found = show.table(**given)
        assert (repr(found) + found._repr_html_()).encode()

    promised(use)


@given(st.sampled_from([show.program, show.summary]), sources | values | kinds)
def test_in_lines(shown: Any, source: Any) -> None:
    with in_folder() as folder:
        given = path_in(folder, source) if of_kind(source) else source
        promised(lambda: shown(given), writes=folder)


@given(mostly(source=sources, title=st.text(max_size=5), save=kinds, most=st.integers()))
def test_graph(given: dict[str, Any]) -> None:
    with in_folder() as folder:
        save = path_in(folder, given["save"]) if of_kind(given["save"]) else given["save"]
        promised(lambda: show.graph(**{**given, "save": save}), writes=folder)
    plt.close("all")
