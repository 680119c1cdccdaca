"""What people give by mistake, and what nobody would: values, models and paths."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from contextlib import chdir, contextmanager, suppress
from decimal import Decimal
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy
import torch
from hypothesis import strategies as st
from promise import OfModel
from torch import nn
from torch.export import Dim

from exportlab import Sample

X = torch.ones(4, 3)
LONG = "x" * 300
NAMES = ("", "x", "batch", "a\nb", "\x1b[2J", "\ud800", "\x00", " ", "ü", LONG, "../x", "class", "1", "a,b", "a:b")

plain_values = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.floats(),
    st.sampled_from([0, 1, -1, 2**31, 2**63, 10**400, 0.0, -0.5, float("nan"), float("inf"), 1j, Decimal("0.5")]),
    st.text(max_size=4),
    st.sampled_from(NAMES),
    st.binary(max_size=3),
)


class Odd:
    """A value of a class that nobody knows."""


def itself() -> list[Any]:
    """Return a list that holds itself."""
    found: list[Any] = []
    found.append(found)
    return found


def deep(levels: int = 300) -> Any:
    """Return a list in a list in a list."""
    found: Any = X
    for _ in range(levels):
        found = [found]
    return found


tensors = st.sampled_from(
    [
        X,
        torch.ones(1, 3),
        torch.ones(0, 3),
        torch.ones(()),
        torch.ones(4, 3, dtype=torch.int64),
        torch.ones(4, 3, dtype=torch.complex64),
        torch.ones(4, 3, dtype=torch.float16),
        torch.ones(4, 3, dtype=torch.bool),
        torch.full((4, 3), torch.nan),
        torch.ones(4, 3, device="meta"),
        torch.ones(4, 3).to_sparse(),
        torch.ones(4, 3, requires_grad=True),
        torch.ones(4, 3, requires_grad=True) * 2,
        torch.ones(1, 1).expand(4, 3),
        torch.ones(2, 2, 2, 2),
        nn.Parameter(torch.ones(4, 3)),
    ]
)
odd_values = st.one_of(
    st.builds(Odd),
    st.builds(itself),
    st.builds(deep),
    st.builds(lambda: iter([X])),
    st.sampled_from(
        [
            int,
            Odd,
            len,
            nn.Linear,
            nn.Linear(3, 2),
            torch.float32,
            torch.nn,
            numpy.ones(3),
            numpy.float32(1),
            range(3),
            slice(3),
            Path("x"),
            Dim("batch"),
            Dim.AUTO,
            Dim.DYNAMIC,
            Dim.STATIC,
            frozenset({1}),
            Ellipsis,
            ValueError("no"),
            torch.Size([1]),
        ]
    ),
)
leaves = st.one_of(plain_values, tensors, odd_values)
values = st.recursive(
    leaves,
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.lists(inner, max_size=3).map(tuple),
        st.dictionaries(st.one_of(st.sampled_from(NAMES), st.integers(-3, 9)), inner, max_size=3),
        st.builds(Sample, st.lists(plain_values | tensors, max_size=2).map(tuple)),
    ),
    max_leaves=4,
)


class Raises(nn.Module):
    """Fails when it is called."""

    def forward(self, x: Any) -> Any:
        """Fail."""
        raise OfModel("first line\nsecond line")


class Returns(nn.Module):
    """Returns something else than a tensor."""

    def __init__(self, what: Any) -> None:
        super().__init__()
        self.what = what

    def forward(self, x: Any = None, *further: Any, **named: Any) -> Any:
        """Return it."""
        return self.what


class Recurses(nn.Module):
    """Never ends."""

    def forward(self, x: Any) -> Any:
        """Begin again."""
        return self.forward(x)


class NotBegun(nn.Module):
    """Forgets to call the constructor that it inherits."""

    def __init__(self) -> None:
        pass

    def forward(self, x: Any) -> Any:
        """Return what it is given."""
        return x


class NotCopied(nn.Linear):
    """Cannot be copied."""

    def __deepcopy__(self, memo: Any) -> Any:
        raise OfModel("no copies")


class Keyed(nn.Module):
    """Takes keyword arguments only."""

    def forward(self, *, x: Any, scale: float = 1.0) -> Any:
        """Return the product."""
        return x * scale


class Remembers(nn.Module):
    """Changes a buffer and an attribute."""

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("seen", torch.zeros(()))
        self.last: Any = None

    def forward(self, x: Any) -> Any:
        """Return the sum so far."""
        self.seen += x.sum()
        self.last = x
        return x + self.seen


class Draws(nn.Module):
    """Takes random numbers."""

    def forward(self, x: Any) -> Any:
        """Return noise."""
        return x + torch.rand(3)


MODELS = {
    "linear": lambda: nn.Linear(3, 2).eval(),
    "in training": lambda: nn.Sequential(nn.Linear(3, 2), nn.Dropout()),
    "raises": Raises,
    "recurses": Recurses,
    "not begun": NotBegun,
    "not copied": lambda: NotCopied(3, 2),
    "not copied, in training": lambda: nn.Sequential(NotCopied(3, 2), nn.Dropout()),
    "keyed": Keyed,
    "remembers": Remembers,
    "draws": Draws,
    "no forward": nn.Module,
    "empty": nn.Sequential,
    "on meta": lambda: nn.Linear(3, 2, device="meta"),
    "lazy": lambda: nn.LazyLinear(2),
    "scripted": lambda: torch.jit.script(nn.Linear(3, 2).eval()),
    "forward of text": lambda: with_forward("x"),
    "forward of len": lambda: with_forward(len),
    "half": lambda: nn.Linear(3, 2).half(),
}


def with_forward(forward: Any) -> nn.Module:
    """Return a module whose `forward` is something else."""
    found = nn.Module()
    found.forward = forward
    return found


def made(name: str) -> nn.Module:
    """Return one of the models, always with the same weights."""
    with torch.random.fork_rng():
        torch.manual_seed(0)
        return MODELS[name]()


modules = st.one_of(st.sampled_from(sorted(MODELS)).map(made), st.builds(Returns, values))
KINDS_OF_PATH = (
    "new", "there", "folder", "no folder", "pipe", "device", "long", "lines", "null character", "surrogate", "loop", "dangling",
    "below a file", "empty", "/proc/1/x",
)  # fmt: skip


def laid_out(folder: Path) -> None:
    """Make in a folder what the paths go to."""
    (folder / "folder").mkdir()
    (folder / "there.onnx").write_bytes(b"precious")
    os.mkfifo(folder / "pipe")
    with suppress(OSError):  # only root may
        os.mknod(folder / "device", 0o666 | stat.S_IFCHR, os.makedev(1, 3))  # another /dev/null
    (folder / "loop").symlink_to("loop")
    (folder / "dangling").symlink_to("nowhere/at/all")


@contextmanager
def in_folder() -> Iterator[Path]:
    """Be in a folder of its own that the paths go to, for as long as this lasts."""
    with TemporaryDirectory() as name, chdir(name):
        laid_out(Path(name))
        yield Path(name)


def path_in(folder: Path, kind: str) -> str:
    """Return a path of this kind."""
    inside = {
        "new": "new.onnx", "there": "there.onnx", "folder": "folder", "no folder": "nowhere/new.onnx", "pipe": "pipe", "device": "device",
        "long": LONG, "lines": "a\nb.onnx", "null character": "a\0b", "surrogate": "\ud800", "loop": "loop", "dangling": "dangling",
        "below a file": "there.onnx/new.onnx",
    }  # fmt: skip
    return str(folder / inside[kind]) if kind in inside else "" if kind == "empty" else kind


@st.composite
def mostly(draw: st.DrawFn, **right: st.SearchStrategy[Any]) -> dict[str, Any]:
    """Return arguments, of which at most two are anything, and the others as they should be."""
    wrong = draw(st.lists(st.sampled_from(sorted(right)), max_size=2, unique=True))
    return {name: draw(values if name in wrong else strategy) for name, strategy in right.items()}


def of_kind(place: Any) -> bool:
    """Whether this names a kind of path."""
    return isinstance(place, str) and place in KINDS_OF_PATH
