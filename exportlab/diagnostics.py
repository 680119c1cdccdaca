"""What exporters and runtimes say: which lines say nothing about a model, which name the cause of a wrong answer, and how each is kept."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Iterable
from dataclasses import dataclass

from .outcomes import Outcome

LONGEST = 300  # characters of a line that are kept
MOST = 10  # lines that are kept
NATIVE = "native"  # the source of what is written to standard output and error, below Python or by `print`
ANSI = re.compile(r"\x1b\[[0-9;]*m")
WARNING_OR_ERROR = re.compile(
    r"\[[WEF]:onnxruntime|\[?[WEF]? ?\S+:\d+\]|\[? ?(\S+:\d+:? )?(warning|error)\b", re.IGNORECASE
)  # at the beginning
VARYING = (  # from run to run, and from machine to machine
    (ANSI, ""),
    (re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d[.,]\d+ "), ""),
    (re.compile(r"^(\[?[WEF])[\d :.]+(?=\S+:\d)"), r"\1 "),
    (re.compile(r"\b0x[0-9a-f]{4,}", re.IGNORECASE), "0x…"),
    (re.compile(re.escape(tempfile.gettempdir()) + r"/[\w.-]+"), "…"),
    (re.compile(r"/\S*/(site|dist)-packages/"), ""),
    (re.compile(r"\s+"), " "),
)


def name_of(source: type[Warning] | str) -> str:
    """Return the name of who says a line."""
    return source if isinstance(source, str) else source.__name__


@dataclass(frozen=True)
class Line:
    """Something that was said, and its source: a category of warnings, the name of a logger, or `NATIVE`."""

    source: type[Warning] | str
    text: str

    @property
    def is_noise(self) -> bool:
        """Whether it says nothing about a model."""
        return any(noise.covers(self) for noise in NOISE)

    def __str__(self) -> str:
        return self.text if self.source == NATIVE else f"{name_of(self.source)}: {self.text}"


@dataclass(frozen=True)
class Noise:
    """Lines that say nothing about the reader's model, and why.

    Attributes:
        source: as that of a line; a category stands for those below it too.
        pattern: what such a line begins with.
    """

    source: type[Warning] | str
    pattern: str
    why: str

    def covers(self, line: Line) -> bool:
        """Whether it is such a line."""
        return self._has(line.source) and re.match(self.pattern, line.text, re.IGNORECASE) is not None

    def _has(self, source: type[Warning] | str) -> bool:
        if isinstance(self.source, str) or isinstance(source, str):
            return self.source == source
        return issubclass(source, self.source)


@dataclass(frozen=True)
class Cause:
    """Lines that name what makes an answer wrong, and what they say of it."""

    pattern: str
    why: str


EVERY_EXPORT = "said at every export, of any model"
NOT_INSTALLED = "about a package that makes a model faster and not another one"
REGISTRATION = "torch.onnx._internal.exporter._registration"
NOISE = (
    Noise(FutureWarning, r"`?isinstance\(treespec, LeafSpec\)", "raised by torch, about torch"),
    Noise(
        UserWarning,
        r"# The axis name: (?P<name>.*) will not be used.*another axis: (?P=name)\.",
        "two axes were given one name, and have it",
    ),
    Noise(UserWarning, r"torch\.compile is ignored when called inside", "torch calls it itself"),
    Noise(DeprecationWarning, r".*legacy TorchScript-based ONNX export", EVERY_EXPORT + "; the pages say that this flavour is old"),
    Noise(DeprecationWarning, r"The feature will be removed", "the same exporter, about its own logging"),
    Noise(DeprecationWarning, r".*torch\.jit\.", "that TorchScript is old, which the pages say"),
    Noise(FutureWarning, r".*torch\.jit\.", "the same, in another category"),
    Noise(Warning, r"This API is experimental and subject to change", "about ExecuTorch's own API"),
    Noise(RuntimeWarning, r"Guards may run slower on Python", "about the speed of this Python, in whatever TorchDynamo sees"),
    Noise(
        "torch.utils.cpp_extension",
        r"No CUDA runtime is found",
        "about the machine: torch has CUDA in it, and no such device",
    ),
    Noise(Warning, r"IProgress not found", "about progress bars in a notebook"),
    Noise(REGISTRATION, r"torchvision is not installed", EVERY_EXPORT),
    Noise(REGISTRATION, r"Failed to infer the signature for function", EVERY_EXPORT + ", about a translation that none here uses"),
    Noise("torchao", r"Failed to load", "transformers imports it where it finds it, and it tries to load libraries for other processors"),
    Noise("torch.utils._pytree", r"<enum .* is an Enum subclass", "about enums of torchao"),
    Noise("transformers.exporters.utils", r"Exporter is experimental", EVERY_EXPORT + ", about the versions of torch and onnx"),
    Noise("transformers.integrations.hub_kernels", r"`\w+` is falling back", NOT_INSTALLED),
    Noise(NATIVE, r"\[(cpuinfo_utils|threadpool)\.cpp", "ExecuTorch's runtime, about the processor and its threads"),
    Noise(NATIVE, r"\[E:onnxruntime", "the same error is raised"),
    Noise(NATIVE, r"\[W:onnxruntime.*Removing initializer", "about a weight that nothing reads: what is computed is the same"),
)
CAUSES = (
    Cause(r"^TracerWarning: ", "the trace wrote down a value, a size or a branch as its example had it"),
    Cause(r"changes graph semantics", "a change in place was left out"),
    Cause(
        r"will cause the ONNX model to be incorrect|exported (graph|model) (will|may|might) \w+ incorrect|may be incorrect",
        "in so many words",
    ),
    Cause(r"will produce incorrect results", "in so many words"),
    Cause(r"can cause an error when running the ONNX model with a different batch size", "the size of the batch was written down"),
    Cause(r"in training mode", "the file has another mode than the model"),
    Cause(
        r"The tensor attributes? self\.|(was|were) assigned during export",
        "the model keeps a tensor from one call to the next, and the file does not",
    ),
    Cause(
        r"The axis name: (?P<name>.*) will not be used.*another axis: (?!(?P=name)\b)", "two axes that have two names were taken for one"
    ),
    Cause(r"dynamic axes will not be renamed", "the file has other inputs than the model"),
    Cause(r"for dynamic axes is not a valid input/output name", "an axis that was to move does not"),
    Cause(r"VerifyOutputSizes|MergeShapeInfo", "the file says one size, and has another"),
    Cause(r"Automatic version conversion will be performed", "the file was made for another opset, and converted"),
    Cause(r"Failed to convert the model to the target version", "the opset is not the one that was asked for"),
    Cause(r"Attempted to resize a (static|bounded) tensor", "memory was planned for other sizes"),
    Cause(r"Constant folding not applied", "of a slice with steps, which is where it differs"),
)


def clean_line(text: str) -> str:
    """Return a line without what varies, and no longer than is kept."""
    for pattern, replacement in VARYING:
        text = pattern.sub(replacement, text)
    text = text.strip()
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 2]} …"


def kept(lines: Iterable[Line]) -> tuple[str, ...]:
    """Return what is worth keeping of what was said: each line once, no noise, and if it is too much, first what names a cause."""
    return merge_lines(clean_line(str(line)) for line in lines if not line.is_noise)


def merge_lines(*said: Iterable[str]) -> tuple[str, ...]:
    """Return several lists of kept lines as one."""
    once = list(dict.fromkeys(line for lines in said for line in lines))
    chosen = set(sorted(once, key=lambda line: not names_cause(line))[:MOST])
    return tuple(line for line in once if line in chosen)


def names_cause(line: str) -> bool:
    """Whether a line names what can make an answer wrong."""
    return any(re.search(cause.pattern, line, re.IGNORECASE) for cause in CAUSES)


def any_names_cause(said: Iterable[str]) -> bool:
    """Whether any of these lines names a cause."""
    return any(map(names_cause, said))


class Heard:
    """What came of a run, its `outcome`, beside what was `said` in it."""

    outcome: Outcome
    said: tuple[str, ...]

    @property
    def warned(self) -> bool:
        """Whether the answer is another than eager's, and something that was said names the cause."""
        return self.outcome.silent and any_names_cause(self.said)

    @property
    def silent(self) -> bool:
        """Whether it is, and nothing does."""
        return self.outcome.silent and not any_names_cause(self.said)
