"""Writes the table of ONNX Runtime's CPU kernels that `to_onnx` reads: run it when the pinned onnxruntime changes.

    python tools/cpu_kernels.py

One line for each operator and range of opsets: `Add 14- T=double,float,int32`. The types are those of all kernels together.
"""

from __future__ import annotations

from collections import defaultdict
from pathlib import Path

import onnx
import onnxruntime
from onnxruntime.capi.onnxruntime_pybind11_state import get_all_opkernel_def

TABLE = Path(__file__).parents[1] / "fx2onnx/ir/cpu_kernels.txt"
OLDEST_OPSET = 18
NEWEST = 2**31 - 1
Types = dict[str, set[str]]


def kernels() -> dict[tuple[str, int, int], Types]:
    """Return the types by constraint of each operator of ONNX and range of opsets, of the installed onnxruntime."""
    found: dict[tuple[str, int, int], Types] = defaultdict(lambda: defaultdict(set))
    for kernel in get_all_opkernel_def():
        first, last = kernel.version_range
        if kernel.provider == "CPUExecutionProvider" and kernel.domain == "" and last >= _oldest_version(kernel.op_name):
            for constraint, types in kernel.type_constraints.items():
                found[kernel.op_name, first, last][constraint] |= set(types)
    return found


def _oldest_version(op_type: str) -> int:
    """The version of an operator that the oldest opset of `to_onnx` has; 0 for one that came later."""
    try:
        return onnx.defs.get_schema(op_type, OLDEST_OPSET, "").since_version
    except onnx.defs.SchemaError:
        return 0


def table() -> str:
    """Return the text of the table."""
    lines = [f"# CPU kernels of onnxruntime {onnxruntime.__version__}, written by tools/cpu_kernels.py"]
    for (op_type, first, last), constraints in sorted(kernels().items()):
        types = [f"{name}={','.join(map(_short, sorted(constraints[name])))}" for name in sorted(constraints)]
        lines.append(f"{op_type} {first}-{'' if last == NEWEST else last} {' '.join(types)}".rstrip())
    return "\n".join(lines) + "\n"


def _short(name: str) -> str:
    return name.removeprefix("tensor(").removesuffix(")") if name.startswith("tensor(") else name


if __name__ == "__main__":
    TABLE.write_text(table(), encoding="utf-8")
    print(f"{TABLE}: {table().count(chr(10)) - 1} lines")
