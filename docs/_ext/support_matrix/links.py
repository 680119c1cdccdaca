"""Find the pages that a cell of the support matrix links to: pages about its case, and about the topics of the case."""

from __future__ import annotations

from pathlib import Path

from site_files import ROOT

from exportlab.cases import Case

ONNX, GRAPH = "generated/gallery/torch_onnx", "generated/gallery/torch_export"
CASE_PAGES = {
    "branch_on_value": f"{ONNX}/cond",
    "cond_on_value": f"{ONNX}/cond",
    "row_loop": f"{ONNX}/loop_over_the_batch",
    "scan_sum": f"{GRAPH}/scan",
    "linear_regression": f"{ONNX}/linear_regression",
    "mlp": f"{ONNX}/two_exporters",
    "custom_op": f"{ONNX}/untranslated_op",
    "index_update": f"{GRAPH}/inplace_index",
    "block_stack": f"{ONNX}/submodules_to_onnx",
    "same_tensor_thrice": "tutorials/101_module_to_file",
    "branch_on_batch": "tutorials/103_shapes_that_move",
}
TOPIC_PAGES = {
    "branches": f"{ONNX}/cond",
    "early exit": f"{ONNX}/cond",
    "cond": f"{ONNX}/cond",
    "scan": f"{GRAPH}/scan",
    "loops": f"{ONNX}/loop_over_the_batch",
    "control flow": f"{GRAPH}/scan",
    "mutation": f"{GRAPH}/inplace_index",
    "custom ops": f"{ONNX}/custom_op_function",
    "hierarchy": f"{ONNX}/submodules",
    "shared weights": f"{ONNX}/submodules",
    "containers": f"{GRAPH}/kwargs_and_caches",
    "Python values": f"{GRAPH}/kwargs_and_caches",
    "None": f"{GRAPH}/kwargs_and_caches",
    "keywords": f"{GRAPH}/kwargs_and_caches",
    "cache": f"{GRAPH}/kwargs_and_caches",
    "dynamic shapes": f"{GRAPH}/dynamic_shapes",
    "bounds": f"{GRAPH}/dynamic_shapes",
    "equal sizes": f"{GRAPH}/dynamic_shapes",
    "state": "docs/to_onnx_arguments",
    "signature": f"{ONNX}/simple_case",
    "silence": "docs/outcomes",
}


def pages_of(case: Case) -> list[str]:
    """Return the pages about a case: its own pages first, then those of its topics."""
    own = [CASE_PAGES[case.name]] if case.name in CASE_PAGES else []
    return list(dict.fromkeys([*own, *(TOPIC_PAGES[topic] for topic in case.topics if topic in TOPIC_PAGES)]))


def links_of(case: Case) -> list[tuple[str, str]]:
    """Return titles and relative addresses of the pages about a case."""
    return [(title(page), f"../{page}.html") for page in pages_of(case)]


def source_of(page: str) -> Path:
    """Return the source file of a page.

    Raises:
        FileNotFoundError: the file doesn't exist.
    """
    for end in (".py", ".md"):
        path = ROOT / (page.removeprefix("generated/") + end)
        if path.exists():
            return path
    raise FileNotFoundError(f"the support matrix links to {page}, which does not have a source file")


def title(page: str) -> str:
    """Return the title of a page from its source."""
    lines = source_of(page).read_text(encoding="utf-8").splitlines()
    found = next((line for line in lines if line.startswith("# ") and not line.startswith("# %%")), lines[0])
    return (lines[1] if source_of(page).suffix == ".py" else found.removeprefix("# ")).replace("`", "")
