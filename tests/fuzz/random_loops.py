"""Random functions of rows with loops, as text: tests of values, breaks, loops in loops and loops on values, in any order.

Run it as `python random_loops.py FIRST COUNT [two]` to hold many against their files, with `two` over two lengths.
"""

from __future__ import annotations

import importlib.util
import random
import sys
import tempfile
import warnings
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn

from fx2onnx import ToOnnxError, to_onnx

NAMES = ("a", "b", "c")
HEAD = ["import torch", "def function(x, y):", "    a, b, c = x.sum(0) * 0.5, torch.ones(3), x.sum(0)", "    d, out = torch.zeros(2), [a]"]
SIZES = ((1, 1), (2, 3), (5, 2), (9, 11), (0, 0), (17, 1))
SCALES = (1.0, 0.3, 4.0)


class Text:
    """Writes one function.

    Args:
        inputs: the names of what it loops over.
    """

    def __init__(self, seed: int, inputs: Sequence[str]) -> None:
        self._random, self._inputs = random.Random(seed), inputs

    def written(self) -> str:
        """Return the text, which has a loop."""
        while True:
            lines = self._block(1, [], self._random.randint(1, 3))
            if any(line.lstrip().startswith(("for ", "while ")) for line in lines):
                return "\n".join([*HEAD, *lines, "    return a, b, c, d, torch.stack(out)", ""])

    def _one(self, *choices: str) -> str:
        return self._random.choice(choices)

    def _value(self, rows: list[str]) -> str:
        one, other = self._one(*NAMES), self._one(*NAMES, *rows)
        return self._one(
            *(f"{one} * 0.5 + {other}", f"{one} - {other} * 0.3", f"torch.tanh({one} + {other})", f"{other} * 0.9", f"{one} + 1"),
            f"torch.maximum({one}, {other})",
        )

    def _test(self, rows: list[str]) -> str:
        one = self._one(*NAMES, *rows)
        return self._one(f"{one}.sum() > 0", f"{one}[0] > {one}[1]", f"{one}.abs().max() < 0.7")

    def _block(self, depth: int, rows: list[str], more: int, loops: int = 0) -> list[str]:
        """One or two statements, `more` of which have others inside, in so many loops."""
        lines: list[str] = []
        for _ in range(self._random.randint(1, 2)):
            kind = self._random.random() if more > 0 else 0
            more -= kind >= 0.4
            lines += (
                [f"{self._one('a, b = b,', 'a =', 'b =', 'c =')} {self._value(rows)}"]
                if kind < 0.4
                else self._either(depth, rows, loops)
                if kind < 0.7
                else self._for(depth, rows, loops)
                if loops < 2 and kind < 0.9
                else self._while()
            )
        return [f"    {line}" for line in lines]

    def _either(self, depth: int, rows: list[str], loops: int) -> list[str]:
        lines = [f"if {self._test(rows)}:", *self._block(depth + 1, rows, 0, loops)]
        if loops and self._random.random() < 0.3:
            return [*lines, "    break"]
        return [*lines, "else:", *self._block(depth + 1, rows, 0, loops)] if self._random.random() < 0.5 else lines

    def _for(self, depth: int, rows: list[str], loops: int) -> list[str]:
        over, name = self._one(*self._inputs), f"i{depth}"
        head, row = self._random.choice(
            [
                (f"{name} in {over}", name),
                (f"{name} in range({over}.shape[0])", f"{over}[{name}]"),
                (f"{name} in range(1, {over}.shape[0])", f"{over}[{name} - 1]"),
            ]
        )
        lines = [f"for {head}:", *self._block(depth + 1, [*rows, row], self._random.randint(0, 1), loops + 1)]
        lines += [f"    out.append({self._one(*NAMES)})"] if not loops and self._random.random() < 0.4 else []
        return [*lines, f"    d[{self._one('0', '1')}] += {self._one(*NAMES)}[0]"] if self._random.random() < 0.2 else lines

    def _while(self) -> list[str]:
        name, other = self._random.sample(NAMES, 2)
        lines = [f"while {name}.abs().sum() > 1:", f"    {name} = {name} * 0.5"]
        return [*lines, f"    {other} = {self._value([])}"] if self._random.random() < 0.4 else lines


class Random(nn.Module):
    """The function of such a text, in a file of its own, where Python finds its lines."""

    def __init__(self, seed: int, inputs: Sequence[str], folder: Path) -> None:
        super().__init__()
        path = folder / f"random_{seed}.py"
        path.write_text(Text(seed, inputs).written(), encoding="utf-8")
        spec = importlib.util.spec_from_file_location(path.stem, path)
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        self.function = module.function

    def forward(self, x: Tensor, y: Tensor) -> Any:
        return self.function(x, y)


def outcome(seed: int, folder: Path, inputs: Sequence[str] = ("x",)) -> str:
    """Return what becomes of a random function: right or refused, loud where its file raises, or wrong, and where."""
    torch.manual_seed(seed)
    model, example = Random(seed, inputs, folder), (torch.randn(5, 3), torch.randn(7, 3))
    try:
        program = to_onnx(model, example, dynamic_shapes=({0: "n"}, {0: "m"}), capture="run")
    except ToOnnxError:
        return "refused"
    return next(filter(None, (_wrong_at(program, model, n, m, scale) for n, m in SIZES for scale in SCALES)), "right")


def _wrong_at(program: Any, model: Random, n: int, m: int, scale: float) -> str:
    arguments = torch.randn(n, 3) * scale, torch.randn(m, 3) * scale
    try:
        wanted = model(*arguments)
    except (RuntimeError, IndexError, UnboundLocalError):
        return ""
    try:
        found = program(*arguments)
    except Exception:  # noqa: BLE001 - whatever onnxruntime raises
        return "loud" if n and m else ""
    same = all(a.shape == b.shape and torch.allclose(a, b, rtol=1e-3, atol=1e-4) for a, b in zip(found, wanted, strict=True))
    return "" if same else f"wrong at {n}, {m}, {scale}"


def main(first: int, count: int, *inputs: str) -> None:
    """Print what becomes of the functions of these seeds, and each that is wrong."""
    warnings.simplefilter("ignore")
    torch.set_num_threads(1)
    found: Counter[str] = Counter()
    with tempfile.TemporaryDirectory() as folder:
        for seed in range(first, first + count):
            told = outcome(seed, Path(folder), ("x", "y") if inputs else ("x",))
            found[told.split()[0]] += 1
            if told.startswith("wrong"):
                print(seed, told, flush=True)
    print(found)


if __name__ == "__main__":
    main(*map(int, sys.argv[1:3]), *sys.argv[3:])
