"""Known errors: their messages, causes and verified fixes. The doctor finds them in a model."""

from .known import STAGES, Claim, Fix, KnownError, Reproduced, get, load_known_errors, recognise, reproduce, verify_fix

__all__ = ["STAGES", "Claim", "Fix", "KnownError", "Reproduced", "get", "load_known_errors", "recognise", "reproduce", "verify_fix"]
