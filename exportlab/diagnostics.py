"""Classify the messages of exporters and runtimes: which are noise, and which name the cause of a wrong answer."""

from __future__ import annotations

import re
import tempfile
from collections.abc import Iterable
from dataclasses import dataclass

from .outcomes import Outcome

LONGEST = 300  # maximum number of characters per line
MOST = 10  # maximum number of lines
NATIVE = "native"  # the source of output written to stdout and stderr below Python, or by `print`
ANSI = re.compile(r"\x1b\[[0-9;]*m")
WARNING_OR_ERROR = re.compile(
    r"\[[WEF]:onnxruntime|\[?[WEF]? ?\S+:\d+\]|\[? ?(\S+:\d+:? )?(warning|error)\b", re.IGNORECASE
)  # at the start of a line
VARYING = (  # parts that differ between runs or machines
    (ANSI, ""),
    (re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d[.,]\d+ "), ""),
    (re.compile(r"^(\[?[WEF])[\d :.]+(?=\S+:\d)"), r"\1 "),
    (re.compile(r"\b0x[0-9a-f]{4,}", re.IGNORECASE), "0x…"),
    (re.compile(re.escape(tempfile.gettempdir()) + r"/[\w.-]+"), "…"),
    (re.compile(r"/\S*/(site|dist)-packages/"), ""),
    (re.compile(r"\s+"), " "),
)


def name_of(source: type[Warning] | str) -> str:
    """Return the name of a message's source."""
    return source if isinstance(source, str) else source.__name__


@dataclass(frozen=True)
class Line:
    """A message and its source: a warning category, the name of a logger, or `NATIVE`."""

    source: type[Warning] | str
    text: str

    @property
    def is_noise(self) -> bool:
        """Whether the message is unrelated to the model."""
        return any(noise.covers(self) for noise in NOISE)

    def __str__(self) -> str:
        return self.text if self.source == NATIVE else f"{name_of(self.source)}: {self.text}"


@dataclass(frozen=True)
class Noise:
    """A pattern for messages that are unrelated to the reader's model, and the reason.

    Attributes:
        source: the source of the messages, as in `Line`. A warning category includes its subclasses.
        pattern: a regular expression for the start of a message.
    """

    source: type[Warning] | str
    pattern: str
    why: str

    def covers(self, line: Line) -> bool:
        """Whether the line matches this pattern."""
        return self._has(line.source) and re.match(self.pattern, line.text, re.IGNORECASE) is not None

    def _has(self, source: type[Warning] | str) -> bool:
        if isinstance(self.source, str) or isinstance(source, str):
            return self.source == source
        return issubclass(source, self.source)


@dataclass(frozen=True)
class Cause:
    """A pattern for messages that name the cause of a wrong answer, and the explanation."""

    pattern: str
    why: str


EVERY_EXPORT = "emitted at each export, for any model"
NOT_INSTALLED = "about an optional package that only makes a model faster"
REGISTRATION = "torch.onnx._internal.exporter._registration"
NOISE = (
    Noise(FutureWarning, r"`?isinstance\(treespec, LeafSpec\)", "raised by torch, about torch"),
    Noise(
        UserWarning,
        r"# The axis name: (?P<name>.*) will not be used.*another axis: (?P=name)\.",
        "two axes were given the same name, and both have it",
    ),
    Noise(UserWarning, r"torch\.compile is ignored when called inside", "torch makes this call itself"),
    Noise(DeprecationWarning, r".*legacy TorchScript-based ONNX export", EVERY_EXPORT + "; the pages already call this exporter legacy"),
    Noise(DeprecationWarning, r"The feature will be removed", "the same exporter, about its own logging"),
    Noise(DeprecationWarning, r".*torch\.jit\.", "TorchScript is deprecated, which the pages already mention"),
    Noise(FutureWarning, r".*torch\.jit\.", "the same in another category"),
    Noise(Warning, r"This API is experimental and subject to change", "about ExecuTorch's own API"),
    Noise(RuntimeWarning, r"Guards may run slower on Python", "about the speed of this Python version, for any code that Dynamo traces"),
    Noise(
        "torch.utils.cpp_extension",
        r"No CUDA runtime is found",
        "about the machine: this build of torch supports CUDA, but there is no CUDA device",
    ),
    Noise(Warning, r"IProgress not found", "about progress bars in a notebook"),
    Noise(REGISTRATION, r"torchvision is not installed", EVERY_EXPORT),
    Noise(REGISTRATION, r"Failed to infer the signature for function", EVERY_EXPORT + ", about a translation that isn't used here"),
    Noise("torchao", r"Failed to load", "transformers imports torchao if installed, and torchao tries libraries for other processors"),
    Noise("torch.utils._pytree", r"<enum .* is an Enum subclass", "about enums of torchao"),
    Noise("transformers.exporters.utils", r"Exporter is experimental", EVERY_EXPORT + ", about the versions of torch and onnx"),
    Noise("transformers.integrations.hub_kernels", r"`\w+` is falling back", NOT_INSTALLED),
    Noise(NATIVE, r"\[(cpuinfo_utils|threadpool)\.cpp", "ExecuTorch's runtime, about the processor and its threads"),
    Noise(NATIVE, r"\[E:onnxruntime", "the same error is also raised"),
    Noise(NATIVE, r"\[W:onnxruntime.*Removing initializer", "about an unused weight, which doesn't affect the result"),
)
CAUSES = (
    Cause(r"^TracerWarning: ", "the trace recorded a value, a size or a branch of its example as a constant"),
    Cause(r"changes graph semantics", "an in-place operation was omitted"),
    Cause(
        r"will cause the ONNX model to be incorrect|exported (graph|model) (will|may|might) \w+ incorrect|may be incorrect",
        "stated in the message",
    ),
    Cause(r"will produce incorrect results", "stated in the message"),
    Cause(r"can cause an error when running the ONNX model with a different batch size", "the batch size became a constant"),
    Cause(r"in training mode", "the exported model is in another mode than the module"),
    Cause(
        r"The tensor attributes? self\.|(was|were) assigned during export",
        "the module keeps a tensor between calls, and the exported model does not",
    ),
    Cause(
        r"The axis name: (?P<name>.*) will not be used.*another axis: (?!(?P=name)\b)", "two axes with different names were treated as one"
    ),
    Cause(r"dynamic axes will not be renamed", "the exported model has other inputs than the module"),
    Cause(r"for dynamic axes is not a valid input/output name", "an axis that was requested as dynamic is static"),
    Cause(r"VerifyOutputSizes|MergeShapeInfo", "the exported model declares one size but produces another"),
    Cause(r"Automatic version conversion will be performed", "the model was exported for another opset, then converted"),
    Cause(r"Failed to convert the model to the target version", "the exported model doesn't have the requested opset"),
    Cause(r"Attempted to resize a (static|bounded) tensor", "memory was planned for other sizes"),
    Cause(r"Constant folding not applied", "about a slice with steps, where the results differ"),
)


def clean_line(text: str) -> str:
    """Remove the parts of a line that vary between runs, and truncate it."""
    for pattern, replacement in VARYING:
        text = pattern.sub(replacement, text)
    text = text.strip()
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 2]} …"


def kept(lines: Iterable[Line]) -> tuple[str, ...]:
    """Return the messages worth keeping: each line once and without noise. If there are too many, lines that name a cause come first."""
    return merge_lines(clean_line(str(line)) for line in lines if not line.is_noise)


def merge_lines(*said: Iterable[str]) -> tuple[str, ...]:
    """Merge several lists of kept lines into one."""
    once = list(dict.fromkeys(line for lines in said for line in lines))
    chosen = set(sorted(once, key=lambda line: not names_cause(line))[:MOST])
    return tuple(line for line in once if line in chosen)


def names_cause(line: str) -> bool:
    """Whether a line names a possible cause of a wrong answer."""
    return any(re.search(cause.pattern, line, re.IGNORECASE) for cause in CAUSES)


def any_names_cause(said: Iterable[str]) -> bool:
    """Whether any of these lines names a cause."""
    return any(map(names_cause, said))


class Heard:
    """Base class for a result with an `outcome` and the messages of the run, `said`."""

    outcome: Outcome
    said: tuple[str, ...]

    @property
    def warned(self) -> bool:
        """Whether the answer differs from eager's and a message names the cause."""
        return self.outcome.silent and any_names_cause(self.said)

    @property
    def silent(self) -> bool:
        """Whether the answer differs from eager's and no message names the cause."""
        return self.outcome.silent and not any_names_cause(self.said)
