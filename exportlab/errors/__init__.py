"""Known errors, all executed: how each is recognised, why it happens, what gets past it. Not here: finding them in a model (doctor)."""

from .known import STAGES, Claim, Fix, KnownError, Reproduced, get, load_known_errors, recognise, reproduce, verify_fix

__all__ = ["STAGES", "Claim", "Fix", "KnownError", "Reproduced", "get", "load_known_errors", "recognise", "reproduce", "verify_fix"]
