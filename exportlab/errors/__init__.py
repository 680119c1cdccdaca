"""Known errors, all executed: how each is recognised, why it happens, what gets past it. Not here: finding them in a model (doctor)."""

from .known import STAGES, Claim, Fix, KnownError, Reproduced, fixed, get, recognise, registered, reproduced

__all__ = ["STAGES", "Claim", "Fix", "KnownError", "Reproduced", "fixed", "get", "recognise", "registered", "reproduced"]
