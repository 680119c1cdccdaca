"""Verify one exported model: whether it is right, how far it is off, and where the numbers diverge."""
