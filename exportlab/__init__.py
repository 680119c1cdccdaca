"""Export models through one interface to all exporters, and verify the exported models against eager PyTorch.

Public names are imported on first use, because importing torch is slow and the command's help doesn't need it.
"""

from __future__ import annotations

import sys
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from . import show
    from .bench import bench
    from .cases import Sample, case
    from .doctor import doctor
    from .exporters import export
    from .exporters.to_onnx import to_onnx
    from .measure.profile import profile
    from .messages import expect_failure, quiet
    from .programs import require
    from .specs import tensor
    from .verification.comparison import compare
    from .verification.report import VerificationError
    from .verification.verify import verify

    __version__: str

__all__ = [
    "Sample", "VerificationError", "bench", "case", "compare", "doctor", "expect_failure", "export", "profile", "quiet", "require", "show",
    "tensor", "to_onnx", "verify",
]  # fmt: skip

_HOMES = {
    "Sample": "cases", "VerificationError": "verification.report", "bench": "bench", "case": "cases", "compare": "verification.comparison",
    "doctor": "doctor", "expect_failure": "messages", "export": "exporters", "profile": "measure.profile", "quiet": "messages",
    "require": "programs", "tensor": "specs", "to_onnx": "exporters.to_onnx", "verify": "verification.verify",
}  # fmt: skip


class _Package(ModuleType):
    """Keep `doctor` and `bench` as functions, because importing a subpackage of that name would replace them with the subpackage."""

    def __setattr__(self, name: str, value: Any) -> None:
        super().__setattr__(name, getattr(value, name) if name in ("doctor", "bench") and isinstance(value, ModuleType) else value)


def __getattr__(name: str) -> Any:
    if name in ("show", "patches"):
        return import_module(f".{name}", __name__)
    if name == "__version__":
        return _find_version()
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found = getattr(import_module(f".{_HOMES[name]}", __name__), name)
    setattr(_this, name, found)
    return found


def _find_version() -> str:
    """Return the version that pyproject.toml defines, as installed; "unknown" in a checkout that is not installed."""
    from importlib.metadata import distributions

    return next((found.version for found in distributions(name="exportlab")), "unknown")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__, "__version__"})


_this: ModuleType = sys.modules[__name__]
_this.__class__ = _Package
