"""Known errors: how each is recognised, why it happens, what gets past it, all of it executed. Not here: finding them in a model."""

from .known import STAGES, Claim, Fix, KnownError, Reproduced, fixed, get, recognise, registered, reproduced

__all__ = ["STAGES", "Claim", "Fix", "KnownError", "Reproduced", "fixed", "get", "recognise", "registered", "reproduced"]
