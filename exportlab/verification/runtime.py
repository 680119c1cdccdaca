"""Check that the runtime of an exported model is installed."""

from __future__ import annotations

from ..exporters import Artifact, OnnxArtifact


class MissingRuntime(ImportError):
    """ONNX Runtime cannot be imported; the one-line message contains the command that installs it."""


def check_runtime(artifact: Artifact) -> None:
    """Raise `MissingRuntime` if the artifact is an ONNX model and ONNX Runtime cannot be imported."""
    if isinstance(artifact, OnnxArtifact):
        check_onnxruntime()


def check_onnxruntime() -> None:
    """Raise `MissingRuntime` if ONNX Runtime cannot be imported."""
    try:
        import onnxruntime  # noqa: F401
    except ImportError as error:
        raise MissingRuntime(f"ONNX Runtime is needed to verify an ONNX model, and {_describe(error)}: pip install onnxruntime") from error


def _describe(error: ImportError) -> str:
    return "it is not installed" if isinstance(error, ModuleNotFoundError) else f"it cannot be imported ({error})"
