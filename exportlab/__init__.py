"""Export Lab's helper package: a zoo of cases, exporters behind one protocol, and a verification that looks for silent failures."""

from . import show, zoo
from .comparison import compare
from .converter import to_onnx
from .doctor import doctor
from .exporters import export
from .failures import expect_failure
from .programs import require
from .quiet import quiet
from .verify import VerificationError, verify
from .zoo import Sample, case, tensor

__all__ = [
    "Sample", "VerificationError", "case", "compare", "doctor", "expect_failure", "export", "quiet", "require", "show", "tensor",
    "to_onnx", "verify", "zoo",
]  # fmt: skip
