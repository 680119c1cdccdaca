"""Export Lab's helper package: a zoo of cases, exporters behind one protocol, and a verification that looks for silent failures."""

from . import show
from .cases import Sample, case
from .doctor import doctor
from .exporters import export
from .exporters.to_onnx import to_onnx
from .messages import expect_failure, quiet
from .programs import require
from .specs import tensor
from .verification.comparison import compare
from .verification.report import VerificationError
from .verification.verify import verify

__all__ = [
    "Sample", "VerificationError", "case", "compare", "doctor", "expect_failure", "export", "quiet", "require", "show", "tensor",
    "to_onnx", "verify",
]  # fmt: skip
